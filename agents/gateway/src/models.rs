//! `GET /v1/models`, `GET /v1/models/{id}`, `GET /healthz`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Serialize;

use super::Gateway;
use super::backend::Model;
use super::error::ApiError;

#[derive(Serialize)]
pub(super) struct Listed {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// Most tokens of a text and its continuation; so named by vLLM, whose clients look for it.
    max_model_len: u32,
}

#[derive(Serialize)]
pub(super) struct List {
    object: &'static str,
    data: Vec<Listed>,
}

#[derive(Serialize)]
pub(super) struct Health {
    status: &'static str,
}

fn listed(model: &Model) -> Listed {
    Listed {
        id: model.id.clone(),
        object: "model",
        created: model.created,
        owned_by: "tensorlink",
        max_model_len: model.context,
    }
}

/// All models.
pub(super) async fn list(State(gateway): State<Arc<Gateway>>) -> Json<List> {
    Json(List { object: "list", data: gateway.backend.models().iter().map(listed).collect() })
}

/// One model.
pub(super) async fn get(State(gateway): State<Arc<Gateway>>, Path(id): Path<String>) -> Result<Json<Listed>, ApiError> {
    gateway.model(&id).map(|model| Json(listed(model)))
}

/// Whether every model answers; for whoever restarts processes.
pub(super) async fn health(State(gateway): State<Arc<Gateway>>) -> (StatusCode, Json<Health>) {
    if gateway.backend.alive() {
        (StatusCode::OK, Json(Health { status: "ok" }))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Json(Health { status: "a model has stopped" }))
    }
}
