//! A wire between a node and its endpoint that can be cut, mended and led elsewhere.

use std::net::SocketAddr;

use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Where connections lead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wire {
    /// To this endpoint.
    To(SocketAddr),
    /// They are closed at once.
    Cut,
    /// They are answered by nonsense.
    Noise,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    wire: watch::Sender<Wire>,
}

impl Proxy {
    pub(crate) async fn new(wire: Wire) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (wire, seen) = watch::channel(wire);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, seen.clone()));
            }
        });
        Self { port, wire }
    }

    /// Ends all connections; new ones lead to `wire`.
    pub(crate) fn lead(&self, wire: Wire) {
        self.wire.send_replace(wire);
    }
}

async fn carry(mut near: TcpStream, mut wire: watch::Receiver<Wire>) {
    let now = *wire.borrow_and_update();
    match now {
        Wire::Cut => {}
        Wire::Noise => {
            let _ = near.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"jsonrpc\":!").await;
        }
        Wire::To(address) => {
            let Ok(mut far) = TcpStream::connect(address).await else { return };
            tokio::select! {
                _ = copy_bidirectional(&mut near, &mut far) => {}
                _ = wire.changed() => {}
            }
        }
    }
}
