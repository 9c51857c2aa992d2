//! `POST /v1/rerank` and `POST /v2/rerank`: documents by how well they answer a query, in the form of Jina's and
//! Cohere's APIs.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::backend::{Before, Embedded, Embedding, Input, Makes, Texts};
use super::error::ApiError;
use super::guard::Work;
use super::input::MAX_INPUTS;
use super::{Gateway, body, receipts};

#[derive(Deserialize)]
struct Wanted {
    model: String,
    query: String,
    documents: Vec<Document>,
    top_n: Option<usize>,
    return_documents: Option<bool>,
}

/// A document in its two forms.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a document is a text, or an object with a text")]
enum Document {
    Text(String),
    Object { text: String },
}

#[derive(Serialize)]
struct Answer {
    object: &'static str,
    model: String,
    results: Vec<Scored>,
    usage: Usage,
}

#[derive(Serialize)]
struct Scored {
    /// The document's place in the request.
    index: usize,
    relevance_score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<Shown>,
}

#[derive(Serialize)]
struct Shown {
    text: String,
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: u64,
    total_tokens: u64,
}

/// Answers with the documents, the best first.
pub(super) async fn create(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Result<Response, ApiError> {
    let deadline = Instant::now() + gateway.limits.time;
    // Held until the answer is made: what is held in memory for requests is bounded.
    let _admitted = gateway.admit()?;
    let (parts, body) = request.into_parts();
    let wanted: Wanted = body::read(&gateway, &parts.headers, body).await?;
    let model = gateway.model(&wanted.model)?;
    let Makes::Scores { sigmoid } = model.makes else { return Err(ApiError::other_kind(&model.id)) };
    let count = wanted.documents.len();
    if wanted.query.is_empty() {
        return Err(ApiError::invalid("query is an empty text: send at least one character.").at("query"));
    }
    if !(1..=MAX_INPUTS).contains(&count) {
        let message = format!("{count} documents: send 1 to {MAX_INPUTS} in one request.");
        return Err(ApiError::invalid(message).at("documents"));
    }
    if wanted.top_n == Some(0) {
        return Err(ApiError::invalid("top_n is 0: ask for at least one document.").at("top_n"));
    }
    let id = model.id.clone();
    let texts: Vec<String> = wanted.documents.into_iter().map(Document::into_text).collect();
    let shown = if wanted.return_documents == Some(true) { texts.clone() } else { Vec::new() };
    let inputs = texts.into_iter().map(Input::Text).collect();
    let asked = Texts { inputs, before: Before::Query(wanted.query) };
    let Embedded { embeddings, receipt } = gateway.embedded((&id, asked), deadline, "documents").await?;
    let tokens = embeddings.iter().map(|embedding| u64::from(embedding.tokens)).sum();
    let mut results = ranked(&embeddings, sigmoid);
    results.truncate(wanted.top_n.unwrap_or(usize::MAX));
    for result in &mut results {
        result.document = shown.get(result.index).map(|text| Shown { text: text.clone() });
    }
    let usage = Usage { prompt_tokens: tokens, total_tokens: tokens };
    let mut response = Json(Answer { object: "list", model: id, results, usage }).into_response();
    response.extensions_mut().insert(Work { texts: count, tokens });
    receipts::name(&mut response, receipt);
    Ok(response)
}

impl Document {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) | Self::Object { text } => text,
        }
    }
}

/// Scores, the highest first; of equal ones in the order of the request.
fn ranked(embeddings: &[Embedding], sigmoid: bool) -> Vec<Scored> {
    let score = |embedding: &Embedding| f64::from(embedding.vector.first().copied().unwrap_or_default());
    let mut scores: Vec<(usize, f64)> = embeddings.iter().map(score).enumerate().collect();
    // By the model's own numbers: of large ones the logistics are all 1.
    scores.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let told = |score: f64| if sigmoid { 1.0 / (1.0 + (-score).exp()) } else { score };
    let scored = |(index, score)| Scored { index, relevance_score: told(score), document: None };
    scores.into_iter().map(scored).collect()
}
