//! The [`Net`] port by libp2p: peers are named by Ethereum address, and every connection proves it.
//!
//! | module | what lives there |
//! |---|---|
//! | [`identity`] | one secp256k1 key as Ethereum account and PeerId |
//! | `directory` | address → PeerId and multiaddrs: signed DHT records, the book of known routes |
//! | `dial`, `ports` | how an address becomes a connection: table of states, back-off; from which port |
//! | `swarm` | the event loop that owns the libp2p swarm |
//! | `behaviour` | the libp2p protocols and their bounds |
//! | `tls`, `muxer` | what TCP connections are wrapped in: TLS with AES first, yamux in large pieces |
//! | `admission` | which connections are let in: by address, by key, in all |
//! | `wire` | the bytes at the start of a stream and around a request |
//! | `inbound`, `gate`, `share` | streams that peers open: gate, limits, roles; what each peer may hold |
//! | `outbound` | streams that we open; pooled streams for requests |
//! | `gossip`, `scoring` | publish and subscribe; who is not listened to |
//! | `records` | which records of others are kept for the DHT |
//! | `listening` | where we listen, once it is known |
//! | `reach` | how a node is reached that others cannot dial |
//! | `joining` | how a node joins: its first peers, ports that a router opens |
//! | `neighbours`, `local_network`, `mdns` | whom to dial in the local network; finding them there; in what bytes |
//! | `router`, `gateway` | ports that a router opens: when it is asked; one conversation with it |
//! | `relays`, `circuits` | places at relays; connections through them, until there are better ones |
//! | [`config`], [`metrics`], [`error`] | bounds, counters, why a node does not start |
//!
//! A node's name in libp2p is its Ethereum account in another form:
//!
//! ```
//! use tensorlink_net::{Identity, Multiaddr, address_in, address_of};
//!
//! let identity = Identity::from_secret([7; 32])?;
//! assert_eq!(address_of(&identity.peer_id())?, identity.address());
//!
//! let route: Multiaddr = format!("/ip4/192.0.2.1/tcp/4001/p2p/{}", identity.peer_id()).parse()?;
//! assert_eq!(address_in(&route), Some(identity.address()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! TCP connections are secured by TLS 1.3 or Noise (XX), as the ends negotiate: we propose TLS first, because it can
//! use AES, and take either from who dials us, so peers that speak only Noise are reached and reach us. QUIC has its
//! own TLS 1.3.
//!
//! A node that is reachable neither at an address it listens on nor at one given as [`NetConfig::external`] is reached
//! through relays: peers that it dials, and that carry connections for others ([`NetConfig::relay`]). They carry
//! ciphertext, and both ends connect directly as soon as they can (DCUtR). With [`NetConfig::upnp`] the router is asked
//! to let others in; with [`NetConfig::mdns`] peers of the local network are found without any address.

mod admission;
mod behaviour;
mod circuits;
pub mod config;
mod dial;
mod directory;
pub mod error;
mod gate;
mod gateway;
mod gossip;
pub mod identity;
mod inbound;
mod joining;
mod listening;
mod local_network;
mod mdns;
pub mod metrics;
mod muxer;
mod neighbours;
mod outbound;
mod ports;
mod reach;
mod records;
mod relays;
mod router;
mod scoring;
mod share;
mod swarm;
mod tls;
mod wire;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
pub use libp2p::{Multiaddr, PeerId};
use tensorlink_node::ports::{Duplex, Gate, Incoming, Net, NetError, Protocol};
use tensorlink_types::Address;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use crate::config::{Limits, NetConfig};
pub use crate::error::StartError;
pub use crate::identity::{Identity, IdentityError, address_in, address_of};
pub use crate::listening::probe;
pub use crate::metrics::Metrics;
pub use crate::wire::Refusal;

use crate::admission::Admission;
use crate::gate::{Blocks, SharedGate};
use crate::inbound::Inbound;
use crate::listening::is_of_local_network;
use crate::outbound::Outbound;
use crate::swarm::{Command, EventLoop};
use crate::wire::Mode;

