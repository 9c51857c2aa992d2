//! The workers that are there, as they and the chain tell it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tensorlink_node::ports::Event;
use tensorlink_node::ports::chain::Role;
use tensorlink_node::speed::Speed;
use tensorlink_node::wire::decode;
use tensorlink_node::wire::gossip::WorkerAdvert;
use tensorlink_node::{Ports, Roster};
use tensorlink_types::Address;

use crate::hire::{Asked, Candidate, HireError, Market};

/// Seconds after which an advert is one of the past: workers advertise every two.
const FRESH: u64 = 20;
/// Time for one round of adverts, so that the first to speak is not hired for that.
const ROUND: Duration = Duration::from_secs(3);
/// Wait between two looks at the market.
const PAUSE: Duration = Duration::from_millis(500);

/// Staked workers, what they offer, and when each was heard.
pub(crate) struct Workers {
    ports: Ports,
    roster: Arc<Roster>,
    market: Mutex<Market>,
    /// When each staked worker said something last, seconds of this machine's clock.
    heard: Mutex<HashMap<Address, u64>>,
    /// When it began to listen, seconds of this machine's clock.
    since: u64,
    /// Who is not hired any more.
    avoided: Mutex<HashSet<Address>>,
}

impl Workers {
    /// None was heard yet.
    pub(crate) fn new(ports: Ports, roster: Arc<Roster>) -> Self {
        let since = ports.clock.now();
        Self { since, ports, roster, market: Mutex::default(), heard: Mutex::default(), avoided: Mutex::default() }
    }

    /// Takes in an event, after the roster: what a worker offered is forgotten with its stake.
    pub(crate) fn apply(&self, event: &Event) {
        if let Event::UnstakeRequested { account, .. } | Event::Slashed { account, .. } = event
            && !self.roster.is_staked(*account, Role::Worker)
        {
            self.market().forget(*account);
        }
    }

    /// Writes down that a worker is there; of no others, so that their number is bounded by stake.
    pub(crate) fn note(&self, peer: Address) {
        if self.roster.is_staked(peer, Role::Worker) {
            let now = self.ports.clock.now();
            self.heard.lock().unwrap_or_else(PoisonError::into_inner).insert(peer, now);
        }
    }

    /// When a worker said something to its peers last that came here, seconds of this machine's clock.
    pub(crate) fn last_message(&self, worker: Address) -> Option<u64> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).get(&worker).copied()
    }

    /// When any staked worker said something last that came here, seconds of this machine's clock.
    pub(crate) fn last_heard(&self) -> Option<u64> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).values().max().copied()
    }

    /// From now on these are not hired.
    pub(crate) fn avoid(&self, workers: impl IntoIterator<Item = Address>) {
        self.avoided().extend(workers);
    }

    /// These may be hired again.
    pub(crate) fn forgive(&self, workers: &[Address]) {
        self.avoided().retain(|worker| !workers.contains(worker));
    }

    /// Only staked workers can be hired. One that has just staked says it again every two seconds.
    pub(crate) fn hear(&self, peer: Address, bytes: &[u8]) {
        match decode::<WorkerAdvert>("advert", bytes) {
            Ok(_) if !self.roster.is_staked(peer, Role::Worker) => tracing::debug!(%peer, "an advert without stake"),
            Ok(advert) => self.market().hear(peer, advert),
            Err(error) => tracing::debug!(%peer, %error, "a malformed advert"),
        }
    }

    /// These workers by what each advertised last, whether it takes more work or not; none where one is not known, or
    /// does not take the token.
    pub(crate) fn known(&self, workers: &[Address], token: Address) -> Option<Vec<Candidate>> {
        let market = self.market();
        workers.iter().map(|worker| market.known(*worker, token)).collect()
    }

    /// The fastest that a worker said it is.
    pub(crate) fn fastest(&self, worker: Address) -> Option<Speed> {
        self.market().fastest(worker)
    }

    /// Workers of whom what is asked holds, cheapest first, waiting up to `patience` for `count` of them.
    ///
    /// # Errors
    /// [`HireError::TooFew`] when patience is over.
    pub(crate) async fn find_workers(
        &self,
        count: usize,
        asked: Asked,
        patience: Duration,
    ) -> Result<Vec<Candidate>, HireError> {
        let now = self.ports.clock.now();
        let deadline = now.saturating_add(patience.as_secs());
        let heard = Duration::from_secs(now.saturating_sub(self.since));
        self.ports.clock.sleep(ROUND.saturating_sub(heard)).await;
        loop {
            match self.ranked(count, asked).await {
                Err(HireError::TooFew(_)) if self.ports.clock.now() < deadline => self.ports.clock.sleep(PAUSE).await,
                ranked => return ranked,
            }
        }
    }

    /// Workers that answer now, of whom what is asked holds, cheapest first; at least `count`.
    ///
    /// # Errors
    /// [`HireError::TooFew`], or when the chain fails.
    pub(crate) async fn ranked(&self, count: usize, asked: Asked) -> Result<Vec<Candidate>, HireError> {
        let own = self.ports.identity.address();
        let market = self.market().clone();
        let avoided = self.avoided().clone();
        let mut eligible = HashSet::new();
        let since = self.ports.clock.now().saturating_sub(FRESH);
        // Who has gone says nothing any more, and its last advert is worth nothing.
        let speaks = |worker: &Address| self.last_message(*worker).is_some_and(|at| at >= since);
        let asked_of = |worker: &Address| *worker != own && !avoided.contains(worker) && speaks(worker);
        for worker in self.roster.staked(Role::Worker).into_iter().filter(asked_of) {
            let view = self.ports.chain.stake(worker, Role::Worker).await?;
            if view.bonded.saturating_sub(view.locked) >= asked.stake {
                eligible.insert(worker);
            }
        }
        Ok(market.rank(count, asked, |worker| eligible.contains(&worker))?)
    }

    fn market(&self) -> MutexGuard<'_, Market> {
        self.market.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn avoided(&self) -> MutexGuard<'_, HashSet<Address>> {
        self.avoided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
