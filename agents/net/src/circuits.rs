//! Peers to which only relays lead, as a state machine without I/O. Both ends try to connect directly at once; for a
//! while nothing is sent through the relay, so that no stream begins on a connection that is about to be replaced.

use std::collections::HashMap;
use std::time::Duration;

use libp2p::PeerId;
use libp2p::swarm::ConnectionId;
use tokio::time::Instant;

/// Connections through relays.
#[derive(Debug)]
pub(crate) struct Circuits {
    open: HashMap<PeerId, Open>,
    patience: Duration,
}

#[derive(Debug)]
struct Open {
    connections: Vec<ConnectionId>,
    /// Until when a direct connection is waited for; none if not any more.
    until: Option<Instant>,
}

impl Circuits {
    /// None are open; a direct connection is waited for so long.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { open: HashMap::new(), patience }
    }

    /// A relay has connected us to a peer to which nothing else leads.
    pub(crate) fn opened(&mut self, peer: PeerId, connection: ConnectionId, now: Instant) {
        let (connections, until) = (Vec::new(), Some(now + self.patience));
        self.open.entry(peer).or_insert(Open { connections, until }).connections.push(connection);
    }

    /// One was closed.
    pub(crate) fn closed(&mut self, peer: PeerId, connection: ConnectionId) {
        if let Some(open) = self.open.get_mut(&peer) {
            open.connections.retain(|open| *open != connection);
            if open.connections.is_empty() {
                self.open.remove(&peer);
            }
        }
    }

    /// A peer is connected directly: the connections that are to be closed.
    pub(crate) fn replaced(&mut self, peer: PeerId) -> Vec<ConnectionId> {
        self.open.remove(&peer).map(|open| open.connections).unwrap_or_default()
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

    #[test]
    fn a_relay_is_used_where_no_direct_connection_comes() {
        let (mut circuits, now, peer) = (Circuits::new(PATIENCE), Instant::now(), PeerId::random());
        circuits.opened(peer, ConnectionId::new_unchecked(1), now);
        circuits.opened(peer, ConnectionId::new_unchecked(2), now + PATIENCE);
        assert!(circuits.waits(peer) && circuits.due(now).is_empty());
        assert_eq!(circuits.due(now + PATIENCE), [peer]);
        assert!(circuits.settle(peer));
        assert!(circuits.due(now + PATIENCE).is_empty() && !circuits.waits(peer) && !circuits.settle(peer));
        assert_eq!(circuits.peers().collect::<Vec<_>>(), [&peer]);
        circuits.closed(peer, ConnectionId::new_unchecked(1));
        assert_eq!(circuits.replaced(peer), [ConnectionId::new_unchecked(2)]);
        assert_eq!(circuits.peers().count(), 0);
    }

    #[test]
    fn what_is_closed_is_forgotten() {
        let (mut circuits, now, peer) = (Circuits::new(PATIENCE), Instant::now(), PeerId::random());
        circuits.opened(peer, ConnectionId::new_unchecked(1), now);
        assert!(circuits.settle(peer) && !circuits.settle(peer));
        circuits.closed(peer, ConnectionId::new_unchecked(1));
        circuits.closed(peer, ConnectionId::new_unchecked(1));
        assert!(circuits.due(now + PATIENCE).is_empty() && circuits.replaced(peer).is_empty());
    }
}
