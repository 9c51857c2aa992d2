//! The endpoint: every request has a time limit, is repeated with back-off while the trouble is the wire's, and finds a
//! lost connection replaced by a new one.

use std::future::Future;
use std::time::Duration;

use alloy::providers::RootProvider;
use alloy::rpc::client::{ClientBuilder, ConnectionConfig};
use alloy::rpc::json_rpc::{ErrorPayload, RpcError};
use alloy::transports::TransportError;
use tensorlink_node::ports::ChainError;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::revert::Revert;

/// Longest wait for one answer.
const ANSWER: Duration = Duration::from_secs(15);
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Times a request is made in all.
const ATTEMPTS: u32 = 4;
/// Wait after the first failure; doubles.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The node understood and refuses.
    Refused(ErrorPayload),
    /// No useful answer, again and again.
    Unavailable(String),
    /// We are shutting down.
    Closed,
}

impl Failure {
    /// The refusal as the revert that it is, if it is one.
    pub(crate) fn revert(&self) -> Option<Revert> {
        let Self::Refused(payload) = self else { return None };
        if let Some(data) = payload.as_revert_data() {
            return Some(Revert::decode(&data));
        }
        // Code 3 is "execution error"; some nodes leave its data out.
        (payload.code == 3).then(|| Revert::decode(&[]))
    }
}

impl From<Failure> for ChainError {
    fn from(failure: Failure) -> Self {
        match (failure.revert(), failure) {
            (Some(revert), _) => revert.into(),
            (None, Failure::Refused(payload)) => Self::Unavailable(format!("it refuses: {payload}")),
            (None, Failure::Unavailable(reason)) => Self::Unavailable(reason),
            (None, Failure::Closed) => Self::Closed,
        }
    }
}

/// One endpoint, `http(s)://` or `ws(s)://`.
#[derive(Debug)]
pub(crate) struct Rpc {
    url: String,
    provider: Mutex<Option<RootProvider>>,
    shutdown: CancellationToken,
}

impl Rpc {
    /// For this URL; nothing is connected yet.
    pub(crate) fn new(url: &str, shutdown: CancellationToken) -> Self {
        Self { url: url.to_owned(), provider: Mutex::new(None), shutdown }
    }

    /// What ends all waiting.
    pub(crate) const fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// Asks until there is an answer, a few times.
    pub(crate) async fn ask<T, R, F>(&self, what: &str, request: R) -> Result<T, Failure>
    where
        R: Fn(RootProvider) -> F,
        F: Future<Output = Result<T, TransportError>>,
    {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let failure = tokio::select! {
                () = self.shutdown.cancelled() => Failure::Closed,
                // Boxed: it is large, and part of every future that asks.
                answer = Box::pin(self.ask_once(what, &request)) => match answer {
                    Ok(value) => return Ok(value),
                    Err(failure) => failure,
                }
            };
            let transient = match &failure {
                Failure::Refused(payload) => payload.is_retry_err(),
                Failure::Unavailable(_) => true,
                Failure::Closed => false,
            };
            if !transient || attempt == ATTEMPTS {
                return Err(failure);
            }
            debug!(what, attempt, ?failure, "asking again");
            self.pause(wait).await?;
            wait *= 2;
        }
        Err(Failure::Closed)
    }

    /// As [`Self::ask`], for answers that are there or are not (yet).
    pub(crate) async fn find<T, R, F>(&self, what: &str, request: R) -> Result<T, Failure>
    where
        R: Fn(RootProvider) -> F,
        F: Future<Output = Result<Option<T>, TransportError>>,
    {
        self.ask(what, request).await?.ok_or_else(|| Failure::Unavailable(format!("it does not have the {what}")))
    }

    async fn ask_once<T, R, F>(&self, what: &str, request: &R) -> Result<T, Failure>
    where
        R: Fn(RootProvider) -> F,
        F: Future<Output = Result<T, TransportError>>,
    {
        let provider = self.provider().await?;
        match timeout(ANSWER, request(provider)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(RpcError::ErrorResp(payload))) => Err(Failure::Refused(payload)),
            Ok(Err(error)) => {
                // A WebSocket whose connection ended is of no more use.
                if self.is_socket() {
                    *self.provider.lock().await = None;
                }
                Err(Failure::Unavailable(format!("{what}: {}", self.brief(&error))))
            }
            Err(_) => Err(Failure::Unavailable(format!("{what}: no answer within {} s", ANSWER.as_secs()))),
        }
    }

    async fn provider(&self) -> Result<RootProvider, Failure> {
        let mut provider = self.provider.lock().await;
        if let Some(provider) = &*provider {
            return Ok(provider.clone());
        }
        // Connections are made anew here, with our limits, not within the transport.
        let config = ConnectionConfig::new().with_max_retries(0);
        let connecting = ClientBuilder::default().connect_with_config(&self.url, config);
        let fresh = match timeout(CONNECT, connecting).await {
            Ok(Ok(client)) => RootProvider::new(client),
            Ok(Err(error)) => return Err(Failure::Unavailable(self.brief(&error))),
            Err(_) => return Err(Failure::Unavailable(format!("no connection within {} s", CONNECT.as_secs()))),
        };
        *provider = Some(fresh.clone());
        Ok(fresh)
    }

    /// Whether the endpoint can tell of something unasked.
    pub(crate) fn is_socket(&self) -> bool {
        self.url.starts_with("ws")
    }

    /// Waits, unless we are shutting down.
    pub(crate) async fn pause(&self, duration: Duration) -> Result<(), Failure> {
        tokio::select! {
            () = self.shutdown.cancelled() => Err(Failure::Closed),
            () = sleep(duration) => Ok(()),
        }
    }

    /// The start of a message, which may quote a page of garbage; without the URL, which may hold the key of
    /// an account.
    fn brief(&self, error: &TransportError) -> String {
        const LENGTH: usize = 300;
        let text = error.to_string().replace(self.url.trim_end_matches('/'), "the URL");
        text.chars().take(LENGTH).map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}
