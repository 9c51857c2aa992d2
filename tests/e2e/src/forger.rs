//! What flows one way through a stream between two stages, forged: other tensors in one step, and a signature over
//! just those.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use cid::Cid;
use tensorlink_node::Identity;
use tensorlink_node::ports::{Duplex, Event, Ports};
use tensorlink_node::shard::{Shard, ShardSource};
use tensorlink_node::wire::frame::{self, Frame, Hello, MAX_PAYLOAD, SignedLog};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::{Boundary, tensor_root};
use tensorlink_proof::merkle::list_root;
use tensorlink_types::abi::EdgeLog;
use tensorlink_types::{Address, TensorRoot, TensorType};
use tokio::io::{AsyncWriteExt, copy, split};

/// Memory for a shard, bytes.
const MEMORY: u64 = 1 << 30;

/// Forges what a sender says.
pub struct Forger {
    /// Of the villain.
    pub ports: Ports,
    /// Who signs what was forged.
    pub signer: Identity,
    /// In which step tensors are others.
    pub step: u32,
    /// Over which of its boundaries the sender sends.
    pub boundary: Boundary,
    /// Who has the sender's shard, besides the villain.
    pub holders: Vec<Address>,
    ty: Option<TensorType>,
    /// What was sent since the last log, by step and micro-batch.
    sent: BTreeMap<(u32, u32), TensorRoot>,
}

impl Forger {
    /// Of a stream that says nothing yet.
    pub const fn new(ports: Ports, signer: Identity, (step, boundary): (u32, Boundary), holders: Vec<Address>) -> Self {
        Self { ports, signer, step, boundary, holders, ty: None, sent: BTreeMap::new() }
    }

    /// Forges what `sender` sends to `receiver`, and passes on what comes back, until either is gone.
    pub async fn pass_on(mut self, sender: Box<dyn Duplex>, receiver: Box<dyn Duplex>) -> Result<()> {
        let (mut from_sender, mut to_sender) = split(sender);
        let (mut from_receiver, mut to_receiver) = split(receiver);
        let forward = async {
            loop {
                let forged = self.forge(frame::read(&mut from_sender, MAX_PAYLOAD).await?).await?;
                frame::write(&mut to_receiver, &forged).await?;
                to_receiver.flush().await?;
            }
        };
        tokio::select! {
            ended = forward => ended,
            copied = copy(&mut from_receiver, &mut to_sender) => Ok(copied.map(|_| ())?),
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
                let signature = self.signer.sign(self.ports.contracts.edge_log(&log))?.to_vec();
                Ok(Frame::SignedLog(SignedLog { log, signature }))
            }
        }
    }

    /// Type of what crosses the boundary, from the sender's shard.
    async fn type_of(&self, hello: &Hello) -> Result<Option<TensorType>> {
        let chain = &self.ports.chain;
        let events = chain.past_events(chain.deployment().block, chain.head().await?.number).await?;
        let manifest = events.iter().find_map(|at| match &at.event {
            Event::JobPosted { job, terms, .. } if *job == hello.job => Cid::try_from(terms.manifest.as_ref()).ok(),
            _ => None,
        });
        let manifest = manifest.context("the job is not on chain")?;
        let source = ShardSource { job: hello.job, stage: hello.stage, manifest, holders: self.holders.clone() };
        let shard = Shard::fetch(chain.as_ref(), self.ports.store.as_ref(), &source, (1, &MEMORY)).await?;
        let sources =
            if self.boundary == Boundary::ToNext { &shard.program.to_next } else { &shard.program.to_previous };
        let output = |source: &u32| shard.program.operators.get(*source as usize).map(|op| op.output.clone());
        Ok(sources.first().and_then(output))
    }
}
