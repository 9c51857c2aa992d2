//! Which connections are let in: by address, by key, and in all.
//!
//! | who | at most |
//! |---|---|
//! | one address (IPv6: one /64), handshakes under way included | [`Limits::connections_per_host`] |
//! | one loopback address, the same | [`Limits::connections_per_loopback`]: nodes of one machine share it |
//! | one key, whoever dialled | [`Limits::connections_per_peer`] |
//! | all who dialled us and have no stake | [`Limits::connections`] less [`Limits::reserved`] |
//! | all | [`Limits::connections`] |
//! | all handshakes under way, of each direction | half of these |
//!
//! Who comes through a relay has no address here: all of them count as one.
//!
//! So strangers leave room for peers that have stake, and for those that we dial. A peer with stake does not count for
//! its address once it has proven its key: many may be behind one router. Where there is no room for another stranger,
//! the address that has most connections loses its oldest, if it has more than the newcomer's would then have. Who
//! connects and says nothing is dropped after libp2p's 10 s. Which address the packets of a handshake by QUIC come from
//! is not proven before its end.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::swarm::{
    CloseConnection, ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use libp2p::{Multiaddr, PeerId};
use thiserror::Error;
use tokio::time::Instant;

use crate::config::Limits;
use crate::gate::SharedGate;
use crate::identity::address_of;
use crate::metrics::Metrics;
use crate::relays;

/// Least time between two log lines about one bound.
const SILENCE: Duration = Duration::from_secs(10);

/// The bound that a connection would exceed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub(crate) enum Full {
    #[error(
        "its address has as many connections as one may have: if it is none that you know, block it in your firewall"
    )]
    Host,
    #[error("its key has as many connections as one may have")]
    Peer,
    #[error("as many peers without stake are connected as may be: others are let in as those leave")]
    Strangers,
    #[error("as many peers are connected as may be: others are let in as those leave")]
    All,
    #[error("as many handshakes are under way as may be")]
    Handshakes,
}

impl Full {
    const COUNT: usize = 5;

    const fn index(self) -> usize {
        self as usize
    }
}

/// Who is at the other end, as far as its address tells: one IPv4 address, or the 64 bits that a provider gives to one
/// customer in IPv6. Of who comes through a relay nothing is known.
fn host(address: &Multiaddr) -> Option<IpAddr> {
    match relays::host(address)? {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let network = u128::from(v6) & !u128::from(u64::MAX);
            Some(Ipv6Addr::from(network).into())
        }
        ip => Some(ip),
    }
}

/// How far a connection is, and whose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    /// Somebody dialled us and shakes hands.
    Arriving(Option<IpAddr>),
    /// We dial, or shake hands.
    Dialling(Option<PeerId>),
    /// Somebody without stake dialled us.
    Stranger(PeerId, Option<IpAddr>),
    /// Somebody with stake dialled us, or we dialled.
    Welcome(PeerId),
}

impl Held {
    const fn peer(self) -> Option<PeerId> {
        match self {
            Self::Stranger(peer, _) | Self::Welcome(peer) => Some(peer),
            Self::Arriving(_) | Self::Dialling(_) => None,
        }
    }

    /// Whether somebody of this address shakes hands; who it is, and so whether it has stake, nobody knows yet.
    fn arrives_from(self, ip: IpAddr) -> bool {
        matches!(self, Self::Arriving(Some(from)) if from == ip)
    }

    /// Whether it is a stranger of this address.
    fn is_stranger_of(self, ip: IpAddr) -> bool {
        matches!(self, Self::Stranger(_, Some(from)) if from == ip)
    }
}

/// All connections. There are few enough to be counted anew each time.
struct Connections {
    held: HashMap<ConnectionId, Held>,
    /// Strangers that made room for others, and are still to be told.
    leaving: VecDeque<(ConnectionId, PeerId)>,
    limits: Limits,
}

impl Connections {
    fn new(limits: &Limits) -> Self {
        Self { held: HashMap::new(), leaving: VecDeque::new(), limits: limits.clone() }
    }

