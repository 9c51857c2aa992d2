//! Through which relays we are reached, as a state machine without I/O: a node that others cannot dial keeps a place at
//! some that it dials itself.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};
use rand::seq::IteratorRandom;
use tokio::time::Instant;

use crate::directory::MAX_ADDRESSES;

/// How many at once: one may go.
const RELAYS: usize = 2;
/// How long a router is waited for that may let others in: a relay keeps a place until we are disconnected from it.
const ROUTER: Duration = Duration::from_secs(5);
/// Most addresses through relays that are told or remembered of a node.
const MAX_CIRCUITS: usize = 4;

/// Relays that we know, and those that we have a place at.
#[derive(Debug)]
pub(crate) struct Relays {
    /// Others reach us through relays alone.
    is_hidden: bool,
    /// Others see us under an address that is not ours.
    is_translated: bool,
    /// What translates it lets others in.
    is_open: bool,
    /// Until when it is waited for that.
    opens: Option<Instant>,
    /// Where we dialled who is connected.
    dialled: HashMap<PeerId, Multiaddr>,
    /// Who carries connections.
    willing: BTreeSet<PeerId>,
    places: HashMap<ListenerId, Place>,
    /// When one that had no place for us is asked again.
    again: HashMap<PeerId, Instant>,
    redial: Duration,
}

/// A place at a relay.
#[derive(Clone, Copy, Debug)]
struct Place {
    relay: PeerId,
    /// The relay has said yes. Before that, libp2p-relay 0.22 does not bear that it is given up.
    is_granted: bool,
}

impl Relays {
    /// None is known. Whether others reach us through relays alone; one that has no place is asked again after
    /// `redial`.
    pub(crate) fn new(is_hidden: bool, redial: Duration) -> Self {
        let (dialled, willing, places, again) = Default::default();
        Self { is_hidden, is_translated: false, is_open: false, opens: None, dialled, willing, places, again, redial }
    }

    /// The router is being asked to let others in.
    pub(crate) fn wait_for_router(&mut self, now: Instant) {
        self.opens = Some(now + ROUTER);
    }

    /// A peer sees us under an address that we do not listen on.
    pub(crate) const fn translated(&mut self) {
        self.is_translated = true;
    }

    /// The router lets others in, or not any more.
    pub(crate) const fn opened(&mut self, is_open: bool) {
        self.is_open = is_open;
    }

    const fn is_needed(&self) -> bool {
        self.is_hidden || self.is_translated && !self.is_open
    }

    /// Whether it may still turn out that none is needed.
    fn may_open(&self, now: Instant) -> bool {
        !self.is_hidden && self.opens.is_some_and(|until| now < until)
    }

    /// We dialled a peer at this address.
    pub(crate) fn dialled(&mut self, peer: PeerId, at: Multiaddr) {
        self.dialled.insert(peer, at);
    }

    /// A peer said what it speaks.
    pub(crate) fn identified(&mut self, peer: PeerId, carries: bool) {
        if carries {
            self.willing.insert(peer)
        } else {
            self.willing.remove(&peer)
        };
    }

    /// A peer is connected no more.
    pub(crate) fn gone(&mut self, peer: PeerId) {
        self.dialled.remove(&peer);
        self.willing.remove(&peer);
    }

    /// Where to ask for a place, if we need another and know a relay.
    pub(crate) fn due(&mut self, now: Instant) -> Option<(PeerId, Multiaddr)> {
        self.again.retain(|_, again| now < *again);
        if !self.is_needed() || self.may_open(now) || self.places.len() >= RELAYS {
            return None;
        }
        let free =
            |peer: &&PeerId| !self.again.contains_key(peer) && !self.places.values().any(|place| place.relay == **peer);
        // By chance, so that not all nodes have the same.
        let relays = self.willing.iter().filter(free).filter_map(|relay| Some((*relay, self.dialled.get(relay)?)));
        relays.choose(&mut rand::rng()).map(|(relay, at)| (relay, circuit(at, relay)))
    }

    /// A relay is asked for a place.
    pub(crate) fn asked(&mut self, relay: PeerId, listener: Option<ListenerId>, now: Instant) {
        match listener {
            Some(listener) => _ = self.places.insert(listener, Place { relay, is_granted: false }),
            None => self.fails(relay, now),
        }
    }

    /// A listener has ended: the relay if it was the place at one.
    pub(crate) fn ended(&mut self, listener: ListenerId, now: Instant) -> Option<PeerId> {
        let Place { relay, .. } = self.places.remove(&listener)?;
        self.fails(relay, now);
        Some(relay)
    }

