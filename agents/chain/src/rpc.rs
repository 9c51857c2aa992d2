//! The endpoints: every request is repeated with back-off while the trouble is the wire's, and goes to the next
//! endpoint where one fails, lags behind or is of another chain. Those that are left are looked at again from time to
//! time; the first in order that serves is used.

use std::future::Future;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use alloy::eips::BlockNumberOrTag;
use alloy::providers::{Provider, RootProvider};
use alloy::transports::TransportError;
use futures::future::join_all;
use tensorlink_node::ports::chain::Head;
use tensorlink_types::B256;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::head::head_in;

/// Times a request is made in all, of one endpoint.
const ATTEMPTS: u32 = 4;
/// Times in a row that it is made of an endpoint before another one is asked.
const PATIENCE: u32 = 2;
/// Wait after the first failure; doubles.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// What a request for logs is called: refused, it teaches how much is given at once.
pub(crate) const LOGS: &str = "logs";
/// An endpoint lags if another one is ahead by more blocks than this, and by as many seconds as the second says.
const LAG: (u64, u64) = (2, 30);

/// The endpoints of one chain, in the order in which they are preferred.
#[derive(Debug)]
pub(crate) struct Rpc {
    endpoints: Vec<Arc<Endpoint>>,
    chain_id: u64,
    /// Hash of block 0, by which a chain is told from another of the same id.
    genesis: OnceLock<B256>,
    /// Between looks at all endpoints.
    recheck: Duration,
    /// Which one is used.
    used: watch::Sender<usize>,
    shutdown: CancellationToken,
}

impl Rpc {
    /// For these URLs; nothing is connected yet.
    pub(crate) fn new(urls: &[String], chain_id: u64, recheck: Duration, shutdown: CancellationToken) -> Self {
        Self {
            endpoints: urls.iter().map(|url| Arc::new(Endpoint::new(url, urls.len() > 1))).collect(),
            chain_id,
            genesis: OnceLock::new(),
            recheck,
            used: watch::Sender::new(0),
            shutdown,
        }
    }

    /// What ends all waiting.
    pub(crate) const fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// From now on an endpoint whose block 0 is another is of another chain.
    pub(crate) fn settle_on(&self, genesis: B256) {
        let _ = self.genesis.set(genesis);
    }

    /// The endpoint that is used: the first that is not left, or else the one that was left longest ago.
    pub(crate) fn endpoint(&self) -> Result<Arc<Endpoint>, Failure> {
        let chosen = self.endpoints.iter().min_by_key(|endpoint| endpoint.left());
        chosen.cloned().ok_or_else(|| Failure::Unavailable("no endpoint is named".into()))
    }

    /// Whether there is more than one.
    pub(crate) fn has_others(&self) -> bool {
        self.endpoints.len() > 1
    }

    /// Tells when another endpoint is used.
    pub(crate) fn moves(&self) -> watch::Receiver<usize> {
        self.used.subscribe()
    }

    fn choose(&self) {
        let best = self.endpoints.iter().enumerate().min_by_key(|(_, endpoint)| endpoint.left());
        let best = best.map_or(0, |(place, _)| place);
        self.used.send_if_modified(|used| std::mem::replace(used, best) != best);
    }

    /// Uses another endpoint from now on, if there is one; says so once.
    pub(crate) fn leave(&self, endpoint: &Endpoint, reason: &str) {
        if !self.has_others() {
            return;
        }
        let first = endpoint.leave(Instant::now(), self.recheck);
        self.choose();
        match self.endpoint() {
            Ok(next) if first => {
                let (left, next) = (endpoint.name(), next.name());
                warn!(endpoint = left, reason, next, "an RPC endpoint is left, and tried again later");
            }
            _ => debug!(endpoint = endpoint.name(), reason, "an RPC endpoint still fails"),
        }
    }

    fn take_back(&self, endpoint: &Endpoint) {
        if endpoint.take_back(Instant::now()) {
            self.choose();
            info!(endpoint = endpoint.name(), "an RPC endpoint serves again");
        }
    }

