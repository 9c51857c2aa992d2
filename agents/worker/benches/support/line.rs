//! A TCP forwarder with the rate and the delay of a long line.
//!
//! It stands in for a network: what is on its way is bounded as by a router's queue, and a sender is slowed down when
//! it is full. TCP itself runs over the loopback interface on both sides, so that its congestion control is not
//! modelled; the flow control of streams above it is.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::Result;

/// Bytes that leave at once.
const CHUNK: usize = 1 << 13;
/// Most chunks on their way.
const QUEUE: usize = 1 << 9;

/// What a line is like, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Bits a second.
    pub(crate) rate: f64,
    /// One way.
    pub(crate) delay: Duration,
}

impl Line {
    /// Another address for a TCP multiaddress: it leads there over the line, as long as the process lives.
    pub(crate) async fn before(self, address: &str) -> Result<String> {
        let port = address.split("/tcp/").nth(1).and_then(|rest| rest.split('/').next()).ok_or("no TCP address")?;
        let to = SocketAddr::from(([127, 0, 0, 1], port.parse()?));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let own = listener.local_addr()?.port();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(to).await else { continue };
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(self.carry(near_in, far_out));
                tokio::spawn(self.carry(far_in, near_out));
            }
        });
        Ok(address.replace(&format!("/tcp/{port}"), &format!("/tcp/{own}")))
    }

    /// One direction, until either end closes.
    async fn carry(self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let (sent, mut arriving) = mpsc::channel::<(Instant, Vec<u8>)>(QUEUE);
        tokio::spawn(async move {
            while let Some((at, chunk)) = arriving.recv().await {
                sleep_until(at).await;
                if to.write_all(&chunk).await.is_err() {
                    return;
                }
            }
        });
        let mut free = Instant::now();
        loop {
            let mut chunk = vec![0; CHUNK];
            let Ok(length) = from.read(&mut chunk).await else { return };
            chunk.truncate(length);
            // A timer is late by up to a millisecond: what left late does not make the next one late, too.
            free = free.max(Instant::now() - Duration::from_millis(2))
                + Duration::from_secs_f64(length as f64 * 8.0 / self.rate);
            if length == 0 || sent.send((free + self.delay, chunk)).await.is_err() {
                return;
            }
            sleep_until(free).await;
        }
    }
}
