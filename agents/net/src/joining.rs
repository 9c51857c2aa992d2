//! How a node joins the others: by peers that it was told of or has met, and where its owner lets it, by those of the
//! local network (mDNS) and a router that lets others in (UPnP).

use libp2p::{mdns, upnp};
use tokio::time::Instant;

use crate::identity::peer_in;
use crate::ports::Whom;
use crate::swarm::{BOOTSTRAP, EventLoop};

/// How many known peers a node dials once it has lost every connection.
const MET: usize = 8;

impl EventLoop {
    /// Dials the peers that we were told of, and those of the local network; while alone, also some that we met.
    pub(crate) fn dial_bootstrap(&mut self) {
        if self.swarm.connected_peers().next().is_none() {
            for route in self.dials.book.some(MET) {
                if let Err(e) = self.dial(Whom::Peer(route.peer, route.addresses)) {
                    tracing::debug!(peer = %route.peer, "a peer that we met: {e}");
                }
            }
        }
        for (peer, addresses) in self.neighbours.all() {
            if !self.swarm.is_connected(&peer)
                && let Err(e) = self.dial(Whom::Peer(peer, addresses))
            {
                tracing::debug!(%peer, "of the local network: {e}");
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

    /// Peers were found in the local network, or are not there any more.
    pub(crate) fn on_neighbours(&mut self, event: mdns::Event) {
        match event {
            mdns::Event::Discovered(found) => {
                tracing::debug!(?found, "in the local network");
                if self.neighbours.found(found) {
                    // However often others say that they are there, once a second is enough.
                    self.bootstrap.0 = self.bootstrap.0.min(Instant::now() + BOOTSTRAP.0);
                }
            }
            mdns::Event::Expired(expired) => self.neighbours.expired(&expired),
        }
    }

    /// The router opened a port, or does not. That others reach us there, the swarm tells by itself.
    pub(crate) fn on_router(event: &upnp::Event) {
        match event {
            upnp::Event::NewExternalAddr { external_addr, .. } => {
                tracing::info!(address = %external_addr, "reached through a port that the router has opened");
            }
            upnp::Event::ExpiredExternalAddr { external_addr, .. } => {
                tracing::warn!(address = %external_addr, "the router does not keep the port open");
            }
            upnp::Event::GatewayNotFound => {
                tracing::warn!("no router opens ports by UPnP: others are not let in by it");
            }
            upnp::Event::NonRoutableGateway => {
                tracing::warn!("the router is behind another one: a port that it opens lets nobody in");
            }
        }
    }
}
