//! A net over which the neighbours get other tensors than were computed, under signatures of just those.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tensorlink_node::ports::{Duplex, Gate, Incoming, Net, NetError, Ports, Protocol};
use tensorlink_proof::commit::Boundary;
use tensorlink_types::Address;
use tokio::io::duplex;
use tokio::sync::mpsc;

use crate::forger::Forger;

/// Streams between the real net and the worker, and bytes in each.
const QUEUE: usize = 16;
const BUFFER: usize = 1 << 20;

/// An honest net that tells a neighbour, in one step, something else than its worker says.
pub struct Forked {
    ports: Ports,
    step: u32,
}

impl Forked {
    /// Over a worker's own ports, from which it knows the types of tensors and signs.
    pub const fn new(ports: Ports, step: u32) -> Self {
        Self { ports, step }
    }

    fn fork(&self, stream: Box<dyn Duplex>, boundary: Boundary) -> Box<dyn Duplex> {
        let (worker, ours) = duplex(BUFFER);
        let forger = Forger::new(self.ports.clone(), self.ports.identity.clone(), (self.step, boundary), vec![]);
        tokio::spawn(forger.pass_on(Box::new(ours), stream));
        Box::new(worker)
    }
}

#[async_trait]
impl Net for Forked {
    fn address(&self) -> Address {
        self.ports.net.address()
    }

    async fn request(&self, peer: Address, protocol: Protocol, body: Bytes) -> Result<Bytes, NetError> {
        self.ports.net.request(peer, protocol, body).await
    }

    async fn serve(&self, protocol: Protocol) -> Result<mpsc::Receiver<Incoming>, NetError> {
        self.ports.net.serve(protocol).await
    }

    async fn open(&self, peer: Address, protocol: Protocol) -> Result<Box<dyn Duplex>, NetError> {
        Ok(self.fork(self.ports.net.open(peer, protocol).await?, Boundary::ToNext))
    }

    async fn accept(&self, protocol: Protocol) -> Result<mpsc::Receiver<(Address, Box<dyn Duplex>)>, NetError> {
        let mut streams = self.ports.net.accept(protocol).await?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        let forked = Arc::new(Self::new(self.ports.clone(), self.step));
        tokio::spawn(async move {
            while let Some((peer, stream)) = streams.recv().await {
                if sender.send((peer, forked.fork(stream, Boundary::ToPrevious))).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    async fn publish(&self, topic: &'static str, message: Bytes) -> Result<(), NetError> {
        self.ports.net.publish(topic, message).await
    }

    async fn subscribe(&self, topic: &'static str) -> Result<mpsc::Receiver<(Address, Bytes)>, NetError> {
        self.ports.net.subscribe(topic).await
    }

    fn set_gate(&self, gate: Arc<dyn Gate>) {
        self.ports.net.set_gate(gate);
    }

    fn bytes_moved(&self) -> (u64, u64) {
        self.ports.net.bytes_moved()
    }
}
