//! What was moved and what was refused, as counters that only grow.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::wire::Refusal;

/// Counters of one node since its start.
#[derive(Default, Debug)]
pub struct Metrics {
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
    pub(crate) dropped_streams: AtomicU64,
    pub(crate) refused_connections: AtomicU64,
    pub(crate) lost_messages: AtomicU64,
    pub(crate) unknown_messages: AtomicU64,
    pub(crate) malformed_messages: AtomicU64,
    pub(crate) bad_records: AtomicU64,
    pub(crate) refusals: [AtomicU64; Refusal::COUNT],
}

impl Metrics {
    /// Bytes sent and received on streams and requests.
    pub fn bytes_moved(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed))
    }

    /// How often we refused for this reason.
    pub fn refused(&self, reason: Refusal) -> u64 {
        self.refusals[reason.index()].load(Ordering::Relaxed)
    }

    /// Connections refused because a bound was reached, of an address, of a key or of all, ours to others included.
    pub fn refused_connections(&self) -> u64 {
        self.refused_connections.load(Ordering::Relaxed)
    }

    /// Streams dropped because too many were shaking hands.
    pub fn dropped_streams(&self) -> u64 {
        self.dropped_streams.load(Ordering::Relaxed)
    }

    /// Gossip that slow readers lost or that came too fast from one source.
    pub fn lost_messages(&self) -> u64 {
        self.lost_messages.load(Ordering::Relaxed)
    }

    /// Gossip of keys without stake, which is not passed on.
    pub fn unknown_messages(&self) -> u64 {
        self.unknown_messages.load(Ordering::Relaxed)
    }

    /// Gossip that was not what its topic is for.
    pub fn malformed_messages(&self) -> u64 {
        self.malformed_messages.load(Ordering::Relaxed)
    }

    /// Records from the DHT that did not check.
    pub fn bad_records(&self) -> u64 {
        self.bad_records.load(Ordering::Relaxed)
    }

    pub(crate) fn count(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn count_refusal(&self, reason: Refusal) {
        Self::count(&self.refusals[reason.index()], 1);
    }
}

/// A stream whose bytes are counted. `guard` lives as long as the stream: the permits that bound how many there are.
pub(crate) struct Counted<S, G> {
    inner: S,
    metrics: Arc<Metrics>,
    _guard: G,
}

impl<S, G> Counted<S, G> {
    pub(crate) fn new(inner: S, metrics: Arc<Metrics>, guard: G) -> Self {
        Self { inner, metrics, _guard: guard }
    }
}

impl<S: AsyncRead + Unpin, G: Unpin> AsyncRead for Counted<S, G> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(cx, buf);
        Metrics::count(&self.metrics.received, (buf.filled().len() - before) as u64);
        result
    }
}

impl<S: AsyncWrite + Unpin, G: Unpin> AsyncWrite for Counted<S, G> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(cx, buf);
        if let Poll::Ready(Ok(n)) = result {
            Metrics::count(&self.metrics.sent, n as u64);
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
