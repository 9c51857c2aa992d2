//! Yamux that writes in large pieces, and whose streams end when their connection is closed from this side.
//!
//! Yamux writes every header by itself and flushes after every frame, so over TLS each costs a record and a system
//! call. [`BufferedYamux`] collects what yamux has to say in one turn of the connection and passes it on as one write.
//!
//! Yamux 0.14 tells the streams of a connection that failed or was dropped, but not those of one that we close
//! ourselves, say because a ping was not answered: whoever waited for such a stream would wait for ever. [`Telling`]
//! tells them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::TryFutureExt;
use futures::future::MapOk;
use futures::io::{AsyncRead, AsyncWrite, BufWriter};
use futures::ready;
use libp2p::core::UpgradeInfo;
use libp2p::core::muxing::{StreamMuxer, StreamMuxerEvent};
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade};
use libp2p::yamux;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

/// Plaintext encrypted at once: four yamux frames with their headers.
const WRITE_BUFFER: usize = 4 * ((16 << 10) + 12);

/// Yamux over a [`Turnwise`] writer.
#[derive(Clone, Default)]
pub(crate) struct BufferedYamux(yamux::Config);

impl UpgradeInfo for BufferedYamux {
    type Info = <yamux::Config as UpgradeInfo>::Info;
    type InfoIter = <yamux::Config as UpgradeInfo>::InfoIter;

