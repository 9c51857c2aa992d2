//! The connection to an endpoint: opened by one request for all, which wait for it no longer than is worth while where
//! another endpoint can be asked.

use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy::providers::RootProvider;
use alloy::rpc::client::{ClientBuilder, ConnectionConfig};
use alloy::transports::TransportError;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::failure::Failure;

/// Longest wait for a connection that a request opens.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest wait for one that another request opens, where another endpoint can be asked.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Connection {
    /// Longest wait for what a request opens, and for what another one does.
    limit: Duration,
    grace: Duration,
    /// Held while it is opened.
    opening: Mutex<()>,
    state: StdMutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: Option<RootProvider>,
    /// How often it was opened, or tried to.
    number: u64,
    /// Why that failed last.
    failure: String,
}

impl Connection {
    pub(super) fn new(has_others: bool) -> Self {
        // Whoever opens it ends in time, or leaves it to the next.
        let grace = if has_others { GRACE } else { CONNECT * 2 };
        Self::patient(CONNECT, grace)
    }

    fn patient(limit: Duration, grace: Duration) -> Self {
        Self { limit, grace, opening: Mutex::default(), state: StdMutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, which is opened if need be, and its number.
    pub(super) async fn get(
        &self,
        url: &str,
        brief: impl Fn(&TransportError) -> String,
    ) -> Result<(u64, RootProvider), Failure> {
        let open = |state: &State| state.open.clone().map(|provider| (state.number, provider));
        let before = {
            let state = self.state();
            if let Some(open) = open(&state) {
                return Ok(open);
            }
            state.number
        };
        let Ok(_turn) = timeout(self.grace, self.opening.lock()).await else {
            return Err(Failure::Unavailable(format!("no connection within {} s", self.grace.as_secs())));
        };
        {
            let state = self.state();
            if let Some(open) = open(&state) {
                return Ok(open);
            }
            // What failed for another request meanwhile has failed for this one.
            if state.number != before && !state.failure.is_empty() {
                return Err(Failure::Unavailable(state.failure.clone()));
            }
        }
        // Connections are made anew here, with our limits, not within the transport.
        let config = ConnectionConfig::new().with_max_retries(0);
        let opened = match timeout(self.limit, ClientBuilder::default().connect_with_config(url, config)).await {
            Ok(Ok(client)) => Ok(RootProvider::new(client)),
            Ok(Err(error)) => Err(brief(&error)),
            Err(_) => Err(format!("no connection within {} s", self.limit.as_secs())),
        };
        let mut state = self.state();
        state.number = state.number.wrapping_add(1);
        state.failure = opened.as_ref().err().cloned().unwrap_or_default();
        state.open = opened.as_ref().ok().cloned();
        let number = state.number;
        opened.map(|provider| (number, provider)).map_err(Failure::Unavailable)
    }

    /// It has ended; not one that was opened since.
    pub(super) fn give_up(&self, number: u64) {
        let mut state = self.state();
        if state.number == number {
            state.open = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use futures::future::join_all;
    use tokio::time::Instant;

    use super::*;

    /// Waits of requests that are made at once of an endpoint that takes connections and says nothing, shortest first.
    async fn waits(grace: Duration) -> Vec<Duration> {
        let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (url, start) = (format!("ws://{}", silent.local_addr().unwrap()), Instant::now());
        let connection = Connection::patient(Duration::from_secs(1), grace);
        let mut waits = join_all((0..5).map(|_| async {
            assert!(connection.get(&url, ToString::to_string).await.is_err());
            start.elapsed()
        }))
        .await;
        waits.sort_unstable();
        waits
    }

    #[tokio::test]
    async fn only_one_request_waits_long_for_a_connection_where_another_endpoint_can_be_asked() {
        let waits = waits(Duration::from_millis(50)).await;
        assert!(waits[3] < Duration::from_millis(900) && waits[4] >= Duration::from_secs(1), "{waits:?}");
    }

    #[tokio::test]
    async fn requests_do_not_wait_one_after_another_for_what_fails_for_all() {
        let waits = waits(Duration::from_secs(60)).await;
        assert!(waits[4] < Duration::from_millis(1_900), "{waits:?}");
    }

    #[tokio::test]
    async fn a_connection_that_was_opened_since_is_not_given_up() {
        let connection = Connection::new(true);
        let get = async || connection.get("http://127.0.0.1:1", ToString::to_string).await.unwrap().0;
        let first = get().await;
        assert_eq!(get().await, first, "opened once");
        connection.give_up(first);
        let second = get().await;
        connection.give_up(first);
        assert_eq!((get().await, second), (second, first + 1));
    }
}
