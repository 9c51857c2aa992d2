//! A net over which the neighbours get other tensors than were computed, under signatures of just those.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use tensorlink_node::ports::{Duplex, Event, Gate, Incoming, Net, NetError, Ports, Protocol};
use tensorlink_node::shard::{Shard, ShardSource};
use tensorlink_node::wire::frame::{self, Frame, Hello, MAX_PAYLOAD, SignedLog};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::{Edge, tensor_root};
use tensorlink_proof::merkle::list_root;
use tensorlink_types::abi::EdgeLog;
use tensorlink_types::{Address, TensorRoot, TensorType};
use tokio::io::{AsyncWriteExt, copy, duplex, split};
use tokio::sync::mpsc;

/// Streams between the real net and the worker, and bytes in each.
const QUEUE: usize = 16;
const BUFFER: usize = 1 << 20;
/// Memory for a shard, bytes.
const MEMORY: u64 = 1 << 30;

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

    fn fork(&self, stream: Box<dyn Duplex>, edge: Edge) -> Box<dyn Duplex> {
        let (worker, ours) = duplex(BUFFER);
        let forger = Forger { ports: self.ports.clone(), step: self.step, edge, ty: None, sent: BTreeMap::new() };
        tokio::spawn(forger.pass_on(Box::new(ours), stream));
        Box::new(worker)
    }
}

/// One stream.
struct Forger {
    ports: Ports,
    step: u32,
    edge: Edge,
    ty: Option<TensorType>,
    /// What was sent since the last log, by step and micro-batch.
    sent: BTreeMap<(u32, u32), TensorRoot>,
}

impl Forger {
    /// Until either side is gone.
    async fn pass_on(mut self, worker: Box<dyn Duplex>, peer: Box<dyn Duplex>) -> Result<()> {
        let (mut from_worker, mut to_worker) = split(worker);
        let (mut from_peer, mut to_peer) = split(peer);
        let forward = async {
            loop {
                let forged = self.forge(frame::read(&mut from_worker, MAX_PAYLOAD).await?).await?;
                frame::write(&mut to_peer, &forged).await?;
                to_peer.flush().await?;
            }
        };
        tokio::select! {
            ended = forward => ended,
            copied = copy(&mut from_peer, &mut to_worker) => Ok(copied.map(|_| ())?),
        }
    }

    async fn forge(&mut self, frame: Frame) -> Result<Frame> {
        match frame {
            Frame::Hello(hello) => {
                self.ty = self.type_of(&hello).await?;
                Ok(Frame::Hello(hello))
            }
            Frame::Tensor { step, micro_batch, data } => {
                let mut bytes = data.to_vec();
                // A small positive number in place of zero, zero in place of any other: both are in every type.
                if let Some(first) = bytes.first_mut().filter(|_| step == self.step) {
                    *first = u8::from(*first == 0);
                }
                let ty = self.ty.clone().context("a tensor to a neighbour that there is not")?;
                let tensor = Tensor::from_bytes(ty, &bytes)?;
                self.sent.insert((step, micro_batch), tensor_root(&tensor));
                Ok(Frame::Tensor { step, micro_batch, data: bytes.into() })
            }
            Frame::SignedLog(SignedLog { log, .. }) => {
                let root = list_root(std::mem::take(&mut self.sent).into_values());
                let log = EdgeLog { root, ..log };
                let signature = self.ports.identity.sign(self.ports.contracts.edge_log(&log))?.to_vec();
                Ok(Frame::SignedLog(SignedLog { log, signature }))
            }
        }
    }

    /// Type of what crosses the edge, from the worker's own shard.
    async fn type_of(&self, hello: &Hello) -> Result<Option<TensorType>> {
        let chain = &self.ports.chain;
        let events = chain.past_events(chain.deployment().block, chain.head().await?.number).await?;
        let manifest = events.iter().find_map(|at| match &at.event {
            Event::JobPosted { job, terms, .. } if *job == hello.job => Cid::try_from(terms.manifest.as_ref()).ok(),
            _ => None,
        });
        let manifest = manifest.context("the job is not on chain")?;
        let source = ShardSource { job: hello.job, stage: hello.stage, manifest, holders: vec![] };
        let shard = Shard::fetch(chain.as_ref(), self.ports.store.as_ref(), &source, MEMORY).await?;
        let sources = if self.edge == Edge::ToNext { &shard.program.to_next } else { &shard.program.to_previous };
        let output = |source: &u32| shard.program.operators.get(*source as usize).map(|op| op.output.clone());
        Ok(sources.first().and_then(output))
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
        Ok(self.fork(self.ports.net.open(peer, protocol).await?, Edge::ToNext))
    }

    async fn accept(&self, protocol: Protocol) -> Result<mpsc::Receiver<(Address, Box<dyn Duplex>)>, NetError> {
        let mut streams = self.ports.net.accept(protocol).await?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        let forked = Arc::new(Self::new(self.ports.clone(), self.step));
        tokio::spawn(async move {
            while let Some((peer, stream)) = streams.recv().await {
                if sender.send((peer, forked.fork(stream, Edge::ToPrevious))).await.is_err() {
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
