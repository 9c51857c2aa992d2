//! Peers to which only relays lead, as a state machine without I/O. Both ends try to connect directly at once; for a
//! while nothing is sent through the relay, so that no stream begins on a connection that is about to be replaced.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use libp2p::PeerId;
use libp2p::swarm::ConnectionId;
use tokio::time::Instant;

/// Connections through relays.
#[derive(Debug)]
pub(crate) struct Circuits {
    open: HashMap<PeerId, Open>,
    /// Those that are in use though there is a direct connection, and when they are closed.
    leaving: Vec<(Instant, ConnectionId)>,
    patience: Duration,
    grace: Duration,
}

#[derive(Debug)]
struct Open {
    connections: Vec<ConnectionId>,
    /// Until when a direct connection is waited for; none if not any more.
    until: Option<Instant>,
}

impl Circuits {
    /// None are open. A direct connection is waited for so long; if it comes later, what is in use then is closed after
    /// a `grace`.
    pub(crate) fn new(patience: Duration, grace: Duration) -> Self {
        Self { open: HashMap::new(), leaving: Vec::new(), patience, grace }
    }

    /// A relay has connected us to a peer; false if it is to be closed, as we are connected `directly`.
    pub(crate) fn opened(&mut self, peer: PeerId, connection: ConnectionId, (directly, now): (bool, Instant)) -> bool {
        let (connections, until) = (Vec::new(), Some(now + self.patience));
        match self.open.entry(peer) {
            Entry::Occupied(open) => open.into_mut().connections.push(connection),
            Entry::Vacant(_) if directly => return false,
            Entry::Vacant(place) => place.insert(Open { connections, until }).connections.push(connection),
        }
        true
    }

    /// One was closed: whether nothing was sent through it yet, and there is no other.
    pub(crate) fn closed(&mut self, peer: PeerId, connection: ConnectionId) -> bool {
        self.leaving.retain(|(_, leaving)| *leaving != connection);
        let Entry::Occupied(mut open) = self.open.entry(peer) else { return false };
        open.get_mut().connections.retain(|open| *open != connection);
        open.get().connections.is_empty() && open.remove().until.is_some()
    }

    /// A peer is connected directly: the connections to close at once. Those that are in use are closed later.
    pub(crate) fn replaced(&mut self, peer: PeerId, now: Instant) -> Vec<ConnectionId> {
        let Some(open) = self.open.remove(&peer) else { return Vec::new() };
        if open.until.is_some() {
            return open.connections;
        }
        let at = now + self.grace;
        self.leaving.extend(open.connections.into_iter().map(|connection| (at, connection)));
        Vec::new()
    }

    /// Connections in whose place there have been direct ones for a while: to be closed.
    pub(crate) fn left(&mut self, now: Instant) -> Vec<ConnectionId> {
        self.leaving.extract_if(.., |(at, _)| now >= *at).map(|(_, connection)| connection).collect()
    }

    /// Whether a direct connection to a peer is waited for.
    pub(crate) fn waits(&self, peer: PeerId) -> bool {
        self.open.get(&peer).is_some_and(|open| open.until.is_some())
    }

    /// There will be no direct connection to a peer: the relay is used; false if it was before.
    pub(crate) fn settle(&mut self, peer: PeerId) -> bool {
        self.open.get_mut(&peer).is_some_and(|open| open.until.take().is_some())
    }

    /// Peers to which a direct connection has been waited for long enough.
    pub(crate) fn due(&self, now: Instant) -> Vec<PeerId> {
        let is_due = |open: &Open| open.until.is_some_and(|until| now >= until);
        self.open.iter().filter(|(_, open)| is_due(open)).map(|(peer, _)| *peer).collect()
    }

    /// Peers to which only relays lead.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &PeerId> {
        self.open.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);
    const GRACE: Duration = Duration::from_secs(60);
    const ALONE: bool = false;

    #[test]
    fn a_relay_is_used_where_no_direct_connection_comes() {
        let (mut circuits, now, peer) = (Circuits::new(PATIENCE, GRACE), Instant::now(), PeerId::random());
        assert!(circuits.opened(peer, ConnectionId::new_unchecked(1), (ALONE, now)));
        assert!(circuits.opened(peer, ConnectionId::new_unchecked(2), (ALONE, now + PATIENCE)));
        assert!(circuits.waits(peer) && circuits.due(now).is_empty());
        assert_eq!(circuits.due(now + PATIENCE), [peer]);
        assert!(circuits.settle(peer));
        assert!(circuits.due(now + PATIENCE).is_empty() && !circuits.waits(peer) && !circuits.settle(peer));
        assert_eq!(circuits.peers().collect::<Vec<_>>(), [&peer]);
        assert!(circuits.opened(peer, ConnectionId::new_unchecked(3), (!ALONE, now)), "by the relay");
        assert!(!circuits.closed(peer, ConnectionId::new_unchecked(1)));
        assert!(circuits.replaced(peer, now).is_empty(), "they are in use");
        assert_eq!(circuits.peers().count(), 0);
        assert!(!circuits.closed(peer, ConnectionId::new_unchecked(3)));
        assert!(circuits.left(now).is_empty());
        assert_eq!(circuits.left(now + GRACE), [ConnectionId::new_unchecked(2)]);
        assert!(circuits.left(now + GRACE).is_empty());
    }

    #[test]
    fn what_is_closed_is_forgotten() {
        let (mut circuits, now, peer) = (Circuits::new(PATIENCE, GRACE), Instant::now(), PeerId::random());
        circuits.opened(peer, ConnectionId::new_unchecked(1), (ALONE, now));
        assert!(circuits.settle(peer) && !circuits.settle(peer));
        assert!(!circuits.closed(peer, ConnectionId::new_unchecked(1)), "it was in use");
        assert!(!circuits.closed(peer, ConnectionId::new_unchecked(1)));
        assert!(circuits.due(now + PATIENCE).is_empty() && circuits.replaced(peer, now).is_empty());
        circuits.opened(peer, ConnectionId::new_unchecked(2), (ALONE, now));
        assert!(circuits.closed(peer, ConnectionId::new_unchecked(2)), "who waits is to be told");
    }

    #[test]
    fn what_nobody_has_used_gives_way_at_once() {
        let (mut circuits, now, peer) = (Circuits::new(PATIENCE, GRACE), Instant::now(), PeerId::random());
        circuits.opened(peer, ConnectionId::new_unchecked(1), (ALONE, now));
        assert_eq!(circuits.replaced(peer, now), [ConnectionId::new_unchecked(1)]);
        assert!(!circuits.opened(peer, ConnectionId::new_unchecked(2), (!ALONE, now)), "there is a direct one");
    }
}
