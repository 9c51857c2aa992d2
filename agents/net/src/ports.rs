//! From which port peers are dialled: from the one that this node listens on, so that what a router lets out there also
//! comes in, unless the last dial failed.
//!
//! The system gives that port to nobody's dial while another program has it at another address of this machine, for
//! as long as that program keeps it. So after a failure a fresh port is tried, and after that the old one again.

use std::collections::HashSet;

use libp2p::core::transport::PortUse;
use libp2p::swarm::dial_opts::DialOpts;
use libp2p::{Multiaddr, PeerId};

/// Failures remembered.
const MOST: usize = 4096;

/// Peers whose last dial failed; none stands for those that are dialled without a name.
#[derive(Default, Debug)]
pub(crate) struct Ports {
    failed: HashSet<Option<PeerId>>,
}

impl Ports {
    /// A dial of a peer at these addresses, unless it is connected, or dialled already.
    pub(crate) fn dial(&self, peer: PeerId, addresses: Vec<Multiaddr>) -> DialOpts {
        let dial = DialOpts::peer_id(peer).addresses(addresses);
        match self.of(Some(peer)) {
            PortUse::Reuse => dial.build(),
            PortUse::New => dial.allocate_new_port().build(),
        }
    }

    /// A dial of whoever is there.
    pub(crate) fn dial_unknown(&self, address: Multiaddr) -> DialOpts {
        let dial = DialOpts::unknown_peer_id().address(address);
        match self.of(None) {
            PortUse::Reuse => dial.build(),
            PortUse::New => dial.allocate_new_port().build(),
        }
    }

    /// From which port a peer is to be dialled now.
    fn of(&self, peer: Option<PeerId>) -> PortUse {
        if self.failed.contains(&peer) { PortUse::New } else { PortUse::Reuse }
    }

    /// A dial failed.
    pub(crate) fn failed(&mut self, peer: Option<PeerId>) {
        if !self.failed.remove(&peer) && self.failed.len() < MOST {
            self.failed.insert(peer);
        }
    }

    /// A peer is connected.
    pub(crate) fn connected(&mut self, peer: PeerId) {
        self.failed.remove(&Some(peer));
        self.failed.remove(&None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_dial_takes_a_fresh_port_until_one_succeeds() {
        let (one, other) = (PeerId::random(), PeerId::random());
        let mut ports = Ports::default();
        let dial = |ports: &mut Ports| {
            let port = ports.of(Some(one));
            ports.failed(Some(one));
            port
        };
        assert_eq!([(); 4].map(|()| dial(&mut ports)), [PortUse::Reuse, PortUse::New, PortUse::Reuse, PortUse::New]);
        ports.failed(Some(one));
        ports.failed(None);
        assert_eq!(
            [Some(one), None, Some(other)].map(|peer| ports.of(peer)),
            [PortUse::New, PortUse::New, PortUse::Reuse]
        );
        ports.connected(one);
        assert!(ports.failed.is_empty());
    }

    #[test]
    fn few_failures_are_remembered() {
        let mut ports = Ports::default();
        (0..2 * MOST).for_each(|_| ports.failed(Some(PeerId::random())));
        assert_eq!(ports.failed.len(), MOST);
    }
}
