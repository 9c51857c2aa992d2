//! A running serving job as its user sees it: texts in, what the last stage gives out, a receipt from every stage.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tensorlink_model::{RunError, tokens as tokens_tensor};
use tensorlink_node::Ports;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::{JobState, JobView, RedeemedView};
use tensorlink_num::Tensor;
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, JobId, Lane};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::archive::{Archive, KEPT, TextReceipts};
use super::boundaries::Boundaries;
use super::courier;
use super::fault::{OpenError, TextError};
use super::lane::LaneClient;
use super::numbers::Numbers;
use super::shared::Shared;
use super::text::{Fresh, State};

/// Texts under way at once; others wait. Bounds the rows that are kept in memory.
pub const TEXTS: usize = 32;
/// Longest wait for workers to take their last vouchers.
const LAST: Duration = Duration::from_secs(10);

/// What a text's next tokens gave.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// A row for each of them, or one for the whole text.
    pub output: Tensor,
    /// With the last tokens: a receipt from every stage.
    pub receipts: Option<TextReceipts>,
}

/// A client of a running serving job.
#[derive(Debug)]
pub struct Pipeline {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    couriers: TaskTracker,
    shutdown: CancellationToken,
}

/// A text under way. Dropped before its end it is abandoned, and nobody is paid for it.
#[derive(Debug)]
pub struct Text {
    shared: Arc<Shared>,
    number: u32,
    state: Option<State>,
    known_as: Option<(JobId, u32)>,
    /// How often it was begun, and how long it waited for that.
    pub(super) begun: u32,
    pub(super) waited: Duration,
}

