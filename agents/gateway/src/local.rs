//! Models in this process: each on a thread of its own behind a bounded queue.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;

use super::backend::error::failed;
use super::backend::model::known;
use super::backend::{
    Backend, BackendError, Before, EmbedError, Embedded, Embedding, Generated, Input, Model, Texts, TokenizeError,
};
use super::generation::Ask;
use super::generation::batch::{Batch, Capacity};
use super::generation::decoder::Decoder;
use super::generation::language::Language;

/// When a client whom a full queue refused should come back.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A model, one text at a time. Called from one thread only, and may block it.
pub trait Embedder {
    /// The vector of a text of 1 to [`Model::context`] token ids below [`Model::vocabulary`].
    ///
    /// # Errors
    /// Whatever stops the computation.
    fn embed(&self, ids: &[u32]) -> Result<Vec<f32>, EmbedError>;

    /// Token ids that are read of a text and what stands before it, with what the model expects around them.
    ///
    /// # Errors
    /// [`TokenizeError`]. Ids beyond the context or the vocabulary may be given; they are refused here.
    fn tokenize(&self, text: &str, before: &Before) -> Result<Vec<u32>, TokenizeError>;
}

/// Makes token ids of a text and what stands before it, with what a model expects around them.
pub type Tokenize = Arc<dyn Fn(&str, &Before) -> Result<Vec<u32>, TokenizeError> + Send + Sync>;

/// Why the models could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// Two models of one name: rename a folder.
    #[error("two models are named {0:?}")]
    Duplicate(String),
    /// The system gives no thread.
    #[error("no thread for the model {id:?}: {source}")]
    Thread {
        /// The model.
        id: String,
        /// Why.
        source: std::io::Error,
    },
}

/// A request on its way to a model's thread. Its client is gone when `reply` is closed.
struct Job {
    texts: Texts,
    reply: oneshot::Sender<Result<Embedded, BackendError>>,
}

/// What stands before a model's thread.
enum Queue {
    Vectors(mpsc::Sender<Job>),
    Texts(Batch),
}

impl Queue {
    fn is_closed(&self) -> bool {
        match self {
            Self::Vectors(queue) => queue.is_closed(),
            Self::Texts(batch) => batch.is_closed(),
        }
    }
}

/// The models of this process.
///
/// A thread that panics takes its model with it: whoever waits is told [`BackendError::Stopped`], and
/// [`Backend::alive`] says no. Dropping this waits for the texts that each model is at; do it where blocking
/// is allowed.
#[derive(Default)]
pub struct Local {
    models: Vec<Model>,
    queues: Vec<Queue>,
    threads: Vec<JoinHandle<()>>,
}

