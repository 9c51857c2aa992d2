//! Addresses at which peers of the local network say that they are, as a state machine without I/O: a few peers are
//! dialled, in turns, so that those that cannot be reached do not keep us from the others.
//!
//! Whoever is in the local network can say that any number of peers is there. So few addresses of one host are
//! remembered, and one to which no dial led gives way to one that was found later. Who answers is asked for its name
//! only then: to say that somebody is at an address does not hinder a dial of that peer at another.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use tokio::time::Instant;

use crate::identity::address_of;
use crate::mdns::told;

/// Hosts of the local network to be connected to, and peers to be dialled at once: others are found through those.
const NEIGHBOURS: usize = 8;
/// Addresses that are remembered, and how many of them may be of one host.
const REMEMBERED: usize = 128;
const OF_ONE_HOST: usize = 16;
/// What is not heard of for so long is forgotten. All ask every five minutes at least, and all answer.
const MEMORY: Duration = Duration::from_secs(600);
/// First and longest wait between two rounds of dialling.
const ROUND: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Where peers of the local network were found.
#[derive(Debug)]
pub(crate) struct Neighbours {
    known: HashMap<Multiaddr, Neighbour>,
    /// When the next round is, and the wait after it.
    round: (Instant, Duration),
}

#[derive(Debug)]
struct Neighbour {
    peer: PeerId,
    heard: Instant,
    /// When it was dialled since the peer was last connected.
    dialled: Option<Instant>,
}

impl Neighbours {
    /// None was found.
    pub(crate) fn new(now: Instant) -> Self {
        Self { known: HashMap::new(), round: (now, ROUND.0) }
    }

    /// A peer says that it is there.
    pub(crate) fn found(&mut self, peer: PeerId, addresses: Vec<Multiaddr>, now: Instant) {
        // Others speak libp2p as well, by keys that have no Ethereum address.
        if address_of(&peer).is_err() {
            return;
        }
        self.forget(now);
        for address in addresses {
            if let Some(known) = self.known.get_mut(&address) {
                (known.peer, known.heard) = (peer, now);
            } else if self.make_room(&address) {
                self.known.insert(address, Neighbour { peer, heard: now, dialled: None });
                self.soon(now);
            }
        }
    }

    /// Whether there is room for an address, if need be in place of the one that was dialled in vain first.
    fn make_room(&mut self, address: &Multiaddr) -> bool {
        let host = told(address);
        let of_host = self.known.keys().filter(|known| told(known) == host).count();
        if of_host < OF_ONE_HOST && self.known.len() < REMEMBERED {
            return true;
        }
        let may_go = |known: &Multiaddr| of_host < OF_ONE_HOST || told(known) == host;
        let in_vain =
            self.known.iter().filter_map(|(at, known)| Some((known.dialled?, at))).filter(|(_, at)| may_go(at));
        let first = in_vain.min_by_key(|(dialled, _)| *dialled).map(|(_, at)| at.clone());
        first.is_some_and(|at| self.known.remove(&at).is_some())
    }

    /// A peer is connected.
    pub(crate) fn connected(&mut self, peer: PeerId) {
        for known in self.known.values_mut().filter(|known| known.peer == peer) {
            known.dialled = None;
        }
    }

    /// A peer is connected no more.
    pub(crate) fn disconnected(&mut self, peer: PeerId, now: Instant) {
        if self.known.values().any(|known| known.peer == peer) {
            self.soon(now);
        }
    }

    /// However much happens, there is a round once a second at most.
    fn soon(&mut self, now: Instant) {
        self.round = (self.round.0.min(now + ROUND.0), ROUND.0);
    }

    /// Where to dial now, one address of a peer: those first whose last dial is longest ago.
    pub(crate) fn due(&mut self, now: Instant, is_connected: impl Fn(&PeerId) -> bool) -> Vec<Multiaddr> {
        if now < self.round.0 {
            return Vec::new();
        }
        self.round = (now + self.round.1, (self.round.1 * 2).min(ROUND.1));
        self.forget(now);
        let (here, mut away): (Vec<_>, Vec<_>) =
            self.known.iter_mut().partition(|(_, known)| is_connected(&known.peer));
        // One host counts once, lest it name all that we are connected to.
        let here: HashSet<_> = here.into_iter().map(|(address, _)| told(address)).collect();
        away.sort_by_key(|(_, known)| known.dialled);
        let mut asked = HashSet::new();
        let each_once = away.into_iter().filter(|(_, known)| asked.insert(known.peer));
        let due = each_once.take(NEIGHBOURS.saturating_sub(here.len()));
        due.map(|(address, known)| {
            known.dialled = Some(now);
            address.clone()
        })
        .collect()
    }