    /// A relay has a place for us.
    pub(crate) fn granted(&mut self, relay: PeerId) {
        for place in self.places.values_mut().filter(|place| place.relay == relay) {
            place.is_granted = true;
        }
    }

    /// Places to be given up, as others reach us without them.
    pub(crate) fn needless(&mut self) -> Vec<(PeerId, ListenerId)> {
        let is_needed = self.is_needed();
        let needless = self.places.extract_if(|_, place| place.is_granted && !is_needed);
        needless.map(|(listener, place)| (place.relay, listener)).collect()
    }

    fn fails(&mut self, relay: PeerId, now: Instant) {
        self.again.insert(relay, now + self.redial);
    }
}

/// What is listened on to be reached through a relay.
fn circuit(at: &Multiaddr, relay: PeerId) -> Multiaddr {
    let at: Multiaddr = at.iter().filter(|part| !matches!(part, Protocol::P2p(_))).collect();
    at.with(Protocol::P2p(relay)).with(Protocol::P2pCircuit)
}

/// Addresses for a record or a book, as many as that takes: some through relays, as others may lead nowhere, and none
/// through two, which no relay carries.
pub(crate) fn routable(addresses: impl IntoIterator<Item = Multiaddr>) -> Vec<Multiaddr> {
    let hops = |address: &Multiaddr| address.iter().filter(|part| *part == Protocol::P2pCircuit).count();
    let (mut all, mut direct): (Vec<_>, Vec<_>) =
        addresses.into_iter().filter(|address| hops(address) < 2).partition(is_circuit);
    all.truncate(MAX_CIRCUITS);
    direct.truncate(MAX_ADDRESSES.saturating_sub(all.len()));
    all.append(&mut direct);
    let mut seen = BTreeSet::new();
    all.retain(|address| seen.insert(address.clone()));
    all
}

/// Whether an address leads through a relay.
pub(crate) fn is_circuit(address: &Multiaddr) -> bool {
    address.iter().any(|part| part == Protocol::P2pCircuit)
}

/// Whether a peer sees us under an address that is none of those we listen on: what translates it lets nobody in.
pub(crate) fn is_translated<'a>(observed: &Multiaddr, own: impl IntoIterator<Item = &'a Multiaddr>) -> bool {
    host(observed).is_some_and(|seen| !own.into_iter().any(|own| host(own) == Some(seen)))
}

