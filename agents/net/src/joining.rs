//! How a node joins the others: by peers that it was told of or has met, and where its owner lets it, by those of the
//! local network (mDNS) and a router that lets others in (UPnP).

use std::collections::HashSet;

use libp2p::PeerId;
use tokio::time::Instant;

use crate::identity::peer_in;
use crate::local_network::Found;
use crate::ports::Whom;
use crate::router::{Event, Router};
use crate::swarm::EventLoop;

/// How many known peers a node dials once it has lost every connection.
const MET: usize = 8;

impl EventLoop {
    /// Dials the peers that we were told of; while alone, also some that we met.
    pub(crate) fn dial_bootstrap(&mut self) {
        if self.swarm.connected_peers().next().is_none() {
            for route in self.dials.book.some(MET) {
                if let Err(e) = self.dial(Whom::Peer(route.peer, route.addresses)) {
                    tracing::debug!(peer = %route.peer, "a peer that we met: {e}");
                }
            }
        }
        for address in self.config.bootstrap.clone() {
            let whom = match peer_in(&address) {
                Some(peer) if self.swarm.is_connected(&peer) => continue,
                Some(peer) => Whom::Peer(peer, vec![address.clone()]),
                // Without a name we cannot tell whether it is connected: ask only while alone.
                None if self.swarm.connected_peers().next().is_some() => continue,
                None => Whom::At(address.clone()),
            };
            if let Err(e) = self.dial(whom) {
                tracing::debug!(%address, "bootstrap: {e}");
            }
        }
    }

    /// A peer says that it is in the local network.
    pub(crate) fn on_found(&mut self, Found(peer, addresses): Found) {
        tracing::debug!(%peer, ?addresses, "in the local network");
        self.neighbours.found(peer, addresses, Instant::now());
    }

    /// Dials peers of the local network while few of them are connected.
    pub(crate) fn dial_neighbours(&mut self, now: Instant) {
        // What leads to a neighbour through a relay is no reason not to dial it here.
        let relayed: HashSet<PeerId> = self.circuits.peers().copied().collect();
        let is_here = |peer: &PeerId| self.swarm.is_connected(peer) && !relayed.contains(peer);
        for address in self.neighbours.due(now, is_here) {
            if let Err(e) = self.dial(Whom::At(address.clone())) {
                tracing::debug!(%address, "of the local network: {e}");
            }
        }
    }

    /// The router opened a port, or does not. That others reach us there, the swarm tells by itself.
    pub(crate) fn on_router(&mut self, event: &Event) {
        match event {
            Event::Opened(address) => {
                tracing::info!(%address, "reached through a port that the router has opened");
            }
            Event::Closed(address) => tracing::warn!(%address, "the router does not keep the port open"),
            Event::Failed(failure) => tracing::warn!("{failure}"),
        }
        self.relays.opened(self.swarm.behaviour().router.as_ref().is_some_and(Router::is_open));
    }
}