    fn forget(&mut self, now: Instant) {
        self.known.retain(|_, known| now < known.heard + MEMORY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;

    fn peer(n: u8) -> PeerId {
        Identity::from_secret([n; 32]).unwrap().peer_id()
    }

    fn at(host: u8, port: u8) -> Multiaddr {
        format!("/ip4/10.0.0.{host}/tcp/{port}").parse().unwrap()
    }

    /// Peers of so many hosts, one each.
    fn crowd(hosts: std::ops::RangeInclusive<u8>, now: Instant) -> Neighbours {
        let mut neighbours = Neighbours::new(now);
        hosts.for_each(|n| neighbours.found(peer(n), vec![at(n, 1)], now));
        neighbours
    }

    /// What is dialled in the next round, and when.
    fn round(neighbours: &mut Neighbours, connected: impl Fn(&PeerId) -> bool) -> (Vec<Multiaddr>, Instant) {
        let when = neighbours.round.0;
        (neighbours.due(when, connected), when)
    }

    #[test]
    fn of_a_crowd_that_does_not_answer_all_have_their_turn() {
        let now = Instant::now();
        let mut neighbours = crowd(1..=20, now);
        neighbours.found(PeerId::random(), vec![at(99, 1)], now);
        let mut dialled = HashSet::new();
        for _ in 0..3 {
            let (due, when) = round(&mut neighbours, |_| false);
            assert_eq!(due.len(), NEIGHBOURS);
            dialled.extend(due);
            assert!(neighbours.due(when, |_| false).is_empty(), "not before the next round");
        }
        assert_eq!(dialled.len(), 20, "all but the one that is none of ours");
    }

    #[test]
    fn of_one_peer_one_address_is_dialled_and_then_the_other() {
        let now = Instant::now();
        let mut neighbours = Neighbours::new(now);
        neighbours.found(peer(1), vec![at(1, 1), at(1, 2)], now);
        let (first, _) = round(&mut neighbours, |_| false);
        let (second, _) = round(&mut neighbours, |_| false);
        assert!(first.len() == 1 && second.len() == 1 && first != second);
        assert_eq!(round(&mut neighbours, |_| false).0, first);
    }

    #[test]
    fn few_are_connected_to_and_one_that_is_lost_is_dialled_soon() {
        let now = Instant::now();
        let mut neighbours = crowd(1..=20, now);
        round(&mut neighbours, |_| false);
        let connected: Vec<_> = (1..=8).map(peer).collect();
        connected.iter().for_each(|peer| neighbours.connected(*peer));
        let mut later = now;
        for _ in 0..8 {
            let (due, when) = round(&mut neighbours, |peer| connected.contains(peer));
            assert!(due.is_empty(), "{due:?}");
            later = when;
        }
        neighbours.disconnected(peer(1), later);
        let others = |other: &PeerId| *other != peer(1) && connected.contains(other);
        assert!(neighbours.due(later, others).is_empty(), "not at once");
        assert_eq!(neighbours.due(later + ROUND.0, others).len(), 1);
    }

    #[test]
    fn a_host_that_names_all_whom_we_are_connected_to_does_not_keep_us_from_others() {
        let now = Instant::now();
        let mut neighbours = crowd(20..=20, now);
        (1..=16).for_each(|n| neighbours.found(peer(n), vec![at(1, n)], now));
        assert_eq!(round(&mut neighbours, |other| *other != peer(20)).0, [at(20, 1)]);
    }

    #[test]
    fn one_host_has_few_places_and_what_was_dialled_in_vain_gives_way() {
        let now = Instant::now();
        let mut neighbours = Neighbours::new(now);
        (1..=40).for_each(|n| neighbours.found(peer(n), vec![at(1, n)], now));
        assert_eq!(neighbours.known.len(), OF_ONE_HOST);
        let (dialled, _) = round(&mut neighbours, |_| false);
        let friend = neighbours.known[&dialled[0]].peer;
        neighbours.connected(friend);
        (41..=80).for_each(|n| neighbours.found(peer(n), vec![at(1, n)], now));
        assert_eq!(neighbours.known.len(), OF_ONE_HOST);
        let kept: Vec<_> = dialled.iter().filter(|at| neighbours.known.contains_key(at)).collect();
        assert_eq!(kept, [&dialled[0]], "that peer was connected");
    }

    #[test]
    fn as_many_are_remembered_as_may_be() {
        let now = Instant::now();
        let mut neighbours = crowd(1..=200, now);
        assert_eq!(neighbours.known.len(), REMEMBERED);
        let (dialled, _) = round(&mut neighbours, |_| false);
        neighbours.found(peer(201), vec![at(201, 1)], now);
        assert!(neighbours.known.contains_key(&at(201, 1)));
        assert_eq!(neighbours.known.len(), REMEMBERED);
        assert_eq!(dialled.iter().filter(|at| neighbours.known.contains_key(at)).count(), NEIGHBOURS - 1);
    }

    #[test]
    fn what_is_not_heard_of_any_more_is_forgotten() {
        let now = Instant::now();
        let mut neighbours = crowd(1..=2, now);
        neighbours.found(peer(1), vec![at(1, 1)], now + MEMORY / 2);
        neighbours.forget(now + MEMORY);
        assert_eq!(neighbours.known.keys().collect::<Vec<_>>(), [&at(1, 1)]);
        neighbours.forget(now + MEMORY / 2 + MEMORY);
        assert!(neighbours.known.is_empty());
    }
}
