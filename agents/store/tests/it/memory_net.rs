//! The Net port in memory: requests go straight to whoever serves. Only what the store uses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tensorlink_node::ports::{Duplex, Gate, Incoming, Net, NetError, Protocol};
use tensorlink_types::Address;
use tokio::sync::{mpsc, oneshot};

/// What joins the nodes.
#[derive(Clone, Default)]
pub(crate) struct Hub(Arc<Mutex<HashMap<Address, mpsc::Sender<Incoming>>>>);

/// One node's end of a [`Hub`].
pub(crate) struct MemoryNet {
    hub: Hub,
    address: Address,
    /// Requests sent.
    pub(crate) sent: AtomicUsize,
}

impl Hub {
    pub(crate) fn node(&self, byte: u8) -> Arc<MemoryNet> {
        Arc::new(MemoryNet { hub: self.clone(), address: Address::repeat_byte(byte), sent: AtomicUsize::new(0) })
    }

    /// A node that answers every request as told. `None` gives no answer.
    pub(crate) fn answering(&self, byte: u8, answer: impl Fn(&[u8]) -> Option<Bytes> + Send + 'static) -> Address {
        let address = Address::repeat_byte(byte);
        let (sender, mut requests) = mpsc::channel::<Incoming>(16);
        self.0.lock().unwrap().insert(address, sender);
        tokio::spawn(async move {
            while let Some(Incoming { body, reply, .. }) = requests.recv().await {
                if let Some(answer) = answer(&body) {
                    let _ = reply.send(answer);
                }
            }
        });
        address
    }
}

#[async_trait]
impl Net for MemoryNet {
    fn address(&self) -> Address {
        self.address
    }

    async fn request(&self, peer: Address, protocol: Protocol, body: Bytes) -> Result<Bytes, NetError> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let to = self.hub.0.lock().unwrap().get(&peer).cloned().ok_or(NetError::Unknown(peer))?;
        let (reply, answer) = oneshot::channel();
        let gone = || NetError::Unreachable { peer, reason: "gone".into() };
        to.send(Incoming { peer: self.address, body, reply }).await.map_err(|_| gone())?;
        let after = Duration::from_secs(5);
        let answer = tokio::time::timeout(after, answer).await.map_err(|_| NetError::Timeout { peer, after })?;
        let answer = answer.map_err(|_| gone())?;
        assert!(answer.len() <= protocol.max_frame(), "a frame of {}", answer.len());
        Ok(answer)
    }

    async fn serve(&self, protocol: Protocol) -> Result<mpsc::Receiver<Incoming>, NetError> {
        assert_eq!(protocol, Protocol::Block);
        let (sender, receiver) = mpsc::channel(16);
        self.hub.0.lock().unwrap().insert(self.address, sender);
        Ok(receiver)
    }

    async fn open(&self, peer: Address, _: Protocol) -> Result<Box<dyn Duplex>, NetError> {
        Err(NetError::Refused(peer))
    }

    async fn accept(&self, _: Protocol) -> Result<mpsc::Receiver<(Address, Box<dyn Duplex>)>, NetError> {
        Err(NetError::Closed)
    }

    async fn publish(&self, _: &'static str, _: Bytes) -> Result<(), NetError> {
        Err(NetError::Closed)
    }

    async fn subscribe(&self, _: &'static str) -> Result<mpsc::Receiver<(Address, Bytes)>, NetError> {
        Err(NetError::Closed)
    }

    fn set_gate(&self, _: Arc<dyn Gate>) {}

    fn bytes_moved(&self) -> (u64, u64) {
        (0, 0)
    }
}