impl Local {
    /// Without a model yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model with a thread, before which at most `queue` requests wait (at least 1).
    ///
    /// # Errors
    /// [`StartError`].
    pub fn add<E: Embedder + Send + 'static>(
        &mut self,
        model: Model,
        embedder: E,
        queue: usize,
    ) -> Result<(), StartError> {
        self.check_new(&model)?;
        let (sender, mut jobs) = mpsc::channel::<Job>(queue.max(1));
        let served = model.clone();
        let work = move || {
            while let Some(Job { texts, reply }) = jobs.blocking_recv() {
                if let Some(result) = compute(&served, &embedder, texts, &reply) {
                    // The client may have left meanwhile.
                    let _ = reply.send(result);
                }
            }
        };
        let thread = thread::Builder::new().name(format!("model {}", model.id)).spawn(work);
        self.threads.push(thread.map_err(|source| StartError::Thread { id: model.id.clone(), source })?);
        self.queues.push(Queue::Vectors(sender));
        self.models.push(model);
        Ok(())
    }

    /// Adds a model that continues texts, with a thread.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn add_decoder<D: Decoder + Send + 'static>(
        &mut self,
        model: Model,
        language: Arc<dyn Language>,
        decoder: D,
        capacity: Capacity,
    ) -> Result<(), StartError> {
        self.check_new(&model)?;
        let started = Batch::start(model.clone(), language, decoder, capacity);
        let (batch, thread) = started.map_err(|source| StartError::Thread { id: model.id.clone(), source })?;
        self.threads.push(thread);
        self.queues.push(Queue::Texts(batch));
        self.models.push(model);
        Ok(())
    }

    fn check_new(&self, model: &Model) -> Result<(), StartError> {
        match self.models.iter().find(|other| other.id == model.id) {
            Some(other) => Err(StartError::Duplicate(other.id.clone())),
            None => Ok(()),
        }
    }

    fn queue(&self, model: &str) -> Result<&Queue, BackendError> {
        let mut served = self.models.iter().zip(&self.queues);
        let found = served.find(|(served, _)| served.id == model).map(|(_, queue)| queue);
        found.ok_or_else(|| BackendError::UnknownModel(model.to_owned()))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.queues.clear();
        for thread in self.threads.drain(..) {
            // A panic has been printed by its own thread.
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl Backend for Local {
    fn models(&self) -> &[Model] {
        &self.models
    }

    fn alive(&self) -> bool {
        !self.queues.iter().any(Queue::is_closed)
    }

    async fn embed(&self, model: &str, texts: Texts) -> Result<Embedded, BackendError> {
        let Queue::Vectors(queue) = self.queue(model)? else { return Err(BackendError::OtherKind(model.to_owned())) };
        let (reply, answer) = oneshot::channel();
        queue.try_send(Job { texts, reply }).map_err(|refused| match refused {
            TrySendError::Full(_) => BackendError::Busy { retry_after: RETRY_AFTER },
            TrySendError::Closed(_) => BackendError::Stopped,
        })?;
        // Sent while the thread ended, it is never looked at, and never dropped.
        if queue.is_closed() {
            return Err(BackendError::Stopped);
        }
        answer.await.unwrap_or(Err(BackendError::Stopped))
    }

    async fn generate(&self, model: &str, ask: Ask) -> Result<Generated, BackendError> {
        match self.queue(model)? {
            Queue::Texts(batch) => Ok(Generated { generations: batch.generate(ask).await?, receipt: None }),
            Queue::Vectors(_) => Err(BackendError::OtherKind(model.to_owned())),
        }
    }
}

/// Computes a request; nothing once its client is gone.
fn compute<E: Embedder>(
    model: &Model,
    embedder: &E,
    Texts { inputs, before }: Texts,
    reply: &oneshot::Sender<Result<Embedded, BackendError>>,
) -> Option<Result<Embedded, BackendError>> {
    let mut texts = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.into_iter().enumerate() {
        if reply.is_closed() {
            return None;
        }
        match ids(model, |text| embedder.tokenize(text, &before), (index, input)) {
            Ok(ids) => texts.push(ids),
            Err(error) => return Some(Err(error)),
        }
    }
    let mut embeddings = Vec::with_capacity(texts.len());
    for ids in texts {
        if reply.is_closed() {
            return None;
        }
        match embed(model, embedder, &ids) {
            Ok(embedding) => embeddings.push(embedding),
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(Embedded { embeddings, receipt: None }))
}

/// The token ids of a text, all of them the model's.
pub(super) fn ids(
    model: &Model,
    tokenize: impl Fn(&str) -> Result<Vec<u32>, TokenizeError>,
    (index, input): (usize, Input),
) -> Result<Vec<u32>, BackendError> {
    let ids = match input {
        Input::Tokens(ids) => Ok(ids),
        Input::Text(text) => tokenize(&text),
    };
    known(model, index, ids)
}

fn embed<E: Embedder>(model: &Model, embedder: &E, ids: &[u32]) -> Result<Embedding, BackendError> {
    let vector = embedder.embed(ids).map_err(|error| failed("model", &*error))?;
    checked(model, Embedding { vector, tokens: u32::try_from(ids.len()).unwrap_or(u32::MAX) })
}

/// A vector that is what the model promises.
pub(super) fn checked(model: &Model, embedding: Embedding) -> Result<Embedding, BackendError> {
    let vector = &embedding.vector;
    let made = u32::try_from(vector.len()).ok();
    if made != model.makes.elements() || !vector.iter().all(|element| element.is_finite()) {
        return Err(BackendError::Failed(format!(
            "the model gave {} elements, some perhaps not finite, instead of finite {:?}",
            vector.len(),
            model.makes
        )));
    }
    Ok(embedding)
}
