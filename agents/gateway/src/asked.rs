//! A request for computation: admitted and read, and what every answer to one carries.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;

use super::backend::{Embedded, ReceiptId, Texts};
use super::error::ApiError;
use super::guard::Work;
use super::{Gateway, body, receipts};

/// A request that is admitted, and how its answer begins.
pub(super) struct Asked {
    pub(super) gateway: Arc<Gateway>,
    pub(super) deadline: Instant,
    /// Held until the answer is made, to its last part: what is held in memory for requests is bounded.
    _place: OwnedSemaphorePermit,
}

impl Asked {
    /// Admits a request and reads it.
    pub(super) async fn read<T: DeserializeOwned>(
        gateway: Arc<Gateway>,
        request: Request<Body>,
    ) -> Result<(Self, T), ApiError> {
        let (deadline, place) = (Instant::now() + gateway.limits.time, gateway.admit()?);
        let (parts, body) = request.into_parts();
        let wanted = body::read(&gateway, &parts.headers, body).await?;
        Ok((Self { gateway, deadline, _place: place }, wanted))
    }

    /// What a model makes of texts that are in a field of the request.
    pub(super) async fn embedded(&self, model: &str, texts: Texts, field: &'static str) -> Result<Embedded, ApiError> {
        let embed = self.gateway.backend.embed(model, texts);
        match tokio::time::timeout_at(self.deadline.into(), embed).await {
            Err(_) => Err(ApiError::timeout(self.gateway.limits.time)),
            Ok(embedded) => embedded.map_err(|error| self.gateway.refusal(model, &error, field)),
        }
    }
}

/// Tokens of texts that nothing follows.
#[derive(Clone, Copy, Serialize)]
pub(super) struct TokensRead {
    prompt_tokens: u64,
    total_tokens: u64,
}

impl TokensRead {
    pub(super) fn of(embedded: &Embedded) -> Self {
        let tokens = embedded.embeddings.iter().map(|embedding| u64::from(embedding.tokens)).sum();
        Self { prompt_tokens: tokens, total_tokens: tokens }
    }

    /// For the request's line in the log.
    pub(super) const fn work(self, texts: usize) -> Work {
        Work { texts, tokens: self.total_tokens }
    }
}

/// An answer with the work that it was, for the log, and the name of its receipts.
pub(super) fn answered(mut answer: Response, work: Work, receipt: Option<ReceiptId>) -> Response {
    answer.extensions_mut().insert(work);
    receipts::name(&mut answer, receipt);
    answer
}
