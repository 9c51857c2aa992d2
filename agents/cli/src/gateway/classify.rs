//! `POST /v1/classify` and `POST /classify`: how likely each class is of a text, in the form of vLLM's API.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::backend::{Embedded, Embedding, Makes, Texts};
use super::error::ApiError;
use super::guard::Work;
use super::input::Inputs;
use super::{Gateway, body, receipts};

#[derive(Deserialize)]
struct Wanted {
    model: String,
    input: Inputs,
}

#[derive(Serialize)]
struct Answer {
    object: &'static str,
    model: String,
    data: Vec<Classified>,
    usage: Usage,
}

#[derive(Serialize)]
struct Classified {
    index: usize,
    /// The name of the likeliest class.
    label: String,
    /// In the order of the model's classes.
    probs: Vec<f64>,
    num_classes: usize,
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: u64,
    total_tokens: u64,
}

/// Answers with the classes of each text.
pub(super) async fn create(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Result<Response, ApiError> {
    let deadline = Instant::now() + gateway.limits.time;
    // Held until the answer is made: what is held in memory for requests is bounded.
    let _admitted = gateway.admit()?;
    let (parts, body) = request.into_parts();
    let wanted: Wanted = body::read(&gateway, &parts.headers, body).await?;
    let model = gateway.model(&wanted.model)?.clone();
    let Makes::Classes { labels, several } = model.makes else { return Err(ApiError::other_kind(&model.id)) };
    let asked = Texts::from(wanted.input.0);
    let texts = asked.inputs.len();
    let Embedded { embeddings, receipt } = gateway.embedded((&model.id, asked), deadline, "input").await?;
    let tokens = embeddings.iter().map(|embedding| u64::from(embedding.tokens)).sum();
    let classified = |(index, embedding)| classified(index, embedding, &labels, several);
    let data = embeddings.iter().enumerate().map(classified).collect();
    let usage = Usage { prompt_tokens: tokens, total_tokens: tokens };
    let mut response = Json(Answer { object: "list", model: model.id, data, usage }).into_response();
    response.extensions_mut().insert(Work { texts, tokens });
    receipts::name(&mut response, receipt);
    Ok(response)
}

fn classified(index: usize, embedding: &Embedding, labels: &[String], several: bool) -> Classified {
    let logits = embedding.vector.iter().map(|logit| f64::from(*logit));
    let largest = logits.clone().fold(f64::NEG_INFINITY, f64::max);
    let probs: Vec<f64> = if several {
        logits.clone().map(|logit| 1.0 / (1.0 + (-logit).exp())).collect()
    } else {
        let sum: f64 = logits.clone().map(|logit| (logit - largest).exp()).sum();
        logits.clone().map(|logit| (logit - largest).exp() / sum).collect()
    };
    let likeliest = logits.clone().position(|logit| logit >= largest).and_then(|at| labels.get(at));
    Classified { index, label: likeliest.cloned().unwrap_or_default(), num_classes: probs.len(), probs }
}
