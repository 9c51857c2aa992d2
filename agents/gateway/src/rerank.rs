//! `POST /v1/rerank` and `POST /v2/rerank`: documents by how well they answer a query, in the form of Jina's and
//! Cohere's APIs.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::Gateway;
use super::asked::{Asked, TokensRead, answered};
use super::backend::{Before, Embedding, Input, Makes, Texts, logistic};
use super::error::ApiError;
use super::input::MAX_INPUTS;

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
    usage: TokensRead,
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

/// Answers with the documents, the best first.
pub(super) async fn create(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Result<Response, ApiError> {
    let (asked, wanted): (_, Wanted) = Asked::read(gateway, request).await?;
    let model = asked.gateway.model(&wanted.model)?;
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
    let texts = Texts { inputs: texts.into_iter().map(Input::Text).collect(), before: Before::Query(wanted.query) };
    let embedded = asked.embedded(&id, texts, "documents").await?;
    let mut results = ranked(&embedded.embeddings, sigmoid);
    results.truncate(wanted.top_n.unwrap_or(usize::MAX));
    for result in &mut results {
        result.document = shown.get(result.index).map(|text| Shown { text: text.clone() });
    }
    let usage = TokensRead::of(&embedded);
    let answer = Json(Answer { object: "list", model: id, results, usage }).into_response();
    Ok(answered(answer, usage.work(count), embedded.receipt))
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
    let told = |score| if sigmoid { logistic(score) } else { score };
    let scored = |(index, score)| Scored { index, relevance_score: told(score), document: None };
    scores.into_iter().map(scored).collect()
}
