//! Bodies: whole, in time, within their limit, JSON of the expected form.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::BytesMut;
use futures::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::error::ApiError;

/// A body this many times too long is read to its end, and forgotten, so that the client has written it and reads why
/// it is refused.
const PATIENCE: usize = 8;

/// Reads a body and parses it; at most `limit` bytes, within `time`.
///
/// # Errors
/// What to tell the client.
pub(super) async fn read<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    time: Duration,
) -> Result<T, ApiError> {
    if !is_json(headers) {
        return Err(ApiError::not_json());
    }
    let bytes = tokio::time::timeout(time, collect(body, limit)).await.map_err(|_| ApiError::slow_body(time))??;
    parse(&bytes)
}

/// Browsers let any page send bodies of other kinds to a gateway without keys on its reader's machine; JSON they ask
/// for first.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

async fn collect(body: Body, limit: usize) -> Result<BytesMut, ApiError> {
    let mut stream = body.into_data_stream();
    let mut bytes = BytesMut::new();
    let mut seen = 0usize;
    while let Some(part) = stream.next().await {
        let part = part.map_err(|_| ApiError::invalid("The body ended before all of it was there."))?;
        seen = seen.saturating_add(part.len());
        if seen <= limit {
            bytes.extend_from_slice(&part);
        } else if seen > limit.saturating_mul(PATIENCE) {
            break;
        }
    }
    if seen > limit { Err(ApiError::too_large(limit)) } else { Ok(bytes) }
}

/// Parses a body; an error names the field.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    if bytes.is_empty() {
        return Err(ApiError::invalid("The body is empty: send a JSON object."));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ApiError::invalid(format!("The body is not UTF-8, from byte {} on.", error.valid_up_to())))?;
    // An array would do for serde, its elements taken as the fields in order.
    if !text.trim_start().starts_with('{') {
        return Err(ApiError::invalid("The body is no JSON object."));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.inner();
        match inner.classify() {
            // The first segment: OpenAI names fields, not paths.
            Category::Data => {
                let field = path.split(['.', '[']).next().unwrap_or_default().to_owned();
                let error = ApiError::invalid(format!("Invalid request: {inner}."));
                if field.is_empty() || field == "?" { error } else { error.at(field) }
            }
            Category::Syntax | Category::Eof | Category::Io => {
                ApiError::invalid(format!("The body is not valid JSON: {inner}."))
            }
        }
    })?;
    deserializer.end().map_err(|error| ApiError::invalid(format!("The body is not valid JSON: {error}.")))?;
    Ok(value)
}
