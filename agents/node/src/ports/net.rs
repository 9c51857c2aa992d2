//! Peer-to-peer messages and streams. Peers are named by Ethereum address; the transport proves it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tensorlink_types::Address;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

use crate::link;

/// A protocol between two nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Protocol {
    /// Questions and answers between roles: offers, readiness, audits (`crate::wire`). One frame each way.
    Rpc,
    /// Long-lived streams of tensors between neighbouring stages.
    Tensor,
    /// Blocks by CID. One frame each way.
    Block,
    /// Filler, by which the bandwidth to us is measured (`crate::link`). One frame each way.
    Burst,
    /// Intervals of native mode, between a user and the workers it names. One frame each way.
    Native,
    /// How fast workers were in others' jobs (`crate::observed`). One frame each way.
    Observed,
}

impl Protocol {
    /// Every protocol.
    pub const ALL: [Self; 6] = [Self::Rpc, Self::Tensor, Self::Block, Self::Burst, Self::Native, Self::Observed];

    /// Name on the wire, with its version.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rpc => "/tensorlink/rpc/2",
            Self::Tensor => "/tensorlink/tensor/1",
            Self::Block => "/tensorlink/block/1",
            Self::Burst => "/tensorlink/burst/1",
            Self::Native => "/tensorlink/native/1",
            Self::Observed => "/tensorlink/observed/1",
        }
    }

    /// Largest frame of an answer, or of a stream, in bytes.
    pub const fn max_frame(self) -> usize {
        match self {
            Self::Rpc => 64 << 20,
            Self::Tensor => 256 << 20,
            Self::Block => 2 << 20,
            Self::Burst => link::MOST as usize,
            Self::Native => 64 << 10,
            // Some statements about each of many workers.
            Self::Observed => 1 << 20,
        }
    }

    /// Largest frame of a request, in bytes: what somebody may announce before anything of it is known.
    pub const fn max_request(self) -> usize {
        match self {
            // Rows of tensors, on their way through a serving job.
            Self::Rpc => 64 << 20,
            // Nobody asks by it.
            Self::Tensor => 0,
            // A CID.
            Self::Block => 128,
            // How much is wanted, and filler.
            Self::Burst => link::HEADER + link::MOST as usize,
            // Two CIDs, and what to do with them.
            Self::Native => 1 << 10,
            // Addresses of workers.
            Self::Observed => 8 << 10,
        }
    }
}

/// A byte stream to a peer.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Duplex for T {}

/// A request from a peer, to be answered once.
#[derive(Debug)]
pub struct Incoming {
    /// Who asks; proven by the transport.
    pub peer: Address,
    /// The frame.
    pub body: Bytes,
    /// Where the answer goes. Dropping it closes the stream without one.
    pub reply: oneshot::Sender<Bytes>,
}

/// Decides who may talk to us. Asked before a role sees anything of a stream; must answer at once, from memory.
pub trait Gate: Send + Sync + 'static {
    /// Whether `peer` may use `protocol` now.
    fn allows(&self, peer: Address, protocol: Protocol) -> bool;

    /// Whether `peer` has stake: where there is no room for everybody, those who have come first. `None` where nothing
    /// is known of stakes; then nobody is preferred.
    fn has_stake(&self, _peer: Address) -> Option<bool> {
        None
    }

    /// Whether `peer` is heard in the gossip of a topic: who has stake, if the role says nothing else. `None` as above.
    fn may_publish(&self, peer: Address, _topic: &str) -> Option<bool> {
        self.has_stake(peer)
    }
}

/// Why a message did not get through.
#[derive(Debug, Error)]
pub enum NetError {
    /// No address is known for the peer yet. Retry after discovery had time.
    #[error("no route to {0} yet: it may be offline, or no bootstrap peer knows it")]
    Unknown(Address),
    /// The peer is known but does not answer. Retry.
    #[error("{peer} cannot be reached: {reason}")]
    Unreachable {
        /// The peer.
        peer: Address,
        /// What the transport said.
        reason: String,
    },
    /// The peer's gate said no. Do not retry before something changed on chain.
    #[error("{0} refuses us: are we staked and assigned?")]
    Refused(Address),
    /// No answer in time. Retry.
    #[error("{peer} did not answer within {after:?}")]
    Timeout {
        /// The peer.
        peer: Address,
        /// How long we waited.
        after: Duration,
    },
    /// The peer broke the protocol. Do not retry.
    #[error("{peer} broke {protocol}: {reason}", protocol = .protocol.name())]
    Protocol {
        /// The peer.
        peer: Address,
        /// The protocol.
        protocol: Protocol,
        /// How.
        reason: String,
    },
    /// Our own frame is too large.
    #[error("a frame of {size} bytes exceeds the {limit} of this protocol")]
    TooLarge {
        /// Bytes of the frame.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// This node is shutting down.
    #[error("the node is shutting down")]
    Closed,
}

/// Messages and streams to peers.
#[async_trait]
pub trait Net: Send + Sync + 'static {
    /// Our own address.
    fn address(&self) -> Address;

    /// Sends one request and waits for its answer, connecting first if need be.
    async fn request(&self, peer: Address, protocol: Protocol, body: Bytes) -> Result<Bytes, NetError>;

    /// Takes over the requests of a protocol. Called once per protocol; later calls replace the receiver.
    async fn serve(&self, protocol: Protocol) -> Result<mpsc::Receiver<Incoming>, NetError>;

    /// Opens a stream to a peer, connecting first if need be.
    async fn open(&self, peer: Address, protocol: Protocol) -> Result<Box<dyn Duplex>, NetError>;

    /// Takes over the streams that peers open. Called once per protocol; later calls replace the receiver.
    async fn accept(&self, protocol: Protocol) -> Result<mpsc::Receiver<(Address, Box<dyn Duplex>)>, NetError>;

    /// Publishes to a topic (gossip). At most 64 KiB; may be lost.
    async fn publish(&self, topic: &'static str, message: Bytes) -> Result<(), NetError>;

    /// Listens to a topic. Slow readers lose the oldest messages.
    async fn subscribe(&self, topic: &'static str) -> Result<mpsc::Receiver<(Address, Bytes)>, NetError>;

    /// Replaces the gate. Until the first call everybody is refused everything but blocks.
    fn set_gate(&self, gate: Arc<dyn Gate>);

    /// Bytes sent and received on streams and requests since start.
    fn bytes_moved(&self) -> (u64, u64);
}
