//! A model on the workers of a serving job: tokens go there, vectors or the tokens that follow come back, and receipts.

mod continued;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{StreamExt, TryStreamExt, iter};
use tensorlink_types::JobId;
use tensorlink_user::serving::{Pipelines, Receipts, TextError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::task::TaskTracker;

use super::backend::{Backend, BackendError, Embedded, Embedding, Generated, Model, ReceiptError, ReceiptId, Texts};
use super::generation::language::Language;
use super::generation::sequence::{Task, tasks};
use super::generation::stages::drive;
use super::generation::{Ask, Generation, Piece};
use super::local::{Tokenize, checked, ids};
use continued::Workers;

/// When a client whom a full queue refused should come back.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Texts of one request under way at once, so that stages need not wait for one another, and other requests
/// get through.
const AT_ONCE: usize = 8;

/// For workers to sign for texts that end with the process.
const LAST: Duration = Duration::from_secs(20);

/// What a model makes of texts, and how it reads them.
pub enum Words {
    /// Vectors, scores or classes.
    Vectors(Tokenize),
    /// More text; of a pipeline that chooses tokens.
    Texts(Arc<dyn Language>),
}

/// A model that others compute.
pub struct Remote {
    model: [Model; 1],
    pipelines: Arc<Pipelines>,
    words: Words,
    /// One for each request, held until all of its texts are at their end.
    places: Arc<Semaphore>,
    /// Texts that are continued.
    texts: TaskTracker,
}

/// The place of a request, shared by its texts.
type Place = Arc<OwnedSemaphorePermit>;
/// The job and number by which the receipts of a text are asked for.
type Reserved = (JobId, u32);

impl Remote {
    /// A model over pipelines of its stages; at most `queue` requests at once.
    pub fn new(model: Model, pipelines: Arc<Pipelines>, words: Words, queue: usize) -> Self {
        let places = Arc::new(Semaphore::new(queue));
        Self { model: [model], pipelines, words, places, texts: TaskTracker::new() }
    }

    /// Takes no more texts, and pays for those that were delivered. The job stays open.
    pub async fn close(&self) {
        self.texts.close();
        self.pipelines.mend(false);
        if tokio::time::timeout(LAST, self.texts.wait()).await.is_err() {
            tracing::warn!("{} texts end without receipts, and their workers are not paid", self.texts.len());
        }
        self.pipelines.newest().close().await;
    }

    fn place(&self) -> Result<Place, BackendError> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.map(Arc::new).map_err(|_| BackendError::Busy { retry_after: RETRY_AFTER })
    }

    /// Numbers for the texts of a request, and the id of their receipts.
    fn reserve(&self, texts: usize) -> Result<(Vec<Reserved>, Option<ReceiptId>), BackendError> {
        let count = u32::try_from(texts).map_err(|_| BackendError::Failed("too many texts".into()))?;
        let pipeline = self.pipelines.newest();
        let numbers = pipeline.reserve(count).map_err(refusal)?;
        let (job, first, last) = (pipeline.job(), numbers.start, numbers.end.saturating_sub(1));
        let receipt = (count > 0).then_some(ReceiptId { job: job.0, first, last });
        Ok((numbers.map(|number| (job, number)).collect(), receipt))
    }

    /// Begins to continue a text.
    fn begin(&self, language: &Arc<dyn Language>, (number, task): (Reserved, Task), place: Place) -> Generation {
        // SAFETY of the cast: 32 bits fit. Memory is taken as pieces come, not for all at once.
        let (sender, pieces) = mpsc::channel((task.most as usize).saturating_add(1));
        let prompt_tokens = task.prompt_tokens();
        let (pipelines, language, texts) = (Arc::clone(&self.pipelines), Arc::clone(language), self.texts.clone());
        self.texts.spawn(async move {
            let text = tokio::select! {
                text = pipelines.begin(number) => text,
                () = sender.closed() => return,
            };
            match text {
                Ok(text) => drive(&*language, task, Workers::start((text, pipelines), &texts, place), sender).await,
                Err(error) => tell(&sender, refusal(error)),
            }
        });
        Generation { prompt_tokens, pieces }
    }

    /// Token ids of all texts; one bad text refuses them all.
    async fn ids(&self, tokenize: &Tokenize, texts: Texts) -> Result<Vec<Vec<u32>>, BackendError> {
        let [model] = self.model.clone();
        let (tokenize, Texts { inputs, before }) = (Arc::clone(tokenize), texts);
        let tokenize = move |text: &str| tokenize(text, &before);
        let all = move || inputs.into_iter().enumerate().map(|input| ids(&model, &tokenize, input)).collect();
        match tokio::task::spawn_blocking(all).await {
            Ok(ids) => ids,
            Err(error) => Err(BackendError::Failed(format!("tokenizer: {error}"))),
        }
    }

    async fn text(&self, number: Reserved, ids: Vec<u32>) -> Result<Embedding, BackendError> {
        let (output, receipts) = self.pipelines.compute(number, &ids).await.map_err(refusal)?;
        // A mantissa of up to 24 bits is a float of the same value.
        let vector = output.to_f64().into_iter().map(|value| value as f32).collect();
        let [model] = &self.model;
        checked(model, Embedding { vector, tokens: receipts.tokens })
    }
}

