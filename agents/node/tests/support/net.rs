//! Nodes that are connected in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use tensorlink_node::ports::*;
use tensorlink_types::Address;
use tokio::sync::mpsc;

type Streams = mpsc::Sender<(Address, Box<dyn Duplex>)>;
type Listeners = Vec<mpsc::Sender<(Address, Bytes)>>;

/// Joins the nets of several nodes.
#[derive(Default)]
pub struct Hub {
    requests: Mutex<HashMap<Address, mpsc::Sender<Incoming>>>,
    streams: Mutex<HashMap<Address, Streams>>,
    topics: Mutex<HashMap<&'static str, Listeners>>,
    /// What was published, and by whom.
    pub published: Mutex<Vec<(Address, Bytes)>>,
}

pub struct MemoryNet {
    pub own: Address,
    pub hub: Arc<Hub>,
}

#[async_trait]
impl Net for MemoryNet {
    fn address(&self) -> Address {
        self.own
    }

    async fn request(&self, peer: Address, _: Protocol, body: Bytes) -> Result<Bytes, NetError> {
        let to = self.hub.requests.lock().unwrap().get(&peer).cloned().ok_or(NetError::Unknown(peer))?;
        let (reply, answer) = tokio::sync::oneshot::channel();
        to.send(Incoming { peer: self.own, body, reply }).await.map_err(|_| NetError::Unknown(peer))?;
        answer.await.map_err(|_| NetError::Unreachable { peer, reason: "no answer".into() })
    }

    async fn serve(&self, _: Protocol) -> Result<mpsc::Receiver<Incoming>, NetError> {
        let (sender, receiver) = mpsc::channel(16);
        self.hub.requests.lock().unwrap().insert(self.own, sender);
        Ok(receiver)
    }

    async fn open(&self, peer: Address, _: Protocol) -> Result<Box<dyn Duplex>, NetError> {
        let to = self.hub.streams.lock().unwrap().get(&peer).cloned().ok_or(NetError::Unknown(peer))?;
        let (ours, theirs) = tokio::io::duplex(4096);
        to.send((self.own, Box::new(theirs))).await.map_err(|_| NetError::Unknown(peer))?;
        Ok(Box::new(ours))
    }

    async fn accept(&self, _: Protocol) -> Result<mpsc::Receiver<(Address, Box<dyn Duplex>)>, NetError> {
        let (sender, receiver) = mpsc::channel(16);
        self.hub.streams.lock().unwrap().insert(self.own, sender);
        Ok(receiver)
    }

    async fn publish(&self, topic: &'static str, message: Bytes) -> Result<(), NetError> {
        for listener in self.hub.topics.lock().unwrap().get(topic).into_iter().flatten() {
            // Slow readers lose messages.
            let _ = listener.try_send((self.own, message.clone()));
        }
        self.hub.published.lock().unwrap().push((self.own, message));
        Ok(())
    }

    async fn subscribe(&self, topic: &'static str) -> Result<mpsc::Receiver<(Address, Bytes)>, NetError> {
        let (sender, receiver) = mpsc::channel(16);
        self.hub.topics.lock().unwrap().entry(topic).or_default().push(sender);
        Ok(receiver)
    }

    fn set_gate(&self, _: Arc<dyn Gate>) {}

    fn bytes_moved(&self) -> (u64, u64) {
        (0, 0)
    }
}
