//! Errors in OpenAI's form: `{"error": {"message", "type", "param", "code"}}`, with the status that their clients
//! act on.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::backend::{BackendError, ReceiptError};

/// What a client did wrong, or we.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<String>,
    message: String,
    retry_after: Option<Duration>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    param: Option<&'a str>,
    code: Option<&'static str>,
}

const INVALID_REQUEST: &str = "invalid_request_error";
const SERVER: &str = "server_error";

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, code: Option<&'static str>, message: impl Into<String>) -> Self {
        Self { status, kind, code, param: None, message: message.into(), retry_after: None }
    }

    /// 400: the request itself is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, None, message)
    }

    /// 401: no key, or not one of ours.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, INVALID_REQUEST, Some("invalid_api_key"), message)
    }

    /// 403: asked by a name that is not this machine's.
    pub fn other_host(host: &str) -> Self {
        let message = format!(
            "This server asks for no key, and so answers only by the names of the machine it runs on: ask http://localhost \
             or http://127.0.0.1, not {host:?}."
        );
        Self::new(StatusCode::FORBIDDEN, INVALID_REQUEST, Some("host_not_allowed"), message)
    }

    /// 403: a page of an origin that may not ask.
    pub fn other_origin(origin: &str) -> Self {
        let message = format!(
            "Pages of {origin:?} may not ask this server. Whoever runs it admits them by --allow-origin {origin}."
        );
        Self::new(StatusCode::FORBIDDEN, INVALID_REQUEST, Some("origin_not_allowed"), message)
    }

    /// 404: a model that is not served; `served` are the names of those that are.
    pub fn unknown_model(id: &str, served: &str) -> Self {
        let message = format!("The model {id:?} does not exist here. Served: {served}.");
        Self::new(StatusCode::NOT_FOUND, INVALID_REQUEST, Some("model_not_found"), message).at("model")
    }

    /// 404: no receipts of this id.
    pub fn unknown_receipt(id: &str, why: &ReceiptError) -> Self {
        let message = format!("There are no receipts {id:?}: {why}.");
        Self::new(StatusCode::NOT_FOUND, INVALID_REQUEST, Some("receipt_not_found"), message).at("id")
    }

    /// 404: no such address.
    pub fn unknown_url(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, INVALID_REQUEST, Some("unknown_url"), message)
    }

    /// 405: the address exists, for another method.
    pub fn method(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, INVALID_REQUEST, Some("method_not_supported"), message)
    }

    /// 408: the body did not arrive in time.
    pub fn slow_body(limit: Duration) -> Self {
        let message = format!("The body of the request did not arrive within {} s.", limit.as_secs());
        Self::new(StatusCode::REQUEST_TIMEOUT, INVALID_REQUEST, Some("request_timeout"), message)
    }

    /// 413: the body exceeds `limit` bytes.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("The body exceeds {limit} bytes: send fewer or shorter inputs in one request.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST, Some("request_too_large"), message)
    }

    /// 415: the body is not declared as JSON.
    pub fn not_json() -> Self {
        let message = "Send JSON, with the header \"Content-Type: application/json\".";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_REQUEST, Some("unsupported_media_type"), message)
    }

    /// 429: a key asks too often.
    pub fn rate_limited(per_minute: u32, retry_after: Duration) -> Self {
        let message = format!("Rate limit reached: {per_minute} requests per minute for each key.");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "requests", Some("rate_limit_exceeded"), message).after(retry_after)
    }

    /// 429: too many requests are under way.
    pub fn overloaded(retry_after: Duration) -> Self {
        let message = "Too many requests are waiting already. Try again shortly.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "requests", Some("overloaded"), message).after(retry_after)
    }

    /// 500: our fault; the log says more under the request's id.
    pub fn internal() -> Self {
        let message = "The server failed over this request. Tell its operator the x-request-id of this response.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, SERVER, Some("internal_error"), message)
    }

    /// 503: nobody answers any more.
    pub fn stopped() -> Self {
        let message = "The model has stopped. Try again later, or tell the server's operator.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, SERVER, Some("service_unavailable"), message)
    }

    /// 503: no token of a text came within `limit`.
    pub fn slow_text(limit: Duration) -> Self {
        let message = format!("No token within {} s: try again, or with a shorter prompt.", limit.as_secs());
        Self::new(StatusCode::SERVICE_UNAVAILABLE, SERVER, Some("timeout"), message)
    }

    /// 503: the answer took longer than `limit`.
    pub fn timeout(limit: Duration) -> Self {
        let message = format!("No answer within {} s: send fewer inputs in one request.", limit.as_secs());
        Self::new(StatusCode::SERVICE_UNAVAILABLE, SERVER, Some("timeout"), message)
    }

    /// Names the field at fault.
    #[must_use]
    pub fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    fn coded(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// 404, as OpenAI has it: the model exists, but not at this address.
    pub fn other_kind(id: &str) -> Self {
        let message = format!(
            "The model {id:?} is not supported at this address: models that make vectors answer POST /v1/embeddings, models \
             that score texts POST /v1/rerank, models that tell classes apart POST /v1/classify, models that continue texts POST /v1/completions and POST /v1/chat/completions."
        );
        Self::new(StatusCode::NOT_FOUND, INVALID_REQUEST, None, message).at("model")
    }

    /// What a backend's error is to a client; `served` are the names of the models, `field` holds the texts.
    pub fn of_backend(error: &BackendError, served: &str, field: &'static str) -> Self {
        match error {
            BackendError::UnknownModel(id) => Self::unknown_model(id, served),
            BackendError::OtherKind(id) => Self::other_kind(id),
            BackendError::NoRoom { index, tokens, wanted, context } => Self::invalid(format!(
                "This model's maximum context length is {context} tokens, however you requested {} tokens ({tokens} in input \
                 {index}, {wanted} for the completion). Shorten the input, or ask for fewer tokens.",
                tokens.saturating_add(*wanted as usize)
            ))
            .at(field)
            .coded("context_length_exceeded"),
            BackendError::Empty { index } => {
                Self::invalid(format!("Input {index} has no tokens: leave it out.")).at(field)
            }
            BackendError::TooLong { index, tokens, context } => Self::invalid(format!(
                "This model's maximum context length is {context} tokens, however input {index} has {tokens} tokens. \
                 Shorten or split it."
            ))
            .at(field)
            .coded("context_length_exceeded"),
            BackendError::UnknownToken { index, token, vocabulary } => Self::invalid(format!(
                "Input {index} holds the token id {token}; this model's ids are below {vocabulary}. Use its own tokenizer."
            ))
            .at(field),
            BackendError::Prompt(reason) => Self::invalid(format!("prompt_name: {reason}.")).at("prompt_name"),
            BackendError::Refused { index, reason } => Self::invalid(format!("Input {index}: {reason}.")).at(field),
            BackendError::Busy { retry_after } => Self::overloaded(*retry_after),
            BackendError::Stopped => Self::stopped(),
            BackendError::Failed(_) => Self::internal(),
        }
    }
}

impl ApiError {
    fn body(&self) -> Body<'_> {
        let inner = Inner { message: &self.message, kind: self.kind, param: self.param.as_deref(), code: self.code };
        Body { error: inner }
    }

    /// As a line of JSON, for streams that have begun.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.body()).unwrap_or_default()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = self.retry_after {
            // Whole seconds, rounded up, so that nobody is refused for coming when told.
            let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