    fn below(&self, limit: u32, full: Full, which: impl Fn(Held) -> bool) -> Result<(), Full> {
        let held = self.held.values().filter(|held| which(**held)).count();
        if held < limit as usize { Ok(()) } else { Err(full) }
    }

    const fn handshakes(&self) -> u32 {
        self.limits.connections.div_ceil(2)
    }

    /// How many an address may have.
    const fn of_host(&self, ip: IpAddr) -> u32 {
        if ip.is_loopback() { self.limits.connections_per_loopback } else { self.limits.connections_per_host }
    }

    /// Somebody dials us.
    fn arriving(&mut self, id: ConnectionId, host: Option<IpAddr>) -> Result<(), Full> {
        if let Some(ip) = host {
            self.below(self.of_host(ip), Full::Host, |held| held.arrives_from(ip))?;
        }
        self.below(self.handshakes(), Full::Handshakes, |held| matches!(held, Held::Arriving(_)))?;
        self.held.insert(id, Held::Arriving(host));
        Ok(())
    }

    /// Who dialled us has proven its key.
    fn arrived(&mut self, id: ConnectionId, peer: PeerId, host: Option<IpAddr>, staked: bool) -> Result<(), Full> {
        self.established(peer)?;
        let held = if staked {
            self.below_in_all()?;
            Held::Welcome(peer)
        } else {
            if let Some(ip) = host {
                self.below(self.of_host(ip), Full::Host, |held| held.is_stranger_of(ip))?;
            }
            let share = self.limits.connections.saturating_sub(self.limits.reserved);
            let room = self.below(share, Full::Strangers, |held| matches!(held, Held::Stranger(..)));
            if let Err(full) = room {
                let leaves = self.most_of_one(Some(host)).ok_or(full)?;
                self.end(leaves);
            }
            Held::Stranger(peer, host)
        };
        self.held.insert(id, held);
        Ok(())
    }

    fn end(&mut self, (id, peer): (ConnectionId, PeerId)) {
        self.held.remove(&id);
        self.leaving.push_back((id, peer));
    }

    /// Room for a peer with stake or one that we dialled: where there is none, a stranger makes it.
    fn below_in_all(&mut self) -> Result<(), Full> {
        let room = self.below(self.limits.connections, Full::All, |held| held.peer().is_some());
        if let Err(full) = room {
            let leaves = self.most_of_one(None).ok_or(full)?;
            self.end(leaves);
        }
        Ok(())
    }

    /// The oldest connection of a stranger of the address that has most of these; for another stranger, of the address
    /// that is given, only if that one has two more.
    fn most_of_one(&self, stranger: Option<Option<IpAddr>>) -> Option<(ConnectionId, PeerId)> {
        let mut strangers: HashMap<Option<IpAddr>, (u32, ConnectionId, PeerId)> = HashMap::new();
        for (id, held) in &self.held {
            if let Held::Stranger(peer, of) = held {
                let (n, oldest, who) = strangers.entry(*of).or_insert((0, *id, *peer));
                *n = n.saturating_add(1);
                if *id < *oldest {
                    (*oldest, *who) = (*id, *peer);
                }
            }
        }
        let least = stranger.map_or(0, |host| strangers.get(&host).map_or(0, |(n, ..)| *n).saturating_add(1));
        let (most, oldest, peer) = strangers.into_values().max_by_key(|(n, id, _)| (*n, *id))?;
        (most > least).then_some((oldest, peer))
    }

    /// We dial a peer, if we know which.
    fn dialling(&mut self, id: ConnectionId, peer: Option<PeerId>) -> Result<(), Full> {
        if peer.is_some() {
            self.below(self.limits.connections_per_peer, Full::Peer, |held| held == Held::Dialling(peer))?;
        }
        self.below(self.handshakes(), Full::Handshakes, |held| matches!(held, Held::Dialling(_)))?;
        self.held.insert(id, Held::Dialling(peer));
        Ok(())
    }

