//! Peers that were found in the local network, a few of them.

use std::collections::HashMap;

use libp2p::{Multiaddr, PeerId};

use crate::identity::address_of;

/// Peers of the local network that are remembered, to be dialled while they are not connected: others are found through
/// those. Whoever is in the local network can say that any number is there.
const NEIGHBOURS: usize = 8;
/// Addresses of one of them that are remembered.
const ADDRESSES: usize = 8;

/// Peers that were found in the local network.
#[derive(Debug, Default)]
pub(crate) struct Neighbours(HashMap<PeerId, Vec<Multiaddr>>);

impl Neighbours {
    /// These were found; whether any is new.
    pub(crate) fn found(&mut self, found: Vec<(PeerId, Multiaddr)>) -> bool {
        let mut is_new = false;
        for (peer, address) in found {
            // Others speak libp2p as well, by keys that have no Ethereum address.
            if self.0.len() >= NEIGHBOURS && !self.0.contains_key(&peer) || address_of(&peer).is_err() {
                continue;
            }
            let addresses = self.0.entry(peer).or_default();
            if addresses.len() < ADDRESSES && !addresses.contains(&address) {
                addresses.push(address);
                is_new = true;
            }
        }
        is_new
    }

    /// These have not been heard of for long.
    pub(crate) fn expired(&mut self, expired: &[(PeerId, Multiaddr)]) {
        for (peer, address) in expired {
            if let Some(addresses) = self.0.get_mut(peer) {
                addresses.retain(|known| known != address);
            }
        }
        self.0.retain(|_, addresses| !addresses.is_empty());
    }

    /// Who they are, and where.
    pub(crate) fn all(&self) -> Vec<(PeerId, Vec<Multiaddr>)> {
        self.0.iter().map(|(peer, addresses)| (*peer, addresses.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::identity::Identity;

    #[test]
    fn of_a_crowd_in_the_local_network_a_few_are_remembered_until_they_are_gone() {
        let at = |port: usize| -> Multiaddr { format!("/ip4/192.168.0.7/tcp/{port}").parse().unwrap() };
        let peers: Vec<PeerId> = (1..=20).map(|key| Identity::from_secret([key; 32]).unwrap().peer_id()).collect();
        let found: Vec<_> = peers.iter().flat_map(|peer| (1..=20).map(move |port| (*peer, at(port)))).collect();
        let mut neighbours = Neighbours::default();
        assert!(!neighbours.found(vec![(PeerId::random(), at(1))]), "not one of ours");
        assert!(neighbours.found(found.clone()) && !neighbours.found(found.clone()));
        assert_eq!(neighbours.0.keys().collect::<HashSet<_>>(), peers[..NEIGHBOURS].iter().collect());
        assert!(neighbours.0.values().all(|addresses| addresses.len() == ADDRESSES));
        neighbours.expired(&found[..19]);
        assert_eq!(neighbours.0.len(), NEIGHBOURS - 1);
        assert!(neighbours.found(vec![(peers[19], at(7))]));
        assert_eq!(neighbours.0[&peers[19]], [at(7)]);
    }
}
