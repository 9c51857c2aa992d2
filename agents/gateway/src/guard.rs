//! Before and after every request: its id, its key, its rate, its line in the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, State};
use axum::http::{HeaderName, HeaderValue, Method, Request, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use rand::RngCore;

use super::error::ApiError;
use super::{Access, Gateway};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What was computed for a request, for its log line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) texts: usize,
    pub(super) tokens: u64,
}

/// What was computed for an answer in parts so far, for its log line.
#[derive(Debug)]
pub(super) struct Progress {
    texts: usize,
    tokens: AtomicU64,
    ended: AtomicBool,
}

impl Progress {
    /// Of so many texts.
    pub(super) const fn new(texts: usize) -> Self {
        Self { texts, tokens: AtomicU64::new(0), ended: AtomicBool::new(false) }
    }

    /// So many tokens by now.
    pub(super) fn count(&self, tokens: u64) {
        self.tokens.store(tokens, Ordering::Relaxed);
    }

    /// All parts have been taken.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Whose request it was, by the number of the key, for its log line.
#[derive(Clone, Copy, Debug)]
struct Caller(usize);

/// A request's line in the log: how, where, by whom, how much, how long; nothing of what. Written when it ends, also by
/// the client's leaving.
struct Line {
    id: String,
    method: Method,
    route: Option<MatchedPath>,
    start: Instant,
    status: Option<u16>,
    key: Option<usize>,
    work: Option<Work>,
    /// Of an answer in parts, of which the line is written when the last is sent.
    progress: Option<Arc<Progress>>,
}

impl Line {
    /// Does nothing but keep the line until the body that calls this is dropped.
    const fn follow(&self) {}
}

impl Drop for Line {
    fn drop(&mut self) {
        let work = self
            .progress
            .as_ref()
            .map(|progress| Work { texts: progress.texts, tokens: progress.tokens.load(Ordering::Relaxed) });
        let work = self.work.or(work);
        let ended = self.progress.as_ref().is_none_or(|progress| progress.ended.load(Ordering::Relaxed));
        tracing::info!(
            id = %self.id,
            method = %self.method,
            route = self.route.as_ref().map_or("unknown", MatchedPath::as_str),
            status = self.status,
            left = self.status.is_none() || !ended,
            key = self.key,
            texts = work.map(|work| work.texts),
            tokens = work.map(|work| work.tokens),
            ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX),
            "request"
        );
    }
}

/// Gives the request its id and its log line.
pub(super) async fn observe(request: Request<Body>, next: Next) -> Response {
    let mut random = [0u8; 16];
    rand::rng().fill_bytes(&mut random);
    let mut line = Line {
        id: format!("req_{}", hex::encode(random)),
        method: request.method().clone(),
        route: request.extensions().get::<MatchedPath>().cloned(),
        start: Instant::now(),
        status: None,
        key: None,
        work: None,
        progress: None,
    };
    let mut response = next.run(request).await;
    line.status = Some(response.status().as_u16());
    line.key = response.extensions().get::<Caller>().map(|caller| caller.0);
    line.work = response.extensions().get::<Work>().copied();
    if let Ok(value) = HeaderValue::from_str(&line.id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    line.progress = response.extensions_mut().remove::<Arc<Progress>>();
    if line.progress.is_some() {
        // The body takes the line with it.
        let (head, body) = response.into_parts();
        let parts = body.into_data_stream().inspect(move |_| line.follow());
        response = Response::from_parts(head, Body::from_stream(parts));
    }
    response
}

/// Lets a request pass that has a key and is within its rate.
pub(super) async fn admit(State(gateway): State<Arc<Gateway>>, request: Request<Body>, next: Next) -> Response {
    let caller = match identify(&gateway, &request) {
        Ok(caller) => caller,
        Err(refusal) => return refusal.into_response(),
    };
    let refused = gateway.buckets.as_ref().and_then(|buckets| {
        let wait = buckets.take(caller, Instant::now()).err()?;
        Some(ApiError::rate_limited(buckets.per_minute(), wait))
    });
    let mut response = match refused {
        None => next.run(request).await,
        Some(refusal) => refusal.into_response(),
    };
    if matches!(gateway.access, Access::Keys(_)) {
        response.extensions_mut().insert(Caller(caller));
    }
    response
}

/// The number of the caller's key; 0 where there are none, and whoever asks names this machine.
fn identify(gateway: &Gateway, request: &Request<Body>) -> Result<usize, ApiError> {
    let Access::Keys(keys) = &gateway.access else {
        return gateway.origins.check_host(request.headers()).map(|()| 0);
    };
    let missing = || {
        ApiError::unauthorized(
            "You didn't provide an API key. Send one as \"Authorization: Bearer KEY\"; whoever runs this server has it.",
        )
    };
    let value = request.headers().get(header::AUTHORIZATION).ok_or_else(missing)?;
    let (scheme, key) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(missing());
    }
    keys.find(key.trim()).ok_or_else(|| ApiError::unauthorized("Incorrect API key provided."))
}