impl Pipeline {
    /// Takes up a running job of ours, whose stages have these `boundaries`. Workers are told what they may have
    /// missed. A lane whose account cannot be taken up is left out, with a warning, while its stage has another.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(ports: Ports, job: &JobView, boundaries: Boundaries) -> Result<Self, OpenError> {
        if job.state != JobState::Running {
            return Err(OpenError::State { job: job.id, state: job.state });
        }
        Self::take_up(ports, job, boundaries).await
    }

    /// The same of a job that is closed, or about to be, and takes no texts: its workers are paid what they are owed.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open_to_pay(ports: Ports, job: &JobView, boundaries: Boundaries) -> Result<Self, OpenError> {
        if !matches!(job.state, JobState::Running | JobState::Closing | JobState::Settled) {
            return Err(OpenError::State { job: job.id, state: job.state });
        }
        let pipeline = Self::take_up(ports, job, boundaries).await?;
        pipeline.retire();
        Ok(pipeline)
    }

    async fn take_up(ports: Ports, job: &JobView, boundaries: Boundaries) -> Result<Self, OpenError> {
        let id = job.id;
        if job.kind != JobKind::Serving {
            return Err(OpenError::Training(id));
        }
        if job.user != ports.identity.address() {
            return Err(OpenError::NotOurs { job: id, user: job.user });
        }
        if boundaries.stages() != usize::from(job.stages) {
            return Err(OpenError::Stages { job: id, stages: job.stages, files: boundaries.stages() });
        }
        let archive = Archive::open(&ports.journal, id, KEPT)?;
        let numbers = Numbers::open(&ports.journal, id)?;
        let mut lanes = Vec::new();
        for stage in 0..job.stages {
            lanes.push(open_stage(&ports, job, stage).await?);
        }
        let (couriers, shutdown) = (TaskTracker::new(), CancellationToken::new());
        for lane in lanes.iter().flatten() {
            couriers.spawn(courier::run(Arc::clone(lane), ports.clone(), shutdown.clone()));
        }
        couriers.close();
        let shared = Shared {
            ports,
            job: id,
            boundaries,
            longest: job.steps_per_interval,
            most: job.intervals,
            lanes,
            down: Mutex::default(),
            up: Mutex::default(),
            numbers: Mutex::new(numbers),
            archive: Mutex::new(archive),
        };
        Ok(Self { shared: Arc::new(shared), places: Arc::new(Semaphore::new(TEXTS)), couriers, shutdown })
    }

    /// The job.
    pub fn job(&self) -> JobId {
        self.shared.job
    }

    /// Most tokens of a text.
    pub fn longest(&self) -> u32 {
        self.shared.longest
    }

    /// Tokens that the model knows: ids are below this.
    pub fn vocabulary(&self) -> u32 {
        self.shared.boundaries.vocabulary()
    }

    /// Whether every stage has a worker that did not fail lately.
    pub fn alive(&self) -> bool {
        self.shared.alive()
    }

    /// The workers of the stages all of whose lanes are lost: whose worker is `gone` and answered no text for more than
    /// `borne` seconds, or that have failed every text for as long, what failed before `since` apart. None while every
    /// stage has another.
    pub fn lost(&self, gone: impl Fn(Address) -> bool, (since, borne): (u64, u64)) -> Vec<Address> {
        self.shared.lost(gone, (since, borne))
    }

    /// Most tokens that any lane was paid since the job began, or is owed, those of texts under way among them.
    pub fn tokens(&self) -> u32 {
        self.shared.lanes.iter().flatten().map(|lane| lane.account().tokens()).max().unwrap_or_default()
    }

    /// Whether any text of the job was delivered.
    pub fn has_delivered(&self) -> bool {
        !self.shared.archive().is_empty()
    }

    /// Whether some worker of a stage answers.
    pub(super) async fn answers(&self, stage: u16) -> bool {
        let lanes = self.shared.lanes.get(usize::from(stage)).map(Vec::as_slice).unwrap_or_default();
        let answers = lanes.iter().map(|lane| lane.answers(&self.shared.ports));
        futures::future::join_all(answers).await.contains(&true)
    }

    pub(super) fn ports(&self) -> &Ports {
        &self.shared.ports
    }

    /// Numbers for `count` texts, one after another, never used before.
    ///
    /// # Errors
    /// [`TextError::Number`].
    pub fn reserve(&self, count: u32) -> Result<Range<u32>, TextError> {
        Ok(self.shared.numbers().take(count)?)
    }

    /// Begins the text of a number that was reserved, once, as soon as there is a place for it.
    ///
    /// # Errors
    /// [`TextError::Closed`].
    pub async fn begin(&self, number: u32) -> Result<Text, TextError> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| TextError::Closed)?;
        let shared = Arc::clone(&self.shared);
        Ok(Text {
            state: Some(State::new(Arc::clone(&shared), number, place)),
            shared,
            number,
            known_as: None,
            begun: 1,
            waited: Duration::ZERO,
        })
    }

    /// Whether the last stage chooses tokens, by controls that come with each.
    pub fn chooses(&self) -> bool {
        self.shared.boundaries.chooses()
    }

    /// Computes a whole text of a model that chooses no tokens.
    ///
    /// # Errors
    /// [`TextError`]; the text then costs nothing.
    pub async fn compute(&self, number: u32, tokens: &[u32]) -> Result<(Tensor, TextReceipts), TextError> {
        let Step { output, receipts } = self.begin(number).await?.advance(tokens, None, true).await?;
        receipts.map(|receipts| (output, receipts)).ok_or(TextError::Closed)
    }

    /// The receipts of a text that was delivered, if they are still kept.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn receipts(&self, text: u32) -> Result<Option<TextReceipts>, JournalError> {
        self.shared.archive().get(text)
    }

    /// Takes no more texts. Those under way come to their end, and workers are paid until [`Self::close`].
    pub fn retire(&self) {
        self.places.close();
    }

    /// Whether no text is under way.
    pub fn is_idle(&self) -> bool {
        self.places.available_permits() == TEXTS
    }

    /// Takes no more texts, and gives workers some time to take what they are owed. The job stays open.
    pub async fn close(&self) {
        self.retire();
        self.pay().await;
        self.shutdown.cancel();
        self.couriers.wait().await;
    }

    /// Gives workers some time to take what they are owed.
    pub async fn pay(&self) {
        let told = self.shared.lanes.iter().flatten().map(|lane| async {
            if let Err(error) = lane.tell(&self.shared.ports, false).await {
                tracing::warn!(lane = %lane.lane, %error, "the worker is paid at the next start");
            }
        });
        let _ = tokio::time::timeout(LAST, futures::future::join_all(told)).await;
    }
}