/// Commands waiting for the event loop.
const COMMANDS: usize = 256;
/// Bytes that a stream of a node to itself holds.
const LOOPBACK: usize = 256 << 10;
/// How long a stop may take before what is left is dropped.
const STOP: Duration = Duration::from_secs(5);

/// A running node. Dropping it stops it; [`Self::shutdown`] also waits.
pub struct Libp2pNet {
    identity: Identity,
    limits: Limits,
    metrics: Arc<Metrics>,
    commands: mpsc::Sender<Command>,
    inbound: Arc<Inbound>,
    outbound: Outbound,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl std::fmt::Debug for Libp2pNet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Libp2pNet").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Libp2pNet {
    /// Starts to listen and to join the network. Must be called in a tokio runtime.
    pub fn start(identity: Identity, config: NetConfig) -> Result<Self, StartError> {
        if config.listen.is_empty() {
            return Err(StartError::NoListener);
        }
        let limits = config.limits.clone();
        let metrics = Arc::new(Metrics::default());
        let gate = Arc::new(SharedGate::new(Arc::new(Blocks)));
        let admission = Admission::new(&limits, gate.clone(), metrics.clone());
        let mut swarm = behaviour::swarm(&identity, &config, admission)?;
        let mut listeners = HashSet::new();
        for address in &config.listen {
            let failed = |reason: String| StartError::Listen { address: address.clone(), reason };
            probe(address).map_err(|error| failed(error.to_string()))?;
            let listener = swarm.listen_on(address.clone()).map_err(|error| failed(error.to_string()))?;
            listeners.insert(listener);
        }
        for address in &config.external {
            swarm.add_external_address(address.clone());
        }
        if (config.mdns || config.upnp) && !config.listen.iter().any(is_of_local_network) {
            tracing::warn!(
                "this node listens at no IPv4 address of a local network, so nobody finds it by mDNS and no router opens a \
                 port for it: say --listen /ip4/0.0.0.0/tcp/4001"
            );
        }

        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let (commands, receiver) = mpsc::channel(COMMANDS);
        let mut control = swarm.behaviour().streams.new_control();
        let inbound = Arc::new(Inbound::new(limits.clone(), gate.clone(), metrics.clone(), stop.clone()));
        for protocol in Protocol::ALL {
            let incoming = control
                .accept(libp2p::StreamProtocol::new(protocol.name()))
                .map_err(|e| StartError::Transport(e.to_string()))?;
            tasks.spawn(inbound.clone().run(protocol, incoming));
        }
        let outbound = Outbound::new(limits.clone(), metrics.clone(), commands.clone(), control);
        let watch = (gate, metrics.clone());
        let event_loop = EventLoop::new((swarm, listeners), identity.clone(), config, watch, receiver);
        tasks.spawn(event_loop.run(stop.clone()));
        Ok(Self { identity, limits, metrics, commands, inbound, outbound, tasks, stop })
    }

    /// The libp2p name.
    pub fn peer_id(&self) -> PeerId {
        self.identity.peer_id()
    }

    /// Counters since the start.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Where we listen now, each with `/p2p/<id>`: what another node takes as bootstrap address. Waits until every
    /// listener has told, 10 s at the longest.
    pub async fn listen_addresses(&self) -> Result<Vec<Multiaddr>, NetError> {
        self.command(Command::ListenAddresses).await
    }

    /// Peers we are connected to, in no order.
    pub async fn connected_peers(&self) -> Result<Vec<Address>, NetError> {
        self.command(Command::Peers).await
    }

    /// Peers to which only relays lead, in no order.
    pub async fn relayed_peers(&self) -> Result<Vec<Address>, NetError> {
        self.command(Command::Relayed).await
    }

