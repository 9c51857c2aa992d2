//! A model on the workers of a serving job: tokens go there, vectors and receipts come back.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{StreamExt, TryStreamExt, iter};
use tensorlink_types::JobId;
use tensorlink_user::serving::{Pipeline, Receipts, TextError};
use tokio::sync::Semaphore;

use super::backend::{Backend, BackendError, Embedded, Embedding, Input, Model, ReceiptError, ReceiptId};
use super::local::{TokenizeError, checked, ids};

/// When a client whom a full queue refused should come back.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Texts of one request under way at once, so that stages need not wait for one another, and other requests get through.
const AT_ONCE: usize = 8;

/// Makes token ids of a text, with what the model expects around it, never cut short.
pub type Tokenize = Arc<dyn Fn(&str) -> Result<Vec<u32>, TokenizeError> + Send + Sync>;

/// A model that others compute.
pub struct Remote {
    model: [Model; 1],
    pipeline: Pipeline,
    tokenize: Tokenize,
    places: Semaphore,
}

impl Remote {
    /// A model over a pipeline of its stages; at most `queue` requests at once.
    pub fn new(model: Model, pipeline: Pipeline, tokenize: Tokenize, queue: usize) -> Self {
        Self { model: [model], pipeline, tokenize, places: Semaphore::new(queue) }
    }

    /// Takes no more texts, and pays for those that were delivered. The job stays open.
    pub async fn close(&self) {
        self.pipeline.close().await;
    }

    /// Token ids of all texts; one bad text refuses them all.
    async fn ids(&self, inputs: Vec<Input>) -> Result<Vec<Vec<u32>>, BackendError> {
        let [model] = self.model.clone();
        let tokenize = Arc::clone(&self.tokenize);
        let all = move || inputs.into_iter().enumerate().map(|input| ids(&model, &*tokenize, input)).collect();
        match tokio::task::spawn_blocking(all).await {
            Ok(ids) => ids,
            Err(error) => Err(BackendError::Failed(format!("tokenizer: {error}"))),
        }
    }

    async fn text(&self, number: u32, ids: Vec<u32>) -> Result<Embedding, BackendError> {
        let (output, receipts) = self.pipeline.compute(number, &ids).await.map_err(refusal)?;
        // A mantissa of up to 16 bits is a float of the same value.
        let vector = output.to_f64().into_iter().map(|value| value as f32).collect();
        let [model] = &self.model;
        checked(model, Embedding { vector, tokens: receipts.tokens })
    }
}

/// What a text's failure is to a client.
fn refusal(error: TextError) -> BackendError {
    if error.is_busy() {
        return BackendError::Busy { retry_after: RETRY_AFTER };
    }
    match error {
        TextError::Stage { .. } => {
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
        self.pipeline.alive()
    }

    async fn embed(&self, model: &str, inputs: Vec<Input>) -> Result<Embedded, BackendError> {
        let [served] = &self.model;
        if served.id != model {
            return Err(BackendError::UnknownModel(model.to_owned()));
        }
        let _place = self.places.try_acquire().map_err(|_| BackendError::Busy { retry_after: RETRY_AFTER })?;
        let texts = self.ids(inputs).await?;
        let count = u32::try_from(texts.len()).map_err(|_| BackendError::Failed("too many texts".into()))?;
        let numbers = self.pipeline.reserve(count).map_err(refusal)?;
        let (job, first, last) = (self.pipeline.job().0, numbers.start, numbers.end.saturating_sub(1));
        let computed = iter(numbers.zip(texts)).map(|(number, ids)| self.text(number, ids));
        let embeddings: Vec<Embedding> = computed.buffered(AT_ONCE).try_collect().await?;
        let receipt = (!embeddings.is_empty()).then_some(ReceiptId { job, first, last });
        Ok(Embedded { embeddings, receipt })
    }

    fn receipts(&self, id: ReceiptId) -> Result<serde_json::Value, ReceiptError> {
        if JobId(id.job) != self.pipeline.job() {
            return Err(ReceiptError::Unknown);
        }
        let failed = |error: String| ReceiptError::Failed(error);
        let mut texts = Vec::new();
        for text in id.first..=id.last {
            let found = self.pipeline.receipts(text).map_err(|error| failed(error.to_string()))?;
            texts.push(found.ok_or(ReceiptError::Unknown)?);
        }
        serde_json::to_value(Receipts { texts }).map_err(|error| failed(error.to_string()))
    }
}
