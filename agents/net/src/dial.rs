//! How an address becomes a connection, as a state machine without I/O.
//!
//! | state | event | next |
//! |---|---|---|
//! | none | asked, connected | none; answered at once |
//! | none | asked, too soon after a failure | none; refused at once |
//! | none | asked, route known | dialling its preferred addresses |
//! | none | asked, no route | looking up |
//! | dialling a route from the book | failed | looking up |
//! | looking up, nothing tried | found a route of which a part is preferred | dialling that part, as if from the book |
//! | looking up | found a route other than the one that failed | dialling that |
//! | looking up | found nothing else | none; refused, back off |
//! | dialling a route just looked up | failed | none; refused, back off |
//! | any | connected (either way round) | none; answered |

use std::collections::HashMap;
use std::fmt::Display;
use std::time::Duration;

use libp2p::PeerId;
use libp2p::kad::QueryId;
use tensorlink_node::ports::NetError;
use tensorlink_types::Address;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::config::Limits;
use crate::directory::{Book, Route, preferred};

/// Peers being dialled or looked up at once; more are told to come back.
const MAX_PENDING: usize = 256;
/// Askers waiting for one peer.
const MAX_WAITERS: usize = 1024;
/// Failures remembered.
const MAX_BACKOFFS: usize = 4096;

type Reply = oneshot::Sender<Result<PeerId, NetError>>;

/// What the event loop shall do next for an address.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing: answered, refused, or under way.
    Wait,
    /// Dial this route.
    Dial(Route),
    /// Ask the DHT and report the query's id.
    LookUp,
}

#[derive(Debug)]
enum Stage {
    /// Dialling what the book said, preferred addresses only.
    Known(Route),
    /// Asking the DHT; `failed` was tried before.
    LookingUp { failed: Option<Route>, best: Option<Route> },
    /// Dialling what the DHT said.
    Found,
}

#[derive(Debug)]
struct Pending {
    stage: Stage,
    waiters: Vec<Reply>,
    since: Instant,
    reason: Option<String>,
}

#[derive(Debug)]
struct Backoff {
    until: Instant,
    wait: Duration,
    reason: String,
}

#[derive(Debug)]
pub(crate) struct Dials {
    pub(crate) book: Book,
    connected: HashMap<Address, PeerId>,
    pending: HashMap<Address, Pending>,
    queries: HashMap<QueryId, Address>,
    backoffs: HashMap<Address, Backoff>,
    redial: (Duration, Duration),
    patience: Duration,
}

