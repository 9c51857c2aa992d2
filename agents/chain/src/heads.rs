//! The newest block, as soon as it is another: told by the endpoint over a WebSocket, else looked for at the pace at
//! which blocks come.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use alloy::eips::BlockNumberOrTag;
use alloy::providers::Provider;
use alloy::rpc::types::Header;
use futures::{FutureExt, Stream, StreamExt};
use tensorlink_node::ports::chain::Head;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::block::head_of;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::head::head_in;
use crate::rpc::Rpc;

/// Shortest and longest wait between looks at an endpoint that does not tell of new blocks.
const LOOK: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(3));
/// The same at one that does: a subscription may have died, and chains that are set back tell nobody.
const DOUBT: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));
/// Blocks within whose time a new one is looked for so often.
const LOOKS_A_BLOCK: u32 = 4;

type Told = Pin<Box<dyn Stream<Item = Header> + Send>>;

/// The newest block.
pub(crate) async fn newest(rpc: &Rpc) -> Result<Head, Failure> {
    let head = head_of(rpc, BlockNumberOrTag::Latest).await?;
    head.ok_or_else(|| Failure::Unavailable("it has no newest block".into()))
}

/// Where the newest blocks come from.
pub(crate) struct Heads {
    rpc: Arc<Rpc>,
    /// The endpoint that is followed.
    endpoint: Option<Arc<Endpoint>>,
    /// Tells when another one is used.
    moves: watch::Receiver<usize>,
    /// The subscription.
    told: Option<Told>,
    /// The endpoint takes no subscriptions.
    asks: bool,
    /// The last head that was returned, and when.
    last: Option<(Head, Instant)>,
    /// Time between blocks, as it seems here.
    pace: Duration,
}

impl Heads {
    /// Nothing is asked for yet.
    pub(crate) fn new(rpc: Arc<Rpc>) -> Self {
        let moves = rpc.moves();
        Self { rpc, endpoint: None, moves, told: None, asks: false, last: None, pace: Duration::ZERO }
    }

    /// The next call returns the newest block even if it is the last one that was returned.
    pub(crate) const fn again(&mut self) {
        self.last = None;
    }

    /// Waits for a head that is not the last one returned. May be dropped and called anew.
    pub(crate) async fn next(&mut self) -> Result<Head, Failure> {
        loop {
            let endpoint = self.rpc.endpoint()?;
            if self.endpoint.as_ref().is_none_or(|followed| !Arc::ptr_eq(followed, &endpoint)) {
                (self.told, self.asks) = (None, !endpoint.is_socket());
                self.endpoint = Some(endpoint.clone());
                self.moves.mark_unchanged();
            }
            if self.told.is_none() && !self.asks {
                self.subscribe(&endpoint).await?;
                // What came before the subscription.
                self.last = None;
            }
            let head = if self.last.is_none() { newest(&self.rpc).await? } else { self.wait().await? };
            if self.last.is_none_or(|(last, _)| last != head) {
                self.took(head, Instant::now());
                return Ok(head);
            }
        }
    }

    /// Of this endpoint and no other: not all of them tell of blocks.
    async fn subscribe(&mut self, endpoint: &Endpoint) -> Result<(), Failure> {
        match self
            .rpc
            .ask_of(endpoint, "subscription", |provider| async move { provider.subscribe_blocks().await })
            .await
        {
            Ok(subscription) => self.told = Some(Box::pin(subscription.into_stream())),
            Err(Failure::Refused(_)) => self.asks = true,
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// The next head that is told, or what is the newest when none has been for long.
    async fn wait(&mut self) -> Result<Head, Failure> {
        let Some(told) = &mut self.told else {
            self.rpc.pause((self.pace / LOOKS_A_BLOCK).clamp(LOOK.0, LOOK.1)).await?;
            return newest(&self.rpc).await;
        };
        let header = tokio::select! {
            header = told.next() => header,
            // Looked at before the next wait, by which time another endpoint is followed.
            Ok(()) = self.moves.changed() => return newest(&self.rpc).await,
            paused = self.rpc.pause((self.pace * LOOKS_A_BLOCK).clamp(DOUBT.0, DOUBT.1)) => {
                paused?;
                return newest(&self.rpc).await;
            }
        };
        let Some(mut header) = header else {
            // The connection is gone.
            self.told = None;
            return newest(&self.rpc).await;
        };
        while let Some(Some(later)) = told.next().now_or_never() {
            header = later;
        }
        Ok(head_in(&header))
    }

    /// Notes a head, and how long it took to come.
    fn took(&mut self, head: Head, now: Instant) {
        if let Some((last, at)) = self.last
            && let Ok(blocks) = u32::try_from(head.number.saturating_sub(last.number).max(1))
        {
            let since = now.duration_since(at).checked_div(blocks).unwrap_or_default();
            self.pace = if self.pace.is_zero() { since } else { (self.pace * 3 + since) / 4 };
        }
        self.last = Some((head, now));
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::B256;
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn rpc(url: &str) -> Arc<Rpc> {
        Arc::new(Rpc::new(&[url.to_owned()], 1, Duration::from_secs(1), CancellationToken::new()))
    }

    /// What is learned from `count` blocks at once every `every`.
    fn learned(every: Duration, count: u64) -> Duration {
        let mut heads = Heads::new(rpc("http://127.0.0.1:1"));
        let start = Instant::now();
        for step in 0..20 {
            let head = Head { number: u64::from(step) * count, hash: B256::ZERO, timestamp: 0 };
            heads.took(head, start + every * step);
        }
        heads.pace
    }

    #[test]
    fn the_pace_of_blocks_is_learned() {
        assert_eq!(learned(Duration::from_secs(12), 1), Duration::from_secs(12));
        assert_eq!(learned(Duration::from_secs(2), 4), Duration::from_millis(500));
    }

    #[tokio::test]
    async fn an_endpoint_that_is_not_there_is_a_failure_each_time() {
        for url in ["http://127.0.0.1:1", "ws://127.0.0.1:1"] {
            let mut heads = Heads::new(rpc(url));
            assert!(matches!(heads.next().await, Err(Failure::Unavailable(_))), "{url}");
        }
    }
}
