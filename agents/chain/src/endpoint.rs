//! One endpoint: its connection, and how it stands: whether it is of our chain, what it gives at once, and since when
//! it is left for another.

mod connection;

use std::future::Future;
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy::providers::RootProvider;
use alloy::rpc::json_rpc::RpcError;
use alloy::transports::TransportError;
use tokio::time::{Instant, timeout};

use self::connection::Connection;
use crate::failure::Failure;
use crate::pieces::Pieces;

/// Longest wait for one answer.
const ANSWER: Duration = Duration::from_secs(15);
/// An endpoint that fails again and again is tried ever more rarely, down to once in so many looks.
const RAREST: u32 = 32;

/// One endpoint, `http(s)://` or `ws(s)://`.
#[derive(Debug)]
pub(crate) struct Endpoint {
    url: String,
    name: String,
    connection: Connection,
    pieces: StdMutex<Pieces>,
    standing: StdMutex<Standing>,
}

/// How an endpoint stands.
#[derive(Debug, Default)]
struct Standing {
    /// It was seen to be of our chain since it was left last.
    vetted: bool,
    /// When it was left, or failed last since.
    left: Option<Instant>,
    /// When it was taken back last.
    back: Option<Instant>,
    /// How long it is left alone.
    wait: Duration,
}

impl Endpoint {
    /// For this URL; nothing is connected yet. `has_others`: whether another one can be asked instead.
    pub(crate) fn new(url: &str, has_others: bool) -> Self {
        Self {
            url: url.to_owned(),
            name: host(url).to_owned(),
            connection: Connection::new(has_others),
            pieces: StdMutex::default(),
            standing: StdMutex::default(),
        }
    }

    /// Its host and port: the rest of the URL may hold the key of an account.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it can tell of something unasked.
    pub(crate) fn is_socket(&self) -> bool {
        self.url.starts_with("ws")
    }

    /// How many blocks it tells the logs of at once.
    pub(crate) fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was seen to be of our chain.
    pub(crate) fn is_vetted(&self) -> bool {
        self.standing().vetted
    }

    /// Notes that it is of our chain.
    pub(crate) fn vetted(&self) {
        self.standing().vetted = true;
    }

    /// When it was left, or failed last since; none of one that can be used.
    pub(crate) fn left(&self) -> Option<Instant> {
        self.standing().left
    }

    /// Leaves it alone for `wait`, longer where it fails again and again; whatever else fails meanwhile fails for the
    /// same reason. Whether it was in use.
    pub(crate) fn leave(&self, now: Instant, wait: Duration) -> bool {
        let mut standing = self.standing();
        let longest = wait * RAREST;
        let steady = standing.back.is_none_or(|back| now.duration_since(back) >= longest);
        if standing.left.is_some_and(|left| now.duration_since(left) < standing.wait) {
            return false;
        }
        let first = standing.left.is_none();
        standing.wait = if first && steady { wait } else { (standing.wait * 2).clamp(wait, longest) };
        standing.left = Some(now);
        standing.vetted = false;
        first
    }

    /// Whether it can be looked at: it is in use, or was left alone for long enough.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let standing = self.standing();
        standing.left.is_none_or(|left| now.duration_since(left) >= standing.wait)
    }

    /// Takes it back; whether it was left.
    pub(crate) fn take_back(&self, now: Instant) -> bool {
        let mut standing = self.standing();
        let was_left = standing.left.take().is_some();
        if was_left {
            standing.back = Some(now);
        }
        was_left
    }

    /// Asks once.
    pub(crate) async fn ask<T, R, F>(&self, what: &str, request: &R) -> Result<T, Failure>
    where
        R: Fn(RootProvider) -> F,
        F: Future<Output = Result<T, TransportError>>,
    {
        let (number, provider) = self.connection.get(&self.url, |error| self.brief(error)).await?;
        match timeout(ANSWER, request(provider)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(RpcError::ErrorResp(payload))) => Err(Failure::Refused(payload)),
            Ok(Err(error)) => {
                // A WebSocket whose connection ended is of no more use.
                if self.is_socket() {
                    self.connection.give_up(number);
                }
                Err(Failure::Unavailable(format!("{what}: {}", self.brief(&error))))
            }
            Err(_) => Err(Failure::Unavailable(format!("{what}: no answer within {} s", ANSWER.as_secs()))),
        }
    }

    /// The start of a message, which may quote a page of garbage; without the URL.
    fn brief(&self, error: &TransportError) -> String {
        const LENGTH: usize = 300;
        let text = error.to_string().replace(self.url.trim_end_matches('/'), "the URL");
        text.chars().take(LENGTH).map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}

/// Host and port of a URL.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_no_key() {
        for url in
            ["wss://user:secret@rpc.example:443/v2/secret", "rpc.example:443?key=secret", "https://rpc.example:443"]
        {
            assert_eq!(Endpoint::new(url, false).name(), "rpc.example:443");
        }
        assert_eq!(Endpoint::new("", false).name(), "");
    }

    #[test]
    fn who_fails_again_and_again_is_tried_ever_more_rarely() {
        let (endpoint, wait, start) = (Endpoint::new("ws://a", true), Duration::from_secs(1), Instant::now());
        assert!(endpoint.leave(start, wait), "it was in use");
        assert!(!endpoint.is_due(start) && endpoint.is_due(start + wait));
        assert!(!endpoint.leave(start + wait, wait), "it was left");
        assert!(!endpoint.is_due(start + wait * 2) && endpoint.is_due(start + wait * 3));
        // Requests that were under way with it say nothing new.
        for _ in 0..40 {
            endpoint.leave(start + wait, wait);
        }
        assert!(endpoint.is_due(start + wait * 3));
        for n in 0..40 {
            endpoint.leave(start + wait * RAREST * (n + 1), wait);
        }
        assert!(endpoint.is_due(start + wait * RAREST * 41), "but not for ever");
        // Taken back, it soon fails again.
        assert!(endpoint.take_back(start) && !endpoint.take_back(start));
        endpoint.leave(start + wait, wait);
        assert!(!endpoint.is_due(start + wait * 2));
        // It serves for long, and fails.
        endpoint.take_back(start);
        endpoint.leave(start + wait * RAREST, wait);
        assert!(endpoint.is_due(start + wait * (RAREST + 1)));
    }
}