impl Dials {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            book: Book::new(limits.routes),
            connected: HashMap::new(),
            pending: HashMap::new(),
            queries: HashMap::new(),
            backoffs: HashMap::new(),
            redial: limits.redial,
            // A dial, a look-up and another dial.
            patience: 3 * limits.handshake,
        }
    }

    /// Somebody wants to talk to `address`.
    pub(crate) fn connect(&mut self, address: Address, reply: Reply, now: Instant) -> Step {
        let refuse = |reply: Reply, reason: String| {
            // Nobody waits any more: nothing to tell.
            let _ = reply.send(Err(NetError::Unreachable { peer: address, reason }));
            Step::Wait
        };
        if let Some(peer) = self.connected.get(&address) {
            let _ = reply.send(Ok(*peer));
            return Step::Wait;
        }
        if let Some(pending) = self.pending.get_mut(&address) {
            if pending.waiters.len() >= MAX_WAITERS {
                return refuse(reply, "too many wait for it already".into());
            }
            pending.waiters.push(reply);
            return Step::Wait;
        }
        if let Some(backoff) = self.backoffs.get(&address)
            && now < backoff.until
        {
            let reason = format!("{}; it is dialled again in {:?}", backoff.reason, backoff.until - now);
            return refuse(reply, reason);
        }
        if self.pending.len() >= MAX_PENDING {
            return refuse(reply, "too many peers are being dialled".into());
        }
        let (stage, step) = match self.book.get(address) {
            Some(route) => {
                let first = Route { addresses: preferred(&route.addresses), ..route.clone() };
                (Stage::Known(first.clone()), Step::Dial(first))
            }
            None => (Stage::LookingUp { failed: None, best: None }, Step::LookUp),
        };
        self.pending.insert(address, Pending { stage, waiters: vec![reply], since: now, reason: None });
        step
    }

    /// Whether there is a connection to use.
    pub(crate) fn is_connected(&self, address: Address) -> bool {
        self.connected.contains_key(&address)
    }

    /// The DHT is being asked.
    pub(crate) fn looking_up(&mut self, address: Address, query: QueryId) {
        self.queries.insert(query, address);
    }

    /// The DHT knows a route. The caller has checked its record.
    pub(crate) fn found(&mut self, query: QueryId, address: Address, route: Route) {
        if self.queries.get(&query) != Some(&address) {
            return;
        }
        self.book.learn(address, route.clone());
        if let Some(Pending { stage: Stage::LookingUp { best, .. }, .. }) = self.pending.get_mut(&address)
            && best.as_ref().is_none_or(|best| best.since <= route.since)
        {
            *best = Some(route);
        }
    }

    /// The DHT has no more to say.
    pub(crate) fn looked_up(&mut self, query: QueryId, now: Instant) -> Option<(Address, Step)> {
        let address = self.queries.remove(&query)?;
        let pending = self.pending.get_mut(&address)?;
        let Stage::LookingUp { failed, best } = &mut pending.stage else { return None };
        let step = match (best.take(), failed.take()) {
            (Some(best), Some(failed)) if best.addresses == failed.addresses => {
                self.fail(address, now);
                Step::Wait
            }
            // Nothing was tried yet: the preferred addresses first, and if they fail a second look-up for the rest.
            (Some(best), None) if preferred(&best.addresses) != best.addresses => {
                let first = Route { addresses: preferred(&best.addresses), ..best };
                pending.stage = Stage::Known(first.clone());
                Step::Dial(first)
            }
            (Some(best), _) => {
                pending.stage = Stage::Found;
                Step::Dial(best)
            }
            (None, _) => {
                self.fail(address, now);
                Step::Wait
            }
        };
        Some((address, step))
    }

    /// A dial failed, ours or anybody's.
    pub(crate) fn dial_failed(&mut self, address: Address, reason: &impl Display, now: Instant) -> Step {
        let Some(pending) = self.pending.get_mut(&address) else { return Step::Wait };
        match &pending.stage {
            Stage::Known(route) => {
                let failed = Some(route.clone());
                pending.reason = Some(reason.to_string());
                pending.stage = Stage::LookingUp { failed, best: None };
                Step::LookUp
            }
            Stage::LookingUp { .. } => Step::Wait,
            Stage::Found => {
                pending.reason = Some(reason.to_string());
                self.fail(address, now);
                Step::Wait
            }
        }
    }

    pub(crate) fn connected(&mut self, address: Address, peer: PeerId) {
        self.connected.insert(address, peer);
        self.backoffs.remove(&address);
        for waiter in self.pending.remove(&address).into_iter().flat_map(|p| p.waiters) {
            let _ = waiter.send(Ok(peer));
        }
    }

    pub(crate) fn disconnected(&mut self, address: Address) {
        self.connected.remove(&address);
    }

    /// Gives up what takes too long, forgets old failures.
    pub(crate) fn on_tick(&mut self, now: Instant) {
        let late = |(address, p): (&Address, &Pending)| (now - p.since > self.patience).then_some(*address);
        let late: Vec<_> = self.pending.iter().filter_map(late).collect();
        for address in late {
            self.fail(address, now);
        }
        // A failure is remembered a while past its wait, so that the next one waits longer.
        let longest = self.redial.1;
        self.backoffs.retain(|_, b| now < b.until + longest);
        self.queries.retain(|_, address| self.pending.contains_key(address));
    }

    /// The node stops.
    pub(crate) fn fail_all(&mut self) {
        for waiter in self.pending.drain().flat_map(|(_, p)| p.waiters) {
            let _ = waiter.send(Err(NetError::Closed));
        }
    }

    fn fail(&mut self, address: Address, now: Instant) {
        let Some(pending) = self.pending.remove(&address) else { return };
        let known = self.book.get(address).is_some();
        let reason = pending.reason.unwrap_or_else(|| "no answer".into());
        tracing::debug!(%address, known, "cannot be reached: {reason}");
        // An unknown peer costs a look-up a time, so it backs off like any other.
        let wait = self.backoffs.get(&address).map_or(self.redial.0, |b| (b.wait * 2).min(self.redial.1));
        if self.backoffs.len() < MAX_BACKOFFS {
            self.backoffs.insert(address, Backoff { until: now + wait, wait, reason: reason.clone() });
        }
        for waiter in pending.waiters {
            let _ = waiter.send(Err(if known {
                NetError::Unreachable { peer: address, reason: reason.clone() }
            } else {
                NetError::Unknown(address)
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;

    fn route(n: u8, port: u16, since: u64) -> (Address, Route) {
        let id = Identity::from_secret([n; 32]).unwrap();
        let at = format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap();
        (id.address(), Route { peer: id.peer_id(), addresses: vec![at], since })
    }

    fn ask(dials: &mut Dials, address: Address, now: Instant) -> (Step, oneshot::Receiver<Result<PeerId, NetError>>) {
        let (reply, answer) = oneshot::channel();
        (dials.connect(address, reply, now), answer)
    }

    #[tokio::test]
    async fn failures_back_off_and_a_connection_resets_them() {
        let mut dials = Dials::new(&Limits::default());
        let (address, known) = route(1, 1, 1);
        dials.book.learn(address, known.clone());
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..8 {
            // The wait after the last failure is over, so it dials.
            let (step, mut answer) = ask(&mut dials, address, now);
            assert!(matches!(step, Step::Dial(r) if r == known));
            assert!(matches!(dials.dial_failed(address, &"refused", now), Step::LookUp));
            dials.fail(address, now);
            assert!(matches!(answer.try_recv(), Ok(Err(NetError::Unreachable { .. }))));
            // Before it is over, nothing is dialled.
            let (step, mut answer) = ask(&mut dials, address, now);
            assert!(matches!(step, Step::Wait));
            assert!(matches!(answer.try_recv(), Ok(Err(NetError::Unreachable { .. }))));
            let wait = dials.backoffs[&address].wait;
            waits.push(wait);
            now += wait;
        }
        assert!(waits.is_sorted() && waits[0] == Duration::from_millis(250));
        assert_eq!(*waits.last().unwrap(), Duration::from_secs(10));
        dials.connected(address, known.peer);
        assert!(dials.backoffs.is_empty());
        let (_, mut answer) = ask(&mut dials, address, now);
        assert_eq!(answer.try_recv().unwrap().unwrap(), known.peer);
    }

    #[tokio::test]
    async fn many_askers_share_one_dial() {
        let mut dials = Dials::new(&Limits::default());
        let (address, known) = route(1, 1, 1);
        dials.book.learn(address, known.clone());
        let now = Instant::now();
        let (first, a) = ask(&mut dials, address, now);
        let (second, b) = ask(&mut dials, address, now);
        assert!(matches!((first, second), (Step::Dial(_), Step::Wait)));
        dials.connected(address, known.peer);
        assert_eq!(a.await.unwrap().unwrap(), known.peer);
        assert_eq!(b.await.unwrap().unwrap(), known.peer);
    }

    #[tokio::test]
    async fn what_hangs_is_given_up() {
        let mut dials = Dials::new(&Limits::default());
        let (address, _) = route(1, 1, 1);
        let now = Instant::now();
        let (step, mut answer) = ask(&mut dials, address, now);
        assert!(matches!(step, Step::LookUp));
        dials.on_tick(now + Duration::from_secs(31));
        assert!(matches!(answer.try_recv(), Ok(Err(NetError::Unknown(a))) if a == address));
    }
}