    /// Whom we dialled has proven its key.
    fn dialled(&mut self, id: ConnectionId, peer: PeerId) -> Result<(), Full> {
        self.established(peer)?;
        self.below_in_all()?;
        self.held.insert(id, Held::Welcome(peer));
        Ok(())
    }

    fn established(&self, peer: PeerId) -> Result<(), Full> {
        self.below(self.limits.connections_per_peer, Full::Peer, |held| held.peer() == Some(peer))
    }

    /// It failed or was closed.
    fn gone(&mut self, id: ConnectionId) {
        self.held.remove(&id);
    }
}

/// Says the first of many things at once, and the others together, at most once in [`SILENCE`].
#[derive(Default)]
struct Rationed {
    said: Option<Instant>,
    unsaid: u64,
}

impl Rationed {
    /// It happened again: how many times since it was last said, if it is to be said now.
    fn again(&mut self, now: Instant) -> Option<u64> {
        self.unsaid = self.unsaid.saturating_add(1);
        let due = self.said.is_none_or(|said| now.saturating_duration_since(said) >= SILENCE);
        due.then(|| {
            self.said = Some(now);
            std::mem::take(&mut self.unsaid)
        })
    }
}

/// Refuses connections beyond the bounds.
pub(crate) struct Admission {
    connections: Connections,
    gate: Arc<SharedGate>,
    metrics: Arc<Metrics>,
    said: [Rationed; Full::COUNT],
}

impl Admission {
    pub(crate) fn new(limits: &Limits, gate: Arc<SharedGate>, metrics: Arc<Metrics>) -> Self {
        Self { connections: Connections::new(limits), gate, metrics, said: Default::default() }
    }

    fn is_staked(&self, peer: PeerId) -> bool {
        address_of(&peer).is_ok_and(|address| self.gate.has_stake(address) == Some(true))
    }

    /// Counts and tells what was refused.
    fn tell(&mut self, admitted: Result<(), Full>, from: Option<&Multiaddr>) -> Result<(), ConnectionDenied> {
        let Err(full) = admitted else { return Ok(()) };
        Metrics::count(&self.metrics.refused_connections, 1);
        if let Some(refused) = self.said.get_mut(full.index()).and_then(|said| said.again(Instant::now())) {
            let from = from.map(tracing::field::display);
            tracing::warn!(from, refused, "a connection is refused: {full}");
        }
        Err(ConnectionDenied::new(full))
    }
}

impl NetworkBehaviour for Admission {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        let admitted = self.connections.arriving(id, host(remote));
        self.tell(admitted, Some(remote))
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let admitted = self.connections.arrived(id, peer, host(remote), self.is_staked(peer));
        self.tell(admitted, Some(remote))?;
        Ok(dummy::ConnectionHandler)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        id: ConnectionId,
        peer: Option<PeerId>,
        addresses: &[Multiaddr],
        _: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        let admitted = self.connections.dialling(id, peer);
        self.tell(admitted, addresses.first())?;
        Ok(Vec::new())
    }

    fn handle_established_outbound_connection(
        &mut self,
        id: ConnectionId,
        peer: PeerId,
        remote: &Multiaddr,
        role: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let admitted = match role {
            Endpoint::Dialer => self.connections.dialled(id, peer),
            // Who reached us through a relay has us dial, and is no more welcome for that.
            Endpoint::Listener => self.connections.arrived(id, peer, host(remote), self.is_staked(peer)),
        };
        self.tell(admitted, Some(remote))?;
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionClosed(closed) => self.connections.gone(closed.connection_id),
            FromSwarm::DialFailure(failed) => self.connections.gone(failed.connection_id),
            FromSwarm::ListenFailure(failed) => self.connections.gone(failed.connection_id),
            _ => {}
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        match self.connections.leaving.pop_front() {
            Some((id, peer_id)) => {
                Poll::Ready(ToSwarm::CloseConnection { peer_id, connection: CloseConnection::One(id) })
            }
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests;
