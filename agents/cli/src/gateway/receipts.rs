//! `GET /v1/receipts/{id}`, and the header that tells ids.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue};
use serde_json::Value;

use super::Gateway;
use super::backend::{Embedding, ReceiptError, ReceiptId};
use super::error::ApiError;

/// Ids of the receipts of a response's texts, in their order: `JOB-TEXT`, or `JOB-FIRST..LAST` for consecutive texts, with commas between.
/// OpenAI's response to embeddings has no field for an id.
pub(super) const RECEIPT_ID: HeaderName = HeaderName::from_static("x-receipt-id");

/// The receipts of a text: job, text, tokens, and for each stage worker, claim id, claim, logs and signature.
pub(super) async fn get(State(gateway): State<Arc<Gateway>>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let parsed: ReceiptId = id.parse().map_err(|_| ApiError::unknown_receipt(&id, &ReceiptError::Unknown))?;
    let backend = Arc::clone(&gateway);
    let read = tokio::task::spawn_blocking(move || backend.backend.receipts(parsed));
    match read.await.map_err(|_| ApiError::internal())? {
        Ok(receipts) => Ok(Json(receipts)),
        Err(ReceiptError::Failed(reason)) => {
            tracing::error!(receipt = %parsed, "{reason}");
            Err(ApiError::internal())
        }
        Err(error) => Err(ApiError::unknown_receipt(&id, &error)),
    }
}

/// The header's value; none if no text has receipts.
pub(super) fn header(embeddings: &[Embedding]) -> Option<HeaderValue> {
    let mut runs: Vec<(ReceiptId, u32)> = Vec::new();
    for id in embeddings.iter().filter_map(|embedding| embedding.receipt) {
        match runs.last_mut() {
            Some((first, last)) if first.job == id.job && last.checked_add(1) == Some(id.text) => *last = id.text,
            _ => runs.push((id, id.text)),
        }
    }
    let run = |(first, last): &(ReceiptId, u32)| {
        if first.text == *last { first.to_string() } else { format!("{first}..{last}") }
    };
    let runs: Vec<String> = runs.iter().map(run).collect();
    if runs.is_empty() { None } else { HeaderValue::from_str(&runs.join(",")).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_texts_are_told_as_a_run() {
        let of = |ids: &[(u64, u32)]| {
            let embedding = |(job, text): &(u64, u32)| {
                let receipt = Some(ReceiptId { job: *job, text: *text });
                Embedding { vector: vec![], tokens: 1, receipt }
            };
            let embeddings: Vec<_> = ids.iter().map(embedding).collect();
            header(&embeddings).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(3, 17)]).unwrap(), "3-17");
        assert_eq!(of(&[(3, 17), (3, 18), (3, 19), (3, 21), (4, 22)]).unwrap(), "3-17..19,3-21,4-22");
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = ReceiptId { job: 3, text: 17 };
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "3", "3-", "-1", "3-17..19", "3-4294967296", "a-b", "3-1-2"] {
            assert!(wrong.parse::<ReceiptId>().is_err(), "{wrong}");
        }
    }
}
