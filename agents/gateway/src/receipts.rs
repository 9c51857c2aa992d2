//! `GET /v1/receipts/{id}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use serde_json::Value;

use super::Gateway;
use super::backend::{ReceiptError, ReceiptId};
use super::error::ApiError;
use super::input::MAX_INPUTS;

/// The id of the receipts of a response's texts. OpenAI's responses have no field for it.
const RECEIPT_ID: HeaderName = HeaderName::from_static("x-receipt-id");

/// Names the receipts of a response in its head, if there are any.
pub(super) fn name(response: &mut Response, receipt: Option<ReceiptId>) {
    if let Some(id) = receipt.and_then(|id| HeaderValue::from_str(&id.to_string()).ok()) {
        response.headers_mut().insert(RECEIPT_ID, id);
    }
}

/// The receipts of the texts of a response: for each text its job, number and tokens, and for each stage worker, claim
/// id, claim, logs and signature.
pub(super) async fn get(State(gateway): State<Arc<Gateway>>, Path(id): Path<String>) -> Result<Json<Value>, ApiError> {
    let unknown = |error: &ReceiptError| ApiError::unknown_receipt(&id, error);
    let parsed = id.parse::<ReceiptId>().ok();
    // No response has more texts than a request.
    let parsed = parsed.filter(|id| ((id.last - id.first) as usize) < MAX_INPUTS);
    let parsed = parsed.ok_or_else(|| unknown(&ReceiptError::Unknown))?;
    let backend = Arc::clone(&gateway);
    let read = tokio::task::spawn_blocking(move || backend.backend.receipts(parsed));
    match read.await.map_err(|_| ApiError::internal())? {
        Ok(receipts) => Ok(Json(receipts)),
        Err(ReceiptError::Failed(reason)) => {
            tracing::error!(receipt = %parsed, "{reason}");
            Err(ApiError::internal())
        }
        Err(error) => Err(unknown(&error)),
    }
}
