//! The HTTP gateway: models to whoever speaks OpenAI's API. It knows nothing of any model.
//!
//! | module | what lives there |
//! |---|---|
//! | [`backend`] | the port to what computes |
//! | [`local`], [`exact`] | models in this process, on threads behind bounded queues; exact models as such |
//! | [`remote`] | a model on the workers of a serving job |
//! | [`server`], `connections` | connections, their end; how many, and who makes room |
//! | [`origins`] | pages in browsers, names of this machine |
//! | `guard` | request ids, API keys, rates, log lines |
//! | [`keys`], [`limit`] | keys in files; token buckets |
//! | `asked` | requests for computation, and what their answers have in common |
//! | `body`, [`input`] | bodies and texts, bounded while they are read |
//! | [`generation`] | continuing texts, token by token |
//! | `embeddings`, `rerank`, `classify`, `models`, `texts`, `receipts` | the endpoints |
//! | [`error`] | errors in OpenAI's form |
//!
//! What is offered is as in <https://platform.openai.com/docs/api-reference>; `GET /healthz` needs no key. Connections
//! are plain HTTP/1.1: a proxy in front adds TLS.
//!
//! | request | fields |
//! |---|---|
//! | `GET /v1/models`, `GET /v1/models/{id}` | |
//! | `POST /v1/embeddings` | `model`; `input`: a text, texts, token ids, arrays of them; `encoding_format`; `dimensions`: the model's own |
//! | `POST /v1/rerank`, `POST /v2/rerank` (as Jina's) | `model`; `query`; `documents`; `top_n`; `return_documents` |
//! | `POST /v1/classify`, `POST /classify` (as vLLM's) | `model`; `input`, as of embeddings |
//! | `POST /v1/completions` | `model`; `prompt`, in the forms of `input`, at most 16; `max_tokens` (16) |
//! | `POST /v1/chat/completions` | `model`; `messages`: `system`, `developer`, `user`, `assistant`, of texts or text parts; `max_completion_tokens` or `max_tokens` (what the context holds) |
//! | both of these | `temperature` 0 to 2 (1), `top_k` (all; not OpenAI's), `top_p` 0 to 1 (1), `min_p` 0 to 1 (0; not OpenAI's), `seed`, `stop`: up to 4, `stream`, `stream_options.include_usage` |
//! | `GET /v1/receipts/{id}` | (over the workers of a serving job) |
//! | all `POST` | `user`, which is not kept |
//!
//! `max_tokens` beyond what the context has room for is cut to it, and the text ends with the reason `length`. A chat's
//! `chat_template_kwargs` go to the chat template. Fields that would change the answer in a way that is not offered are
//! taken at their defaults and refused by name at any other value: `n`, `best_of`, `echo`, `logprobs`, `logit_bias`,
//! penalties, `suffix`, tools, `response_format` other than text. All others change nothing: OpenAI's own
//! silently, unknown ones with a line in the log, or refused by name where `--strict` asks for it. Equal requests with
//! equal seeds give equal texts; without a seed, each text of a request has its own draws. `system_fingerprint` names
//! the model and the version that made the text.
//!
//! Pages in browsers may ask if their origin is this machine's, or one that `--allow-origin` names. Where no key is
//! asked for, requests must name this machine as loopback addresses do, whatever other names point to it.
//!
//! Over the workers of a serving job, a response names its receipts in the header `x-receipt-id`, because OpenAI's
//! schema has no field for it, and `GET /v1/receipts/{id}` answers with the signed receipts of every text and stage:
//! what `tensorlink challenge --receipt` takes. Those of a continued text are made once it has ended, also by its
//! reader's leaving; until then they are not known.
//!
//! A model of one's own behind the gateway:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//! use tensorlink_gateway::backend::{Backend, Before, EmbedError, Makes, Model, TokenizeError};
//! use tensorlink_gateway::local::{Embedder, Local};
//! use tensorlink_gateway::{Access, Gateway, Limits};
//!
//! /// Makes the vector of a text of its first letter.
//! struct Initial;
//!
//! impl Embedder for Initial {
//!     fn embed(&self, ids: &[u32]) -> Result<Vec<f32>, EmbedError> {
//!         Ok(vec![ids[0] as f32])
//!     }
//!
//!     fn tokenize(&self, text: &str, _: &Before) -> Result<Vec<u32>, TokenizeError> {
//!         Ok(text.bytes().map(u32::from).collect())
//!     }
//! }
//!
//! let makes = Makes::Vectors { dimensions: 1 };
//! let mut models = Local::new();
//! models.add(Model { id: "initial".into(), created: 0, context: 100, vocabulary: 256, makes }, Initial, 8)?;
//! assert!(models.alive());
//! let gateway = Gateway::new(Arc::new(models), Access::Open, Limits::default(), Instant::now());
//! let endpoints: axum::Router = gateway.router();
//! # drop(endpoints);
//! # Ok::<(), tensorlink_gateway::local::StartError>(())
//! ```

