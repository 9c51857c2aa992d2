//! A net over which neighbours never get a worker's attestation of what it sent, and, once it has theirs, nothing
//! any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use async_trait::async_trait;
use bytes::Bytes;
use tensorlink_node::ports::{Duplex, Gate, Incoming, Net, NetError, Protocol};
use tensorlink_node::wire::frame::{self, Frame, MAX_PAYLOAD};
use tensorlink_types::Address;
use tokio::io::{AsyncWriteExt, copy, duplex, split};
use tokio::sync::mpsc;

/// Streams between the real net and the worker, and bytes in each.
const QUEUE: usize = 16;
const BUFFER: usize = 1 << 20;

/// An honest net that ends with the first interval: what the worker needs for its own claim it gets, and gives nothing
/// for theirs.
#[derive(Clone)]
pub struct Hush {
    net: Arc<dyn Net>,
    /// Whether an attestation was withheld.
    done: Arc<AtomicBool>,
}

impl Hush {
    /// Over a worker's own net.
    pub fn new(net: Arc<dyn Net>) -> Self {
        Self { net, done: Arc::default() }
    }

    fn hush(&self, neighbour: Box<dyn Duplex>) -> Box<dyn Duplex> {
        let (worker, ours) = duplex(BUFFER);
        let hush = self.clone();
        tokio::spawn(async move { hush.pass_on(Box::new(ours), neighbour).await });
        Box::new(worker)
    }

    async fn pass_on(self, worker: Box<dyn Duplex>, neighbour: Box<dyn Duplex>) -> Result<()> {
        let (mut from_worker, mut to_worker) = split(worker);
        let (mut from_neighbour, mut to_neighbour) = split(neighbour);
        let said = async {
            loop {
                let frame = frame::read(&mut from_worker, MAX_PAYLOAD).await?;
                if matches!(frame, Frame::SignedLog(_)) {
                    self.done.store(true, Ordering::SeqCst);
                }
                // The stream stays open: nobody is told that there is nothing to wait for.
                if !self.done.load(Ordering::SeqCst) {
                    frame::write(&mut to_neighbour, &frame).await?;
                    to_neighbour.flush().await?;
                }
            }
        };
        tokio::select! {
            ended = said => ended,
            copied = copy(&mut from_neighbour, &mut to_worker) => Ok(copied.map(|_| ())?),
        }
    }
}

#[async_trait]
impl Net for Hush {
    fn address(&self) -> Address {
        self.net.address()
    }

    async fn request(&self, peer: Address, protocol: Protocol, body: Bytes) -> Result<Bytes, NetError> {
        self.net.request(peer, protocol, body).await
    }

    async fn serve(&self, protocol: Protocol) -> Result<mpsc::Receiver<Incoming>, NetError> {
        self.net.serve(protocol).await
    }

    async fn open(&self, peer: Address, protocol: Protocol) -> Result<Box<dyn Duplex>, NetError> {
        Ok(self.hush(self.net.open(peer, protocol).await?))
    }

    async fn accept(&self, protocol: Protocol) -> Result<mpsc::Receiver<(Address, Box<dyn Duplex>)>, NetError> {
        let mut streams = self.net.accept(protocol).await?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        let hush = self.clone();
        tokio::spawn(async move {
            while let Some((peer, stream)) = streams.recv().await {
                if sender.send((peer, hush.hush(stream))).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    async fn publish(&self, topic: &'static str, message: Bytes) -> Result<(), NetError> {
        self.net.publish(topic, message).await
    }

    async fn subscribe(&self, topic: &'static str) -> Result<mpsc::Receiver<(Address, Bytes)>, NetError> {
        self.net.subscribe(topic).await
    }

    fn set_gate(&self, gate: Arc<dyn Gate>) {
        self.net.set_gate(gate);
    }

    fn bytes_moved(&self) -> (u64, u64) {
        self.net.bytes_moved()
    }
}