/// The IP address at the other end; none where a name is there, or a relay's address, which is not the other end's.
pub(crate) fn host(address: &Multiaddr) -> Option<IpAddr> {
    address.iter().filter(|_| !is_circuit(address)).find_map(|part| match part {
        Protocol::Ip4(ip) => Some(IpAddr::V4(ip)),
        Protocol::Ip6(ip) => Some(ip.to_canonical()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGAIN: Duration = Duration::from_secs(10);

    fn at(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    fn known(relays: &mut Relays, peer: PeerId) {
        relays.dialled(peer, at("/ip4/192.0.2.1/tcp/4001").with(Protocol::P2p(peer)));
        relays.identified(peer, true);
    }

    #[test]
    fn whoever_needs_none_has_none() {
        let mut relays = Relays::new(false, AGAIN);
        known(&mut relays, PeerId::random());
        assert_eq!(relays.due(Instant::now()), None);
        relays.translated();
        assert!(relays.due(Instant::now()).is_some());
    }

    #[test]
    fn where_the_router_lets_others_in_places_are_given_up_and_taken_again_when_it_does_not() {
        let (mut relays, now) = (Relays::new(false, AGAIN), Instant::now());
        let peers = [(); 2].map(|()| PeerId::random());
        peers.iter().for_each(|peer| known(&mut relays, *peer));
        relays.translated();
        let listeners = peers.map(|_| {
            let (relay, listener) = (relays.due(now).unwrap().0, ListenerId::next());
            relays.asked(relay, Some(listener), now);
            (relay, listener)
        });
        relays.granted(listeners[0].0);
        assert!(relays.needless().is_empty());
        relays.opened(true);
        assert_eq!(relays.needless(), [listeners[0]], "the other relay has not answered yet");
        assert_eq!((relays.needless(), relays.due(now)), (Vec::new(), None));
        relays.granted(listeners[1].0);
        assert_eq!(relays.needless(), [listeners[1]]);
        relays.opened(false);
        assert!(relays.due(now).is_some());

        let mut hidden = Relays::new(true, AGAIN);
        known(&mut hidden, peers[0]);
        hidden.wait_for_router(now);
        hidden.opened(true);
        assert!(hidden.due(now).is_some(), "its owner says that nobody gets in");
    }

    #[test]
    fn a_router_is_waited_for_but_not_for_long() {
        let (mut relays, now) = (Relays::new(false, AGAIN), Instant::now());
        known(&mut relays, PeerId::random());
        relays.translated();
        relays.wait_for_router(now);
        assert_eq!(relays.due(now), None);
        assert!(relays.due(now + ROUTER).is_some());
    }

    #[test]
    fn two_places_are_kept_and_another_taken_where_one_ends() {
        let (mut relays, now) = (Relays::new(true, AGAIN), Instant::now());
        let peers = [(); 3].map(|()| PeerId::random());
        peers.iter().for_each(|peer| known(&mut relays, *peer));
        let mut held = Vec::new();
        while let Some((relay, address)) = relays.due(now) {
            assert_eq!(address, at(&format!("/ip4/192.0.2.1/tcp/4001/p2p/{relay}/p2p-circuit")));
            let listener = ListenerId::next();
            relays.asked(relay, Some(listener), now);
            held.push((listener, relay));
        }
        assert!(held.len() == RELAYS && held[0].1 != held[1].1);
        assert_eq!(relays.ended(ListenerId::next(), now), None, "what we listen on ourselves");
        assert_eq!(relays.ended(held[0].0, now), Some(held[0].1));
        let third = relays.due(now).unwrap().0;
        assert!(held.iter().all(|(_, relay)| *relay != third), "it is not asked again at once");
        relays.gone(third);
        assert_eq!(relays.due(now), None);
        assert_eq!(relays.due(now + AGAIN).unwrap().0, held[0].1);
    }

    #[test]
    fn only_who_carries_and_was_dialled_is_asked_and_not_at_once_after_a_refusal() {
        let (mut relays, now, peer) = (Relays::new(true, AGAIN), Instant::now(), PeerId::random());
        relays.identified(peer, true);
        assert_eq!(relays.due(now), None, "nobody knows whether others reach who dialled us");
        known(&mut relays, peer);
        relays.identified(peer, false);
        assert_eq!(relays.due(now), None);
        relays.identified(peer, true);
        assert!(relays.due(now).is_some());
        relays.asked(peer, None, now);
        assert_eq!(relays.due(now), None);
        assert!(relays.due(now + AGAIN).is_some());
    }

    #[test]
    fn a_few_addresses_lead_through_relays_and_none_through_two() {
        let relayed = |n: u8| circuit(&at(&format!("/ip4/192.0.2.{n}/tcp/1")), PeerId::random());
        let direct = |n: u8| at(&format!("/ip4/10.0.0.{n}/tcp/1"));
        let nested = relayed(1).with(Protocol::P2p(PeerId::random())).with(Protocol::P2pCircuit);
        let all = (0..40).map(direct).chain([nested, direct(1)]).chain((0..40).map(relayed));
        let told = routable(all);
        assert_eq!(told.len(), MAX_ADDRESSES);
        assert_eq!(told.iter().filter(|address| is_circuit(address)).count(), MAX_CIRCUITS);
        assert_eq!(routable([direct(1), direct(1), relayed(1)]).len(), 2, "each once");
    }

    #[test]
    fn who_is_seen_under_an_address_of_its_own_is_not_behind_nat() {
        let own = [at("/ip4/127.0.0.1/tcp/1"), at("/ip4/10.0.0.5/tcp/1"), at("/ip6/2001:db8::7/tcp/1")];
        let is_translated = |observed: &str| is_translated(&at(observed), &own);
        for seen in ["/ip4/10.0.0.5/tcp/50000", "/ip4/127.0.0.1/udp/9/quic-v1", "/ip6/2001:db8::7/tcp/5"] {
            assert!(!is_translated(seen), "{seen}");
        }
        assert!(is_translated("/ip4/198.51.100.7/tcp/50000") && is_translated("/ip6/2001:db8::8/tcp/5"));
        let peer = PeerId::random();
        let relayed = format!("/ip4/192.0.2.1/tcp/1/p2p/{peer}/p2p-circuit");
        assert!(!is_translated(&relayed), "that is the relay's");
        assert!(!is_translated("/dns4/example.org/tcp/1"), "a name tells nothing");
    }
}