mod asked;
pub mod backend;
mod body;
mod classify;
mod connections;
mod embeddings;
pub mod error;
pub mod exact;
pub mod generation;
mod guard;
pub mod input;
pub mod keys;
pub mod limit;
pub mod local;
mod models;
pub mod origins;
mod receipts;
pub mod remote;
mod rerank;
pub mod server;
mod texts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware;
use axum::routing::{get, post};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use backend::{Backend, BackendError, Model};
use error::ApiError;
use keys::Keys;
use limit::Buckets;
use origins::Origins;

const OFFERED: &str = "GET /v1/models, GET /v1/models/{model}, POST /v1/embeddings, POST /v1/rerank, \
                       POST /v1/classify, POST /v1/completions, POST /v1/chat/completions, GET /v1/receipts/{id}, GET /healthz";
/// When a client whom we cannot admit should come back.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Who may ask.
#[derive(Debug)]
pub enum Access {
    /// Whoever has one of these keys.
    Keys(Keys),
    /// Whoever reaches the address: for loopback addresses only.
    Open,
}

/// What requests may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// From a request's head to vectors or to a text's first token, and from token to token; as long again for a body
    /// that comes slowly.
    pub time: Duration,
    /// Requests for computation at once, whose bodies and answers lie in memory.
    pub requests: usize,
    /// Requests of each key's in a minute, if they are counted.
    pub per_minute: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 4 << 20, time: Duration::from_secs(60), requests: 256, per_minute: Some(600) }
    }
}

/// The gateway to one backend.
pub struct Gateway {
    backend: Arc<dyn Backend>,
    access: Access,
    limits: Limits,
    buckets: Option<Buckets>,
    origins: Arc<Origins>,
    /// Whether a field that nothing reads is an error.
    strict: bool,
    places: Arc<Semaphore>,
}

impl Gateway {
    /// A gateway whose buckets are full at `now`; pages of this machine may ask it, and fields that it does not know
    /// change nothing.
    pub fn new(backend: Arc<dyn Backend>, access: Access, limits: Limits, now: Instant) -> Self {
        let callers = match &access {
            Access::Keys(keys) => keys.count(),
            Access::Open => 1,
        };
        let buckets = limits.per_minute.map(|per_minute| Buckets::new(callers, per_minute, now));
        let places = Arc::new(Semaphore::new(limits.requests));
        Self { backend, access, limits, buckets, origins: Arc::default(), strict: false, places }
    }

    /// The same, which pages of these origins may ask, too.
    #[must_use]
    pub fn with_origins(self, origins: Origins) -> Self {
        Self { origins: Arc::new(origins), ..self }
    }

    /// The same, which refuses fields that it does not know.
    #[must_use]
    pub fn strict(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    /// The endpoints.
    pub fn router(self) -> Router {
        let origins = Arc::clone(&self.origins);
        let gateway = Arc::new(self);
        let api = Router::new()
            .route("/v1/models", get(models::list))
            .route("/v1/models/{*id}", get(models::get))
            .route("/v1/embeddings", post(embeddings::create))
            .route("/v1/classify", post(classify::create))
            .route("/classify", post(classify::create))
            .route("/v1/rerank", post(rerank::create))
            .route("/v2/rerank", post(rerank::create))
            .route("/v1/receipts/{id}", get(receipts::get))
            .route("/v1/completions", post(texts::completions::create))
            .route("/v1/chat/completions", post(texts::chat::create))
            .route_layer(middleware::from_fn_with_state(Arc::clone(&gateway), guard::admit));
        Router::new()
            .merge(api)
            .route("/healthz", get(models::health))
            .fallback(unknown)
            .method_not_allowed_fallback(other_method)
            .layer(middleware::from_fn_with_state(origins, origins::answer))
            .layer(middleware::from_fn(guard::observe))
            .with_state(gateway)
    }

    /// A place among the requests for computation.
    fn admit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| ApiError::overloaded(RETRY_AFTER))
    }

    /// What a client is told of a backend's error over a model; the log is told more. `field` is the request's field
    /// with the texts.
    fn refusal(&self, model: &str, error: &BackendError, field: &'static str) -> ApiError {
        if let BackendError::Failed(reason) = error {
            tracing::error!(model, "{reason}");
        }
        ApiError::of_backend(error, &self.served(), field)
    }

    /// The names of the models, for messages.
    fn served(&self) -> String {
        let names: Vec<&str> = self.backend.models().iter().map(|model| model.id.as_str()).collect();
        names.join(", ")
    }

    fn model(&self, id: &str) -> Result<&Model, ApiError> {
        let found = self.backend.models().iter().find(|model| model.id == id);
        found.ok_or_else(|| ApiError::unknown_model(id, &self.served()))
    }
}

async fn unknown(method: Method, uri: Uri) -> ApiError {
    ApiError::unknown_url(format!("Unknown request URL: {method} {}. Offered: {OFFERED}.", uri.path()))
}

async fn other_method(method: Method, uri: Uri) -> ApiError {
    ApiError::method(format!("Not allowed to {method} {}. Offered: {OFFERED}.", uri.path()))
}