/// The lanes of a stage whose accounts can be taken up.
async fn open_stage(ports: &Ports, job: &JobView, stage: u16) -> Result<Vec<Arc<LaneClient>>, OpenError> {
    let (mut lanes, mut first) = (Vec::new(), None);
    for replica in 0..job.replicas {
        let lane = Lane { job: job.id, stage, replica };
        let (worker, _) = ports.chain.assignment(lane).await?;
        let redeemed = ports.chain.redeemed(lane).await?;
        match open_lane(ports, lane, worker, redeemed, job.steps_per_interval) {
            Ok(client) => lanes.push(Arc::new(client)),
            Err(error) => {
                tracing::warn!(%lane, %worker, %error, "the lane is down until the next start: it gets no texts and no vouchers");
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if lanes.is_empty() => Err(error),
        _ => Ok(lanes),
    }
}

fn open_lane(
    ports: &Ports,
    lane: Lane,
    worker: Address,
    redeemed: RedeemedView,
    longest: u32,
) -> Result<LaneClient, OpenError> {
    let client = LaneClient::open(ports, lane, worker, longest)?;
    client.redeemed(redeemed).map_err(|source| OpenError::Account { lane, source })?;
    Ok(client)
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Text {
    /// Its job.
    pub fn job(&self) -> JobId {
        self.shared.job
    }

    /// Its number in the job.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The job and number by which its receipts are asked for.
    pub fn known_as(&self) -> (JobId, u32) {
        self.known_as.unwrap_or((self.job(), self.number))
    }

    /// It is another that failed, begun anew after a wait.
    pub(super) fn in_place_of(mut self, failed: &Self, waited: Duration) -> Self {
        (self.begun, self.waited) = (failed.begun.saturating_add(1), failed.waited.saturating_add(waited));
        self.known_as_first(failed.known_as())
    }

    /// Its receipts are asked for by these.
    pub(super) fn known_as_first(mut self, first: (JobId, u32)) -> Self {
        let known_as = Some(first).filter(|first| *first != (self.job(), self.number));
        self.known_as = known_as;
        if let Some(state) = &mut self.state {
            state.known_as = known_as;
        }
        self
    }

    /// Tokens that were computed.
    pub fn tokens(&self) -> u32 {
        self.state.as_ref().map_or(0, |state| state.tokens)
    }

    /// Sends the next tokens through the pipeline, of one that chooses tokens with the `controls` of each
    /// ([`controls`](tensorlink_model::choice::controls)). The `last` bring the receipts, and the text is
    /// paid. An error about what was asked for leaves it as it was, after any other it is over.
    ///
    /// # Errors
    /// [`TextError`].
    pub async fn advance(&mut self, tokens: &[u32], controls: Option<&Tensor>, last: bool) -> Result<Step, TextError> {
        let boundaries = &self.shared.boundaries;
        let before = self.state.as_ref().ok_or(TextError::Over)?.tokens;
        if !boundaries.causal() && (before > 0 || !last) {
            return Err(TextError::Whole);
        }
        let whole = tokens.len().saturating_add(before as usize);
        let longest = self.shared.longest;
        let count = u32::try_from(whole).ok().filter(|count| !tokens.is_empty() && *count <= longest);
        let count = count.ok_or(TextError::Length { tokens: whole, longest })?;
        let vocabulary = boundaries.vocabulary();
        if let Some(token) = tokens.iter().copied().find(|token| *token >= vocabulary) {
            return Err(TextError::Token { token, vocabulary });
        }
        let length = |_: RunError| TextError::Length { tokens: whole, longest };
        let fresh = count.saturating_sub(before);
        if controls.map(Tensor::ty) != boundaries.controls(fresh)?.as_ref() {
            return Err(TextError::Controls);
        }
        let rows = Fresh {
            tokens: tokens_tensor(tokens).map_err(length)?.to_bytes(),
            controls: controls.map(Tensor::to_bytes).unwrap_or_default(),
        };
        let out = boundaries.stages();
        let given = if boundaries.by_token(out) { fresh } else { count };
        let ty = boundaries.ty(out, given)?.ok_or(TextError::Closed)?;
        // At its beginning a text may still find a replica that can be paid.
        if before > 0 {
            self.state.as_ref().map_or(Ok(()), |state| state.promise(count))?;
        }

        let mut state = self.state.take().ok_or(TextError::Over)?;
        let (reply, answer) = oneshot::channel();
        // On a task of its own: a worker's answer is awaited even if our caller leaves, so that its receipt is known,
        // and can be withdrawn.
        tokio::spawn(async move {
            let result = state.advance(&rows, last, &|| reply.is_closed()).await;
            // Whoever has left lets the text drop, which abandons it.
            let _ = reply.send((state, result));
        });
        let (state, result) = answer.await.map_err(|_| TextError::Closed)?;
        let output = result?;
        // Checked where it came from.
        let output = Tensor::from_bytes(ty, &output).map_err(|_| TextError::Closed)?;
        let receipts = state.delivered.clone();
        if !last {
            self.state = Some(state);
        }
        Ok(Step { output, receipts })
    }

    /// Ends the text after the tokens that were computed: a receipt from every stage, and the text is paid. Goes on
    /// even if the caller leaves.
    ///
    /// # Errors
    /// [`TextError`]; after one of a stage's the text is abandoned, and nobody is paid for it.
    pub async fn finish(&mut self) -> Result<TextReceipts, TextError> {
        let boundaries = &self.shared.boundaries;
        let tokens = self.state.as_ref().ok_or(TextError::Over)?.tokens;
        if tokens == 0 || !boundaries.by_token(boundaries.stages()) {
            return Err(TextError::Unended);
        }
        let mut state = self.state.take().ok_or(TextError::Over)?;
        let ended = tokio::spawn(async move {
            state.advance(&Fresh::default(), true, &|| false).await?;
            state.delivered.clone().ok_or(TextError::Closed)
        });
        ended.await.map_err(|_| TextError::Closed)?
    }
}