/// There is room for every piece, and whoever has left needs none.
fn tell(pieces: &mpsc::Sender<Result<Piece, BackendError>>, error: BackendError) {
    let _ = pieces.try_send(Err(error));
}

/// What a text's failure is to a client.
fn refusal(error: TextError) -> BackendError {
    if error.is_busy() {
        return BackendError::Busy { retry_after: RETRY_AFTER };
    }
    match error {
        TextError::Stage { .. } | TextError::Spent(_) => {
            tracing::error!("{error}");
            BackendError::Stopped
        }
        TextError::Closed | TextError::Left => BackendError::Stopped,
        error => BackendError::Failed(error.to_string()),
    }
}

#[async_trait]
impl Backend for Remote {
    fn models(&self) -> &[Model] {
        &self.model
    }

    fn alive(&self) -> bool {
        self.pipelines.newest().alive()
    }

    async fn embed(&self, model: &str, texts: Texts) -> Result<Embedded, BackendError> {
        let [served] = &self.model;
        if served.id != model {
            return Err(BackendError::UnknownModel(model.to_owned()));
        }
        let Words::Vectors(tokenize) = &self.words else { return Err(BackendError::OtherKind(model.to_owned())) };
        let _place = self.place()?;
        let texts = self.ids(tokenize, texts).await?;
        let (numbers, receipt) = self.reserve(texts.len())?;
        let computed = iter(numbers.into_iter().zip(texts)).map(|(number, ids)| self.text(number, ids));
        let embeddings: Vec<Embedding> = computed.buffered(AT_ONCE).try_collect().await?;
        Ok(Embedded { embeddings, receipt })
    }

    async fn generate(&self, model: &str, ask: Ask) -> Result<Generated, BackendError> {
        let [served] = &self.model;
        if served.id != model {
            return Err(BackendError::UnknownModel(model.to_owned()));
        }
        let Words::Texts(language) = &self.words else { return Err(BackendError::OtherKind(model.to_owned())) };
        let place = self.place()?;
        let (served, words) = (served.clone(), Arc::clone(language));
        let tasks = tokio::task::spawn_blocking(move || tasks(&served, &*words, ask)).await;
        let tasks = tasks.map_err(|_| BackendError::Failed("the tokenizer panicked".into()))??;
        let (numbers, receipt) = self.reserve(tasks.len())?;
        let begun = numbers.into_iter().zip(tasks).map(|text| self.begin(language, text, Arc::clone(&place)));
        Ok(Generated { generations: begun.collect(), receipt })
    }

    fn receipts(&self, id: ReceiptId) -> Result<serde_json::Value, ReceiptError> {
        let failed = |error: String| ReceiptError::Failed(error);
        let mut texts = Vec::new();
        for text in id.first..=id.last {
            let found = self.pipelines.receipts(JobId(id.job), text).map_err(|error| failed(error.to_string()))?;
            texts.push(found.ok_or(ReceiptError::Unknown)?);
        }
        serde_json::to_value(Receipts { texts }).map_err(|error| failed(error.to_string()))
    }
}
