//! Yamux that writes in large pieces.
//!
//! Yamux writes every header by itself and flushes after every frame, so over TLS each costs a record and a system call.
//! [`BufferedYamux`] collects what yamux has to say in one turn of the connection and passes it on as one write.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::io::{AsyncRead, AsyncWrite, BufWriter};
use futures::ready;
use libp2p::core::UpgradeInfo;
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade};
use libp2p::yamux;

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
    type Output = yamux::Muxer<Turnwise<C>>;
    type Error = io::Error;
    type Future = <yamux::Config as InboundConnectionUpgrade<Turnwise<C>>>::Future;

    fn upgrade_inbound(self, stream: C, info: Self::Info) -> Self::Future {
        self.0.upgrade_inbound(Turnwise::new(stream), info)
    }
}

impl<C: AsyncRead + AsyncWrite + Send + Unpin + 'static> OutboundConnectionUpgrade<C> for BufferedYamux {
    type Output = yamux::Muxer<Turnwise<C>>;
    type Error = io::Error;
    type Future = <yamux::Config as OutboundConnectionUpgrade<Turnwise<C>>>::Future;

    fn upgrade_outbound(self, stream: C, info: Self::Info) -> Self::Future {
        self.0.upgrade_outbound(Turnwise::new(stream), info)
    }
}

/// A buffered writer that flushes once a turn.
///
/// Yamux flushes after every frame, though more frames are often ready. The first flush after a write therefore only asks
/// to be polled again; if nothing was written until then, that second flush is carried out.
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
    use futures::{AsyncReadExt, AsyncWriteExt};
    use tokio_util::compat::TokioAsyncReadCompatExt;

    use super::*;

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
