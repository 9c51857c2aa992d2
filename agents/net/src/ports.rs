//! From which port this node dials: from the one that it listens on, so that what a router lets out there also comes
//! in, unless that failed the last time.
//!
//! The system gives that port to no dial while another program has it at another address of this machine, for as long
//! as that program keeps it. So after a failure a fresh port is tried, and after that the old one again.

use std::collections::{HashMap, HashSet};

use libp2p::core::transport::PortUse;
use libp2p::swarm::ConnectionId;
use libp2p::swarm::dial_opts::DialOpts;
use libp2p::{Multiaddr, PeerId};

/// Failures remembered; all are forgotten beyond.
const MOST: usize = 4096;

/// Who is dialled.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Whom {
    /// A peer, at these addresses.
    Peer(PeerId, Vec<Multiaddr>),
    /// Whoever is at an address.
    At(Multiaddr),
}

/// A peer without its addresses, which change.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Name {
    Peer(PeerId),
    At(Multiaddr),
}

/// This node's own dials: those under way, and whom the next is to reach from a fresh port. Those of libp2p's protocols
/// do not count.
#[derive(Default, Debug)]
pub(crate) struct Ports {
    under_way: HashMap<ConnectionId, (Name, PortUse)>,
    fresh: HashSet<Name>,
}

impl Ports {
    /// A dial, of a peer unless it is connected, or dialled already.
    pub(crate) fn dial(&mut self, whom: Whom) -> DialOpts {
        let name = match &whom {
            Whom::Peer(peer, _) => Name::Peer(*peer),
            Whom::At(address) => Name::At(address.clone()),
        };
        let port = if self.fresh.contains(&name) { PortUse::New } else { PortUse::Reuse };
        let dial = match (whom, port) {
            (Whom::Peer(peer, addresses), PortUse::Reuse) => DialOpts::peer_id(peer).addresses(addresses).build(),
            (Whom::Peer(peer, addresses), PortUse::New) => {
                DialOpts::peer_id(peer).addresses(addresses).allocate_new_port().build()
            }
            (Whom::At(address), PortUse::Reuse) => DialOpts::unknown_peer_id().address(address).build(),
            (Whom::At(address), PortUse::New) => {
                DialOpts::unknown_peer_id().address(address).allocate_new_port().build()
            }
        };
        self.under_way.insert(dial.connection_id(), (name, port));
        dial
    }

    /// A dial did not begin.
    pub(crate) fn not_begun(&mut self, dial: ConnectionId) {
        self.under_way.remove(&dial);
    }

    /// A dial failed, if it is ours.
    pub(crate) fn failed(&mut self, dial: ConnectionId) {
        let Some((name, port)) = self.under_way.remove(&dial) else { return };
        if self.fresh.len() >= MOST {
            self.fresh.clear();
        }
        match port {
            PortUse::Reuse => self.fresh.insert(name),
            PortUse::New => self.fresh.remove(&name),
        };
    }

    /// A dial succeeded, if it is ours.
    pub(crate) fn connected(&mut self, dial: ConnectionId) {
        if let Some((name, _)) = self.under_way.remove(&dial) {
            self.fresh.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dials, and says from which port.
    fn dial(ports: &mut Ports, whom: &Whom) -> (ConnectionId, PortUse) {
        let id = ports.dial(whom.clone()).connection_id();
        (id, ports.under_way[&id].1)
    }

    fn failing(ports: &mut Ports, whom: &Whom) -> PortUse {
        let (id, port) = dial(ports, whom);
        ports.failed(id);
        port
    }

    #[test]
    fn every_other_dial_takes_a_fresh_port_until_one_succeeds() {
        let (one, other) = (Whom::Peer(PeerId::random(), vec![]), Whom::Peer(PeerId::random(), vec![]));
        let mut ports = Ports::default();
        let four = [(); 4].map(|()| failing(&mut ports, &one));
        assert_eq!(four, [PortUse::Reuse, PortUse::New, PortUse::Reuse, PortUse::New]);
        failing(&mut ports, &one);
        let (id, port) = dial(&mut ports, &one);
        ports.connected(id);
        assert_eq!(port, PortUse::New);
        assert_eq!([dial(&mut ports, &one).1, dial(&mut ports, &other).1], [PortUse::Reuse; 2]);
    }

    #[test]
    fn two_addresses_without_a_name_do_not_take_turns_with_each_other() {
        let [one, other] = ["/ip4/127.0.0.1/tcp/1", "/ip4/127.0.0.1/tcp/2"].map(|at| Whom::At(at.parse().unwrap()));
        let mut ports = Ports::default();
        for expected in [PortUse::Reuse, PortUse::New] {
            assert_eq!([&one, &other].map(|whom| failing(&mut ports, whom)), [expected; 2]);
        }
    }

    #[test]
    fn only_our_own_dials_count_and_few_failures_are_remembered() {
        let (mut ports, one) = (Ports::default(), Whom::Peer(PeerId::random(), vec![]));
        failing(&mut ports, &one);
        ports.failed(ConnectionId::new_unchecked(usize::MAX));
        let (id, port) = dial(&mut ports, &one);
        ports.not_begun(id);
        assert_eq!([port, dial(&mut ports, &one).1], [PortUse::New; 2]);
        for _ in 0..2 * MOST {
            failing(&mut ports, &Whom::Peer(PeerId::random(), vec![]));
        }
        assert!(ports.fresh.len() <= MOST);
    }
}