    /// Closes every stream and connection, and waits until that is done.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        let ended = async {
            self.inbound.stopped().await;
            self.tasks.wait().await;
        };
        if tokio::time::timeout(STOP, ended).await.is_err() {
            tracing::warn!("network tasks still run {STOP:?} after the stop");
        }
    }

    async fn command<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, NetError> {
        let (reply, answer) = oneshot::channel();
        tokio::select! {
            () = self.stop.cancelled() => return Err(NetError::Closed),
            sent = self.commands.send(command(reply)) => sent.map_err(|_| NetError::Closed)?,
        }
        answer.await.map_err(|_| NetError::Closed)
    }

    /// Ends with the node.
    async fn while_running<T>(&self, work: impl Future<Output = Result<T, NetError>>) -> Result<T, NetError> {
        tokio::select! {
            () = self.stop.cancelled() => Err(NetError::Closed),
            result = work => result,
        }
    }

    /// A request to a role of this very node. No gate: it is us.
    async fn request_self(&self, protocol: Protocol, body: Bytes) -> Result<Bytes, NetError> {
        let peer = self.identity.address();
        let refused = |reason: Refusal| reason.into_error(peer, protocol);
        let to = self.inbound.requests_to(protocol).ok_or_else(|| refused(Refusal::NotServed))?;
        let (reply, answer) = oneshot::channel();
        let ask = async {
            to.send(Incoming { peer, body, reply }).await.map_err(|_| refused(Refusal::NotServed))?;
            answer.await.map_err(|_| refused(Refusal::Declined))
        };
        let after = self.limits.answer;
        tokio::time::timeout(after, ask).await.unwrap_or(Err(NetError::Timeout { peer, after }))
    }

    /// A stream to a role of this very node.
    async fn open_self(&self, protocol: Protocol) -> Result<Box<dyn Duplex>, NetError> {
        let peer = self.identity.address();
        let refused = |reason: Refusal| reason.into_error(peer, protocol);
        let to = self.inbound.streams_to(protocol).ok_or_else(|| refused(Refusal::NotServed))?;
        let (ours, theirs) = tokio::io::duplex(LOOPBACK);
        let sent = tokio::time::timeout(self.limits.queue_wait, to.send((peer, Box::new(theirs)))).await;
        sent.map_err(|_| refused(Refusal::Busy))?.map_err(|_| refused(Refusal::NotServed))?;
        Ok(Box::new(ours))
    }
}

impl Drop for Libp2pNet {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[async_trait]
impl Net for Libp2pNet {
    fn address(&self) -> Address {
        self.identity.address()
    }

    async fn request(&self, peer: Address, protocol: Protocol, body: Bytes) -> Result<Bytes, NetError> {
        if peer == self.identity.address() {
            return self.while_running(self.request_self(protocol, body)).await;
        }
        self.while_running(self.outbound.request(peer, protocol, body)).await
    }

    async fn serve(&self, protocol: Protocol) -> Result<mpsc::Receiver<Incoming>, NetError> {
        if self.stop.is_cancelled() { Err(NetError::Closed) } else { Ok(self.inbound.serve(protocol)) }
    }

    async fn open(&self, peer: Address, protocol: Protocol) -> Result<Box<dyn Duplex>, NetError> {
        if peer == self.identity.address() {
            return self.while_running(self.open_self(protocol)).await;
        }
        let stream = self.while_running(self.outbound.open(peer, protocol, Mode::Stream)).await?;
        Ok(Box::new(stream))
    }

    async fn accept(&self, protocol: Protocol) -> Result<mpsc::Receiver<(Address, Box<dyn Duplex>)>, NetError> {
        if self.stop.is_cancelled() { Err(NetError::Closed) } else { Ok(self.inbound.accept(protocol)) }
    }

    async fn publish(&self, topic: &'static str, message: Bytes) -> Result<(), NetError> {
        self.command(|reply| Command::Publish(topic, message, reply)).await?
    }

    async fn subscribe(&self, topic: &'static str) -> Result<mpsc::Receiver<(Address, Bytes)>, NetError> {
        let from = self.command(|reply| Command::Subscribe(topic, reply)).await?;
        let (to, receiver) = mpsc::channel(1);
        let forward = gossip::forward(from, to, self.metrics.clone());
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! { () = stop.cancelled() => {}, () = forward => {} }
        });
        Ok(receiver)
    }

    fn set_gate(&self, gate: Arc<dyn Gate>) {
        self.inbound.set_gate(gate);
    }

    fn bytes_moved(&self) -> (u64, u64) {
        self.metrics.bytes_moved()
    }
}
