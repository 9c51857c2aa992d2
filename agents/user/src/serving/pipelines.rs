//! The pipelines of a model, one after another: where a job has lost the workers of a stage, its texts go on in the
//! next. They are begun anew there, and come out in the same bits.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tensorlink_node::journal::JournalError;
use tensorlink_num::Tensor;
use tensorlink_types::JobId;
use tokio::sync::watch;

use super::archive::{TextReceipts, read};
use super::fault::TextError;
use super::pipeline::Pipeline;
use super::sending::{Step, Text};

/// How often a text is begun at most.
const BEGUN: u32 = 24;
/// Pauses before a text is begun anew in the same job: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));
/// Longest wait of a text for other workers: those are looked for, hired, and fetch the model meanwhile.
const PATIENCE: Duration = Duration::from_secs(180);
/// Time for a text under way to get on with the workers that it has, once there are others.
const GRACE: Duration = Duration::from_secs(5);

/// The newest pipeline, and whether another follows if it loses its workers.
#[derive(Clone, Debug)]
struct Newest {
    pipeline: Arc<Pipeline>,
    mended: bool,
}

/// The pipelines of a model, one after another. Only the newest takes texts.
#[derive(Debug)]
pub struct Pipelines {
    newest: watch::Sender<Newest>,
    jobs: Mutex<BTreeSet<JobId>>,
}

impl Pipelines {
    /// One that no other follows, until [`Self::mend`]; it followed those of the jobs `before`.
    pub fn new(first: Pipeline, before: impl IntoIterator<Item = JobId>) -> Self {
        let jobs = before.into_iter().chain([first.job()]).collect();
        Self { newest: watch::Sender::new(Newest { pipeline: Arc::new(first), mended: false }), jobs: Mutex::new(jobs) }
    }

    /// The pipeline that takes texts.
    pub fn newest(&self) -> Arc<Pipeline> {
        Arc::clone(&self.newest.borrow().pipeline)
    }

    /// From now on texts whose workers are lost wait for others, or for those to come back; or with false, no more.
    pub fn mend(&self, mended: bool) {
        self.newest.send_if_modified(|newest| std::mem::replace(&mut newest.mended, mended) != mended);
    }

