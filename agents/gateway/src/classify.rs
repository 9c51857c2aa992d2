//! `POST /v1/classify` and `POST /classify`: how likely each class is of a text, in the form of vLLM's API.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::Gateway;
use super::asked::{Asked, TokensRead, answered};
use super::backend::{Embedding, Makes, Texts, logistic};
use super::error::ApiError;
use super::input::Inputs;

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
    usage: TokensRead,
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

/// Answers with the classes of each text.
pub(super) async fn create(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Result<Response, ApiError> {
    let (asked, wanted): (_, Wanted) = Asked::read(gateway, request).await?;
    let model = asked.gateway.model(&wanted.model)?.clone();
    let Makes::Classes { labels, several } = model.makes else { return Err(ApiError::other_kind(&model.id)) };
    let embedded = asked.embedded(&model.id, Texts::from(wanted.input.0), "input").await?;
    let classified = |(index, embedding)| classified(index, embedding, &labels, several);
    let data: Vec<Classified> = embedded.embeddings.iter().enumerate().map(classified).collect();
    let usage = TokensRead::of(&embedded);
    let work = usage.work(data.len());
    let answer = Json(Answer { object: "list", model: model.id, data, usage }).into_response();
    Ok(answered(answer, work, embedded.receipt))
}

fn classified(index: usize, embedding: &Embedding, labels: &[String], several: bool) -> Classified {
    let logits: Vec<f64> = embedding.vector.iter().map(|logit| f64::from(*logit)).collect();
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let probs: Vec<f64> = if several {
        logits.iter().copied().map(logistic).collect()
    } else {
        let powers: Vec<f64> = logits.iter().map(|logit| (logit - largest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(|power| power / sum).collect()
    };
    let likeliest = logits.iter().position(|logit| *logit >= largest).and_then(|at| labels.get(at));
    Classified { index, label: likeliest.cloned().unwrap_or_default(), num_classes: probs.len(), probs }
}
