//! A wire between a node and its endpoint that can be cut, mended and led elsewhere.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
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
    /// To this endpoint, up to the first transaction that is sent: it arrives, and its answer does not. From then on as
    /// [`Wire::Cut`].
    Swallows(SocketAddr),
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
        let control = wire.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, seen.clone(), control.clone()));
            }
        });
        Self { port, wire }
    }

    pub(crate) fn http(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn ws(&self) -> String {
        format!("ws://127.0.0.1:{}", self.port)
    }

    /// Whether it was left alone by [`Wire::Swallows`].
    pub(crate) fn is_cut(&self) -> bool {
        *self.wire.borrow() == Wire::Cut
    }

    /// Ends all connections; new ones lead to `wire`.
    pub(crate) fn lead(&self, wire: Wire) {
        self.wire.send_replace(wire);
    }
}

async fn carry(mut near: TcpStream, mut wire: watch::Receiver<Wire>, control: watch::Sender<Wire>) {
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
        Wire::Swallows(address) => {
            let Ok(far) = TcpStream::connect(address).await else { return };
            tokio::select! {
                () = swallow(near, far, control) => {}
                _ = wire.changed() => {}
            }
        }
    }
}

/// Carries both ways until a transaction is sent, of which only the way there is carried.
async fn swallow(near: TcpStream, far: TcpStream, control: watch::Sender<Wire>) {
    let ((mut near_read, mut near_write), (mut far_read, mut far_write)) = (near.into_split(), far.into_split());
    let back = tokio::spawn(async move { tokio::io::copy(&mut far_read, &mut near_write).await });
    let mut part = vec![0; 1 << 20];
    while let Ok(size @ 1..) = near_read.read(&mut part).await {
        let sends = String::from_utf8_lossy(&part[..size]).contains("eth_sendRawTransaction");
        if sends {
            back.abort();
        }
        if far_write.write_all(&part[..size]).await.is_err() || sends {
            if sends {
                // It is taken before the wire ends.
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                control.send_replace(Wire::Cut);
            }
            return;
        }
    }
}
