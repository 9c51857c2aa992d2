//! `POST /v1/embeddings`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::Gateway;
use super::asked::{Asked, TokensRead, answered};
use super::backend::{Before, Embedding, Input, Makes, Texts};
use super::error::ApiError;
use super::input::Inputs;

#[derive(Deserialize)]
struct Wanted {
    model: String,
    input: Inputs,
    encoding_format: Option<Encoding>,
    dimensions: Option<u64>,
    /// Not OpenAI's: which of the model's prompts stands before each text.
    prompt_name: Option<String>,
}

#[derive(Clone, Copy, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum Encoding {
    #[default]
    Float,
    Base64,
}

#[derive(Serialize)]
struct Answer {
    object: &'static str,
    data: Vec<Item>,
    model: String,
    usage: TokensRead,
}

#[derive(Serialize)]
struct Item {
    object: &'static str,
    index: usize,
    embedding: Vector,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Vector {
    Floats(Vec<f32>),
    /// Little-endian 32-bit floats.
    Base64(String),
}

/// Answers with a vector for each text.
pub(super) async fn create(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Result<Response, ApiError> {
    let (asked, wanted): (_, Wanted) = Asked::read(gateway, request).await?;
    let model = asked.gateway.model(&wanted.model)?;
    let Makes::Vectors { dimensions: made } = model.makes else { return Err(ApiError::other_kind(&model.id)) };
    if let Some(dimensions) = wanted.dimensions
        && dimensions != u64::from(made)
    {
        let message = format!("This model gives vectors of {made} elements, not {dimensions}: leave dimensions out.");
        return Err(ApiError::invalid(message).at("dimensions"));
    }
    let id = model.id.clone();
    let before = wanted.prompt_name.map_or(Before::Default, Before::Prompt);
    let texts = Texts { inputs: wanted.input.0, before };
    if texts.before != Before::Default && texts.inputs.iter().any(|input| matches!(input, Input::Tokens(_))) {
        let message = "prompt_name is for texts: token ids are taken as they are, leave it out.";
        return Err(ApiError::invalid(message).at("prompt_name"));
    }
    let embedded = asked.embedded(&id, texts, "input").await?;
    let (usage, receipt) = (TokensRead::of(&embedded), embedded.receipt);
    let work = usage.work(embedded.embeddings.len());
    let encoding = wanted.encoding_format.unwrap_or_default();
    // Megabytes of digits for thousands of texts: not on a thread that others wait for.
    let answer = tokio::task::spawn_blocking(move || answer(id, embedded.embeddings, encoding, usage));
    Ok(answered(answer.await.map_err(|_| ApiError::internal())?, work, receipt))
}

fn answer(model: String, embeddings: Vec<Embedding>, encoding: Encoding, usage: TokensRead) -> Response {
    let item = |(index, embedding): (usize, Embedding)| Item {
        object: "embedding",
        index,
        embedding: match encoding {
            Encoding::Float => Vector::Floats(embedding.vector),
            Encoding::Base64 => {
                let bytes: Vec<u8> = embedding.vector.iter().flat_map(|element| element.to_le_bytes()).collect();
                Vector::Base64(STANDARD.encode(bytes))
            }
        },
    };
    let data = embeddings.into_iter().enumerate().map(item).collect();
    Json(Answer { object: "list", data, model, usage }).into_response()
}
