//! How the event loop keeps a node reachable that others cannot dial: places at relays, and direct connections in place
//! of those through them.

use std::io;

use libp2p::core::ConnectedPoint;
use libp2p::core::transport::ListenerId;
use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, PeerId, dcutr, identify, relay};
use tensorlink_types::Address;
use tokio::time::Instant;

use crate::identity::address_of;
use crate::relays::{is_circuit, is_translated};
use crate::swarm::EventLoop;

impl EventLoop {
    /// A connection stands. Through a relay it is used once nothing better comes.
    pub(crate) fn on_connected(
        &mut self,
        (address, peer): (Address, PeerId),
        connection: ConnectionId,
        endpoint: &ConnectedPoint,
    ) {
        tracing::debug!(%address, %peer, relayed = endpoint.is_relayed(), "connected");
        self.ports.connected(connection);
        self.neighbours.connected(peer);
        if endpoint.is_relayed() {
            let known = (self.dials.is_connected(address), Instant::now());
            if !self.circuits.opened(peer, connection, known) {
                self.swarm.close_connection(connection);
            }
            return;
        }
        if let ConnectedPoint::Dialer { address: at, .. } = endpoint {
            self.relays.dialled(peer, at.clone());
        }
        for relayed in self.circuits.replaced(peer, Instant::now()) {
            tracing::debug!(%address, "connected directly: the relay is not needed any more");
            self.swarm.close_connection(relayed);
        }
        self.dials.connected(address, peer);
    }

    /// An attempt to connect directly has ended. If it succeeded, its connection has been told of.
    pub(crate) fn on_punched(&mut self, event: &dcutr::Event) {
        if let Err(e) = &event.result {
            tracing::debug!(peer = %event.remote_peer_id, "no direct connection: {e}");
            self.through_relay(event.remote_peer_id);
        }
    }

    /// Nothing better than a relay leads to a peer.
    fn through_relay(&mut self, peer: PeerId) {
        if self.circuits.settle(peer)
            && let Ok(address) = address_of(&peer)
        {
            tracing::info!(%address, "connected through a relay");
            self.dials.connected(address, peer);
        }
    }

    /// We listen on an address. A relay tells others of it, who are reached there.
    pub(crate) fn on_listening(&mut self, address: &Multiaddr) {
        tracing::debug!(%address, "listening");
        if self.config.relay && self.config.external.is_empty() && !is_circuit(address) {
            self.swarm.add_external_address(address.clone());
        }
    }

    /// A listener has ended, for a reason if it was not asked to: whether it was a place at a relay.
    pub(crate) fn is_place(&mut self, listener: ListenerId, reason: &io::Result<()>) -> bool {
        let relay = self.relays.ended(listener, Instant::now());
        if let Some(relay) = relay.and_then(|relay| address_of(&relay).ok()) {
            tracing::info!(%relay, ?reason, "not reached through a relay any more");
        }
        relay.is_some()
    }

    /// A peer said what it speaks, and where it sees us.
    pub(crate) fn look_for_relays(&mut self, peer: PeerId, info: &identify::Info) {
        self.met.insert(peer);
        self.relays.identified(peer, info.protocols.contains(&relay::HOP_PROTOCOL_NAME));
        if self.config.external.is_empty() && is_translated(&info.observed_addr, self.swarm.listeners()) {
            self.relays.translated();
        }
    }

    /// Asks a relay for a place if one is missing, leaves those that are not needed, and uses those through which a
    /// peer is connected for long.
    pub(crate) fn keep_reachable(&mut self, now: Instant) {
        for (relay, place) in self.relays.needless() {
            tracing::info!(%relay, "no relay is needed: the router lets others in");
            self.swarm.remove_listener(place);
        }
        if let Some((relay, circuit)) = self.relays.due(now) {
            let listener = self.swarm.listen_on(circuit).map_err(|e| tracing::debug!(%relay, "no place: {e}")).ok();
            self.relays.asked(relay, listener, now);
        }
        for peer in self.circuits.due(now) {
            self.through_relay(peer);
        }
        for connection in self.circuits.left(now) {
            self.swarm.close_connection(connection);
        }
    }

    /// Others reach us at an address, or not any more: peers are told, who tell others in the DHT. What we listen on,
    /// among it places at relays, libp2p tells by itself.
    pub(crate) fn tell_peers(&mut self, address: &Multiaddr) {
        if !is_circuit(address) {
            let peers: Vec<_> = self.swarm.connected_peers().copied().collect();
            self.swarm.behaviour_mut().identify.push(peers);
        }
    }

    /// A relay has a place for us.
    pub(crate) fn on_place(&mut self, event: &relay::client::Event) {
        if let relay::client::Event::ReservationReqAccepted { relay_peer_id, renewal: false, .. } = event {
            self.relays.granted(*relay_peer_id);
            if let Ok(relay) = address_of(relay_peer_id) {
                tracing::info!(%relay, "reached through a relay");
            }
        }
    }
}