    /// Texts go to `next` from now on, also those that the pipeline before loses. That is given back: it takes no more
    /// texts, and pays what it owes until it is closed.
    pub fn replace(&self, next: Pipeline) -> Arc<Pipeline> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(next.job());
        let mut former = Arc::new(next);
        self.newest.send_modify(|newest| std::mem::swap(&mut newest.pipeline, &mut former));
        former.retire();
        former
    }

    /// Begins the text of a number that was reserved in a job, in the newest pipeline. Its receipts stay known
    /// by these.
    ///
    /// # Errors
    /// As of [`Pipeline::begin`].
    pub async fn begin(&self, (job, number): (JobId, u32)) -> Result<Text, TextError> {
        let pipeline = self.newest();
        let here = if pipeline.job() == job { number } else { pipeline.reserve(1)?.start };
        Ok(self.begin_in(&pipeline, here).await?.known_as_first((job, number)))
    }

    /// Computes a whole text of a model that chooses no tokens, as [`Pipeline::compute`] does, if need be in the next
    /// pipeline.
    ///
    /// # Errors
    /// [`TextError`]; the text then costs nothing.
    pub async fn compute(&self, number: (JobId, u32), tokens: &[u32]) -> Result<(Tensor, TextReceipts), TextError> {
        let mut text = self.begin(number).await?;
        loop {
            match self.advance(&mut text, tokens, (None, true)).await {
                Ok(Step { output, receipts }) => {
                    return receipts.map(|receipts| (output, receipts)).ok_or(TextError::Closed);
                }
                Err(error) => text = self.instead(text, error).await?,
            }
        }
    }

    /// As [`Text::advance`], with the controls, and whether these tokens are the last. Some time after there is another
    /// pipeline than the text's it fails, as who waits in that one waits in vain.
    ///
    /// # Errors
    /// [`TextError`].
    pub async fn advance(
        &self,
        text: &mut Text,
        tokens: &[u32],
        (controls, last): (Option<&Tensor>, bool),
    ) -> Result<Step, TextError> {
        let job = text.job();
        tokio::select! {
            biased;
            step = text.advance(tokens, controls, last) => step,
            () = self.overtaken(job) => Err(TextError::Left),
        }
    }

    /// Ends some time after there is another pipeline than that of a job.
    async fn overtaken(&self, job: JobId) {
        let mut newest = self.newest.subscribe();
        if newest.wait_for(|newest| newest.pipeline.job() != job).await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(GRACE).await;
    }

    /// A text in place of one that failed, without tokens yet: in the next pipeline, or in the same once the stage's
    /// workers are back. Whoever sent it tokens sends all of them again.
    ///
    /// # Errors
    /// `error`, where nothing is gained by that, nobody mends the pipeline, or it takes too long.
    pub async fn instead(&self, failed: Text, error: TextError) -> Result<Text, TextError> {
        let job = failed.job();
        let stage = match error.failed_stage() {
            // Who asks again later is told so, unless the text is on its way already.
            Some(_) if error.is_busy() && failed.begun == 1 => None,
            None if self.newest().job() != job => Some(0),
            stage => stage,
        };
        let (Some(stage), true) = (stage, failed.begun < BEGUN) else { return Err(error) };
        let (asked, left) = (Instant::now(), PATIENCE.saturating_sub(failed.waited));
        let pause = PAUSE.0.saturating_mul(1 << failed.begun.saturating_sub(1).min(8)).min(PAUSE.1);
        let Some((pipeline, paused)) = self.mended((job, stage), (pause, left)).await else { return Err(error) };
        tracing::info!(text = failed.number(), %job, now = %pipeline.job(), "a text is begun anew");
        let text = self.begin_in(&pipeline, pipeline.reserve(1)?.start).await?;
        Ok(text.in_place_of(&failed, paused.max(asked.elapsed())))
    }

    /// Begins a text in a pipeline, or in the one after it if that takes none.
    async fn begin_in(&self, pipeline: &Pipeline, number: u32) -> Result<Text, TextError> {
        match pipeline.begin(number).await {
            Err(TextError::Closed) => self.anew(pipeline.job()).await,
            begun => begun,
        }
    }

    /// Begins a text in the pipeline after that of a job, which takes none.
    async fn anew(&self, mut job: JobId) -> Result<Text, TextError> {
        let mut newest = self.newest.subscribe();
        loop {
            let next = newest.wait_for(|newest| newest.pipeline.job() != job || !newest.mended);
            let next = tokio::time::timeout(PATIENCE, next).await.map_err(|_| TextError::Closed)?;
            let pipeline = next.map_err(|_| TextError::Closed)?.pipeline.clone();
            if pipeline.job() == job {
                return Err(TextError::Closed);
            }
            match pipeline.begin(pipeline.reserve(1)?.start).await {
                Err(TextError::Closed) => job = pipeline.job(),
                begun => return begun,
            }
        }
    }

    /// The pipeline to go on with after a stage of a job has failed, and the pauses meanwhile.
    async fn mended(
        &self,
        (job, stage): (JobId, u16),
        (mut pause, left): (Duration, Duration),
    ) -> Option<(Arc<Pipeline>, Duration)> {
        let mut newest = self.newest.subscribe();
        let (asked, mut paused) = (Instant::now(), Duration::ZERO);
        loop {
            let Newest { pipeline, mended } = newest.borrow_and_update().clone();
            if pipeline.job() != job {
                return Some((pipeline, paused));
            }
            if !mended {
                // Where some were to agree, others of the same job may do better.
                let others = pipeline.compares() && pipeline.answers(stage).await;
                return others.then_some((pipeline, paused));
            }
            if paused.max(asked.elapsed()) > left {
                return None;
            }
            let look = async {
                pipeline.ports().clock.sleep(pause).await;
                pipeline.answers(stage).await
            };
            tokio::select! {
                changed = newest.changed() => changed.ok()?,
                is_back = look => {
                    paused = paused.saturating_add(pause);
                    if is_back {
                        return Some((pipeline, paused));
                    }
                    pause = pause.saturating_mul(2).min(PAUSE.1);
                }
            }
        }
    }

    /// The receipts of a text that was delivered, by the job and the number that were reserved for it, if they are
    /// still kept; none of a job that is not of these pipelines.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn receipts(&self, job: JobId, text: u32) -> Result<Option<TextReceipts>, JournalError> {
        if !self.jobs.lock().unwrap_or_else(PoisonError::into_inner).contains(&job) {
            return Ok(None);
        }
        read(&self.newest().ports().journal, job, text)
    }
}