    /// Asks until there is an answer, a few times.
    pub(crate) async fn ask<T, R, F>(&self, what: &str, request: R) -> Result<T, Failure>
    where
        R: Fn(RootProvider) -> F,
        F: Future<Output = Result<T, TransportError>>,
    {
        let others = u32::try_from(self.endpoints.len()).unwrap_or(u32::MAX).saturating_sub(1);
        let (mut wait, mut row, mut last) = (FIRST_WAIT, 0, None);
        for attempt in 1.. {
            let endpoint = self.endpoint()?;
            row = if last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &endpoint)) { row + 1 } else { 1 };
            let failure = tokio::select! {
                () = self.shutdown.cancelled() => Failure::Closed,
                // Boxed: it is large, and part of every future that asks.
                answer = Box::pin(self.ask_one(&endpoint, what, &request)) => match answer {
                    Ok(value) => return Ok(value),
                    Err(failure) => failure,
                }
            };
            let (transient, reason) = match &failure {
                // How many logs there are at most is said in the words of a bound on requests: it is learned, instead.
                Failure::Refused(payload) if payload.is_retry_err() => {
                    (true, (row >= ATTEMPTS && what != LOGS).then(|| failure.reason()))
                }
                Failure::Refused(_) | Failure::Closed => (false, None),
                Failure::Unavailable(_) => (true, (row >= PATIENCE).then(|| failure.reason())),
                Failure::Foreign { .. } => (others > 0, Some(failure.reason())),
            };
            if let Some(reason) = reason {
                self.leave(&endpoint, &reason);
            }
            if !transient || attempt >= ATTEMPTS.saturating_add(others) {
                return Err(failure);
            }
            debug!(what, attempt, ?failure, "asking again");
            let another = self.endpoint().is_ok_and(|next| next.left().is_none() && !Arc::ptr_eq(&next, &endpoint));
            last = Some(endpoint);
            if !another {
                self.pause(wait).await?;
                wait *= 2;
            }
        }
        Err(Failure::Closed)
    }

    /// Asks this endpoint, which is left for another if it does not answer.
    pub(crate) async fn ask_of<T, R, F>(&self, endpoint: &Endpoint, what: &str, request: R) -> Result<T, Failure>
    where
        R: Fn(RootProvider) -> F,
        F: Future<Output = Result<T, TransportError>>,
    {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let failure = tokio::select! {
                () = self.shutdown.cancelled() => return Err(Failure::Closed),
                answer = Box::pin(self.ask_one(endpoint, what, &request)) => match answer {
                    Err(failure @ (Failure::Unavailable(_) | Failure::Foreign { .. })) => failure,
                    answer => return answer,
                }
            };
            if attempt >= if self.has_others() { PATIENCE } else { ATTEMPTS } {
                self.leave(endpoint, &failure.reason());
                return Err(failure);
            }
            self.pause(wait).await?;
            wait *= 2;
        }
        Err(Failure::Closed)
    }

    /// Asks an endpoint once, which must be of our chain.
    async fn ask_one<T, R, F>(&self, endpoint: &Endpoint, what: &str, request: &R) -> Result<T, Failure>
    where
        R: Fn(RootProvider) -> F,
        F: Future<Output = Result<T, TransportError>>,
    {
        if !endpoint.is_vetted() {
            self.vet(endpoint).await?;
        }
        let answer = endpoint.ask(what, request).await;
        // Where all are left, it is found here that one serves again.
        if answer.is_ok() && self.endpoints.iter().all(|endpoint| endpoint.left().is_some()) {
            self.take_back(endpoint);
        }
        answer
    }

    async fn vet(&self, endpoint: &Endpoint) -> Result<(), Failure> {
        let actual = match endpoint.ask("chain id", &|p: RootProvider| async move { p.get_chain_id().await }).await {
            Err(Failure::Refused(payload)) => {
                return Err(Failure::Unavailable(format!("it does not say its chain id: {payload}")));
            }
            answer => answer?,
        };
        if actual != self.chain_id {
            return Err(Failure::Foreign { expected: self.chain_id, actual });
        }
        if let Some(genesis) = self.genesis.get() {
            let first = |p: RootProvider| async move { p.get_block_by_number(BlockNumberOrTag::Number(0)).await };
            match endpoint.ask("block 0", &first).await {
                Ok(Some(block)) if block.header.hash != *genesis => {
                    return Err(Failure::Unavailable("it serves another chain with the same id".into()));
                }
                // Some have forgotten it.
                Ok(_) | Err(Failure::Refused(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        endpoint.vetted();
        Ok(())
    }

    /// Asks every endpoint once, at the same time; the answers that came.
    pub(crate) async fn everywhere<T, R, F>(&self, what: &str, request: R) -> Vec<T>
    where
        R: Fn(RootProvider) -> F,
        F: Future<Output = Result<T, TransportError>>,
    {
        let answers = join_all(self.endpoints.iter().map(|endpoint| self.ask_one(endpoint, what, &request)));
        tokio::select! {
            () = self.shutdown.cancelled() => Vec::new(),
            answers = answers => answers.into_iter().filter_map(Result::ok).collect(),
        }
    }

    /// As [`Self::ask`], for answers that are there or are not (yet).
    pub(crate) async fn find<T, R, F>(&self, what: &str, request: R) -> Result<T, Failure>
    where
        R: Fn(RootProvider) -> F,
        F: Future<Output = Result<Option<T>, TransportError>>,
    {
        self.ask(what, request).await?.ok_or_else(|| Failure::Unavailable(format!("it does not have the {what}")))
    }

    /// Waits, unless we are shutting down.
    pub(crate) async fn pause(&self, duration: Duration) -> Result<(), Failure> {
        tokio::select! {
            () = self.shutdown.cancelled() => Err(Failure::Closed),
            () = sleep(duration) => Ok(()),
        }
    }

    /// Looks at each endpoint that is in use or due: leaves those that fail or lag, takes back those that do not.
    async fn look(&self) {
        let now = Instant::now();
        let due = self.endpoints.iter().filter(|endpoint| endpoint.is_due(now));
        let heads = join_all(due.map(|endpoint| async move { (endpoint, self.head_at(endpoint).await) })).await;
        let best = heads.iter().filter_map(|(_, head)| head.as_ref().ok()).max_by_key(|head| head.number).copied();
        for (endpoint, head) in &heads {
            match (head, best) {
                (Ok(head), Some(best)) if lags(head, &best) => {
                    self.leave(endpoint, &format!("it is {} blocks behind another", best.number - head.number));
                }
                (Ok(_), _) => self.take_back(endpoint),
                (Err(Failure::Closed), _) => return,
                (Err(failure), _) => self.leave(endpoint, &failure.reason()),
            }
        }
    }

    async fn head_at(&self, endpoint: &Endpoint) -> Result<Head, Failure> {
        let newest = |p: RootProvider| async move { p.get_block_by_number(BlockNumberOrTag::Latest).await };
        let block = match self.ask_one(endpoint, "block", &newest).await {
            // The connection may have been an old one.
            Err(Failure::Unavailable(_)) => self.ask_one(endpoint, "block", &newest).await?,
            answer => answer?,
        };
        let block = block.ok_or_else(|| Failure::Unavailable("it has no newest block".into()))?;
        Ok(head_in(&block.header))
    }
}

const fn lags(head: &Head, best: &Head) -> bool {
    best.number.saturating_sub(head.number) > LAG.0 && best.timestamp.saturating_sub(head.timestamp) >= LAG.1
}

/// Looks at all endpoints from time to time, as long as they are used.
pub(crate) async fn watch(rpc: Weak<Rpc>) {
    loop {
        let Some((recheck, shutdown)) = rpc.upgrade().map(|rpc| (rpc.recheck, rpc.shutdown.clone())) else { return };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = sleep(recheck) => {}
        }
        let Some(rpc) = rpc.upgrade() else { return };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = rpc.look() => {}
        }
    }
}
