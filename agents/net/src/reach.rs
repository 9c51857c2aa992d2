//! How the event loop keeps a node reachable that others cannot dial: places at relays, and direct connections in place
//! of those through them.

use libp2p::core::ConnectedPoint;
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
        if endpoint.is_relayed() {
            if !self.dials.is_connected(address) {
                self.circuits.opened(peer, connection, Instant::now());
            }
            return;
        }
        if let ConnectedPoint::Dialer { address: at, .. } = endpoint {
            self.relays.dialled(peer, at.clone());
        }
        for relayed in self.circuits.replaced(peer) {
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

    /// We listen on an address. A relay tells it others, who are reached through it there.
    pub(crate) fn on_listening(&mut self, address: &Multiaddr) {
        if is_circuit(address) {
            tracing::info!(%address, "reached through a relay");
        } else {
            tracing::info!(%address, "listening");
            if self.config.relay && self.config.external.is_empty() {
                self.swarm.add_external_address(address.clone());
            }
        }
    }

    /// A peer said what it speaks, and where it sees us.
    pub(crate) fn look_for_relays(&mut self, peer: PeerId, info: &identify::Info) {
        self.relays.identified(peer, info.protocols.contains(&relay::HOP_PROTOCOL_NAME));
        if self.config.external.is_empty() && is_translated(&info.observed_addr, self.swarm.listeners()) {
            self.relays.need();
        }
    }

    /// Asks a relay for a place if one is missing, and uses those through which a peer is connected for long.
    pub(crate) fn keep_reachable(&mut self, now: Instant) {
        if let Some((relay, circuit)) = self.relays.due(now) {
            let listener = self.swarm.listen_on(circuit).map_err(|e| tracing::debug!(%relay, "no place: {e}")).ok();
            self.relays.asked(relay, listener, now);
        }
        for peer in self.circuits.due(now) {
            self.through_relay(peer);
        }
    }
}