    fn protocol_info(&self) -> Self::InfoIter {
        self.0.protocol_info()
    }
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> InboundConnectionUpgrade<C> for BufferedYamux {
    type Output = Telling<yamux::Muxer<Turnwise<C>>>;
    type Error = io::Error;
    type Future = MapOk<
        <yamux::Config as InboundConnectionUpgrade<Turnwise<C>>>::Future,
        fn(yamux::Muxer<Turnwise<C>>) -> Self::Output,
    >;

    fn upgrade_inbound(self, stream: C, info: Self::Info) -> Self::Future {
        self.0.upgrade_inbound(Turnwise::new(stream), info).map_ok(Telling::new)
    }
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> OutboundConnectionUpgrade<C> for BufferedYamux {
    type Output = Telling<yamux::Muxer<Turnwise<C>>>;
    type Error = io::Error;
    type Future = MapOk<
        <yamux::Config as OutboundConnectionUpgrade<Turnwise<C>>>::Future,
        fn(yamux::Muxer<Turnwise<C>>) -> Self::Output,
    >;

    fn upgrade_outbound(self, stream: C, info: Self::Info) -> Self::Future {
        self.0.upgrade_outbound(Turnwise::new(stream), info).map_ok(Telling::new)
    }
}

/// A muxer whose streams end when it is closed.
pub(crate) struct Telling<M> {
    inner: M,
    closed: CancellationToken,
    _dropped: DropGuard,
}

impl<M> Telling<M> {
    fn new(inner: M) -> Self {
        let closed = CancellationToken::new();
        Self { inner, _dropped: closed.clone().drop_guard(), closed }
    }

    fn told<S>(&self, stream: Poll<S>) -> Poll<Told<S>> {
        stream.map(|inner| Told { inner, closed: Box::pin(self.closed.clone().cancelled_owned()) })
    }
}

impl<M: StreamMuxer<Error: Send> + Unpin> StreamMuxer for Telling<M>
where
    M::Substream: Unpin,
{
    type Substream = Told<M::Substream>;
    type Error = M::Error;

    fn poll_inbound(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Self::Substream, Self::Error>> {
        let stream = ready!(Pin::new(&mut self.inner).poll_inbound(cx))?;
        self.told(Poll::Ready(stream)).map(Ok)
    }

    fn poll_outbound(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Self::Substream, Self::Error>> {
        let stream = ready!(Pin::new(&mut self.inner).poll_outbound(cx))?;
        self.told(Poll::Ready(stream)).map(Ok)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.closed.cancel();
        Pin::new(&mut self.inner).poll_close(cx)
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<StreamMuxerEvent, Self::Error>> {
        Pin::new(&mut self.inner).poll(cx)
    }
}

/// A stream that fails once its connection is closed, instead of waiting.
pub(crate) struct Told<S> {
    inner: S,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<S> Told<S> {
    /// What waits, or fails if there is nothing left to wait for.
    fn or_closed<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_pending() && self.closed.as_mut().poll(cx).is_ready() {
            let closed = io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was closed");
            return Poll::Ready(Err(closed));
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Told<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.or_closed(cx, result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Told<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.or_closed(cx, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_flush(cx);
        self.or_closed(cx, result)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_close(cx);
        self.or_closed(cx, result)
    }
}

/// A buffered writer that flushes once a turn.
///
/// Yamux flushes after every frame, though more frames are often ready. The first flush after a write therefore only
/// asks to be polled again; if nothing was written until then, that second flush is carried out.
pub(crate) struct Turnwise<C> {
    inner: BufWriter<C>,
    written: bool,
}

impl<C: AsyncWrite> Turnwise<C> {
    fn new(inner: C) -> Self {
        Self { inner: BufWriter::with_capacity(WRITE_BUFFER, inner), written: false }
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> AsyncRead for Turnwise<C> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Turnwise<C> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let n = ready!(Pin::new(&mut self.inner).poll_write(cx, buf))?;
        self.written = true;
        Poll::Ready(Ok(n))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.written) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use futures::{AsyncReadExt, AsyncWriteExt};
    use tokio::io::DuplexStream;
    use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

    use super::*;

    /// Both ends of a connection.
    async fn connection() -> [Telling<yamux::Muxer<Turnwise<Compat<DuplexStream>>>>; 2] {
        let (a, b) = tokio::io::duplex(1 << 16);
        let yamux = || BufferedYamux::default();
        let info = |yamux: &BufferedYamux| yamux.protocol_info().next().unwrap();
        let (out, into) = (yamux(), yamux());
        let (name, same) = (info(&out), info(&into));
        let (a, b) = tokio::join!(out.upgrade_outbound(a.compat(), name), into.upgrade_inbound(b.compat(), same));
        [a.unwrap(), b.unwrap()]
    }

    /// Yamux alone leaves the reader waiting, also once the muxer is gone.
    #[tokio::test]
    async fn who_waits_for_a_stream_is_told_when_we_close_its_connection() {
        let [mut ours, mut theirs] = connection().await;
        let mut stream = poll_fn(|cx| Pin::new(&mut ours).poll_outbound(cx)).await.unwrap();
        let greet = async {
            stream.write_all(b"x").await.unwrap();
            stream.flush().await.unwrap();
        };
        // Connections go on while they are polled.
        let mut accepted = Vec::new();
        let go_on = poll_fn(|cx| {
            let _ = Pin::new(&mut ours).poll(cx);
            if let Poll::Ready(stream) = Pin::new(&mut theirs).poll_inbound(cx) {
                accepted.push(stream.unwrap());
            }
            Poll::<()>::Pending
        });
        tokio::select! {
            () = go_on => {}
            () = async { greet.await; tokio::time::sleep(Duration::from_millis(50)).await } => {}
        }
        let reading = tokio::spawn(async move { stream.read(&mut [0; 8]).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        let closing = async move {
            poll_fn(|cx| Pin::new(&mut ours).poll_close(cx)).await.unwrap();
            ours
        };
        let told = async { tokio::join!(closing, reading).1 };
        let told = tokio::time::timeout(Duration::from_secs(5), told).await.expect("told in time");
        assert!(told.unwrap().is_err());
    }

    #[tokio::test]
    async fn everything_written_arrives_after_a_flush() {
        let (a, b) = tokio::io::duplex(1 << 10);
        let (mut writer, mut reader) = (Turnwise::new(a.compat()), b.compat());
        let sent: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
        let copy = sent.clone();
        let write = tokio::spawn(async move {
            for piece in copy.chunks(7919) {
                writer.write_all(piece).await.unwrap();
                writer.flush().await.unwrap();
            }
            writer
        });
        let mut got = vec![0; sent.len()];
        reader.read_exact(&mut got).await.unwrap();
        assert_eq!(got, sent);
        drop(write.await.unwrap());
    }
}
