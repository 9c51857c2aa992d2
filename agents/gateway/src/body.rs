//! Bodies: whole, in time, within their limit, JSON of the expected form.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::BytesMut;
use futures::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::error::ApiError;
use super::{Gateway, Limits};

/// A body this many times too long is read to its end, and forgotten, so that the client has written it and reads why
/// it is refused.
const PATIENCE: usize = 8;
/// Fields of OpenAI's that ask for nothing which changes an answer here: the client's own notes, and hints about
/// caches, speed and effort. Not kept.
const NOTES: &[&str] = &[
    "messages.annotations",
    "messages.name",
    "messages.reasoning_content",
    "messages.refusal",
    "metadata",
    "parallel_tool_calls",
    "prediction",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "safety_identifier",
    "service_tier",
    "store",
    "stream_options.include_obfuscation",
    "user",
    "verbosity",
];
/// Most unknown fields that a line of the log names, and how many characters of each.
const MOST_NAMED: usize = 8;
const LONGEST_NAMED: usize = 64;

/// Reads a body and parses it, within the gateway's limits of bytes and time.
///
/// # Errors
/// What to tell the client.
pub(super) async fn read<T: DeserializeOwned>(
    gateway: &Gateway,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, ApiError> {
    let Limits { body: limit, time, .. } = gateway.limits;
    if !is_json(headers) {
        return Err(ApiError::not_json());
    }
    let bytes = tokio::time::timeout(time, collect(body, limit)).await.map_err(|_| ApiError::slow_body(time))??;
    let Parsed { value, unknown } = parse(&bytes)?;
    match unknown.first() {
        Some(field) if gateway.strict => {
            return Err(ApiError::invalid(format!("unknown field `{field}`.")).at(first(field)));
        }
        Some(_) => {
            tracing::warn!(fields = ?unknown, "a request has fields that are not known here: they change nothing");
        }
        None => {}
    }
    Ok(value)
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

/// A body, and the names of the first of its fields that nothing here reads.
struct Parsed<T> {
    value: T,
    unknown: Vec<String>,
}

/// Parses a body; an error names the field.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<Parsed<T>, ApiError> {
    if bytes.is_empty() {
        return Err(ApiError::invalid("The body is empty: send a JSON object."));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ApiError::invalid(format!("The body is not UTF-8, from byte {} on.", error.valid_up_to())))?;
    // An array would do for serde, its elements taken as the fields in order.
    if !text.trim_start().starts_with('{') {
        return Err(ApiError::invalid("The body is no JSON object."));
    }
    let (mut unknown, mut track) = (Vec::new(), serde_path_to_error::Track::new());
    let mut json = serde_json::Deserializer::from_str(text);
    let note = |path: serde_ignored::Path<'_>| {
        let path = of_all(&path.to_string());
        if !NOTES.contains(&path.as_str()) && unknown.len() < MOST_NAMED {
            unknown.push(path.chars().take(LONGEST_NAMED).collect());
        }
    };
    let value = serde_ignored::deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track), note);
    let value = value.map_err(|error: serde_json::Error| match error.classify() {
        Category::Data => {
            let path = track.path().to_string();
            let (field, error) = (first(&path).to_owned(), ApiError::invalid(format!("Invalid request: {error}.")));
            if field.is_empty() || field == "?" { error } else { error.at(field) }
        }
        Category::Syntax | Category::Eof | Category::Io => {
            ApiError::invalid(format!("The body is not valid JSON: {error}."))
        }
    })?;
    json.end().map_err(|error| ApiError::invalid(format!("The body is not valid JSON: {error}.")))?;
    Ok(Parsed { value, unknown })
}

/// A path without the numbers of elements and serde's marks of options.
fn of_all(path: &str) -> String {
    let segments = path.split('.').filter(|part| *part != "?" && !part.bytes().all(|byte| byte.is_ascii_digit()));
    segments.collect::<Vec<_>>().join(".")
}

/// The first segment of a path: OpenAI names fields, not paths.
fn first(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or_default()
}
