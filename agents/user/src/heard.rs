//! What other users say of workers' speeds, how much that counts here, and what is said to them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tensorlink_node::observed::{Observed, Payments, SignedSpeed, Told, ask};
use tensorlink_node::ports::EventAt;
use tensorlink_node::ports::chain::Role;
use tensorlink_node::speed::MOST_MULTIPLY_ADDS;
use tensorlink_node::wire::gossip::{MOST_SPEEDS, SPEEDS};
use tensorlink_node::wire::{decode, encode};
use tensorlink_node::{Ports, Roster, blocking};
use tensorlink_placement::measured::Observation;
use tensorlink_types::{Address, JobId};

use crate::hire::Candidate;
use crate::speeds::{Worth, as_good};

/// How much more than what a worker says all others together count at most: less than what was seen here.
const WEIGHT: f64 = 3.0;
/// They count half as much where all of them paid as much as the worker asks for an hour of the speed that it says: so
/// much goes to it from whoever wants it to look slow.
const HOUR: f64 = 3_600.0;
/// Seconds after which others are asked again about a worker; and after which the same is said again, as gossip may be
/// lost.
const ASK: u64 = 60;
const REPEAT: u64 = 600;
/// Statements that wait for the chain to tell that they are paid for.
const WAITING: usize = 4_096;

/// What others say, and what is said to them.
pub(crate) struct Heard {
    ports: Ports,
    roster: Arc<Roster>,
    payments: Arc<Payments>,
    observed: Arc<Observed>,
    /// What was said and is not known to be paid for, as events of the chain may still be to come.
    waiting: Mutex<Vec<SignedSpeed>>,
    /// When others were asked about a worker.
    asked: Mutex<HashMap<Address, u64>>,
    /// When it was said of a worker in a job how fast it was; and when that was seen.
    said: Mutex<HashMap<(JobId, Address), (u64, u64)>>,
}

impl Heard {
    /// Nothing was heard yet.
    pub(crate) fn new(ports: Ports, roster: Arc<Roster>) -> Self {
        let payments = Arc::new(Payments::default());
        let observed = Arc::new(Observed::new(ports.chain.deployment().clone(), payments.clone()));
        let (waiting, asked, said) = Default::default();
        Self { ports, roster, payments, observed, waiting, asked, said }
    }

    /// Takes in an event.
    pub(crate) fn apply(&self, at: &EventAt) {
        self.payments.apply(&at.event, at.timestamp);
    }

    /// Forgets payments: all events are told anew.
    pub(crate) fn forget(&self) {
        self.payments.forget();
    }

    /// Takes in what was published.
    pub(crate) async fn hear(&self, message: &[u8]) {
        match decode("speeds", message) {
            Ok(statements) => drop(self.take(statements).await),
            Err(error) => tracing::debug!(%error, "what others say of workers"),
        }
    }

    /// Takes in what can be, and what has waited; how many that were.
    async fn take(&self, mut statements: Vec<SignedSpeed>) -> usize {
        let waiting = || self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        statements.append(&mut waiting());
        let (observed, now) = (self.observed.clone(), self.ports.clock.now());
        let (taken, mut unpaid) = blocking(move || observed.take_all(statements, now)).await;
        unpaid.truncate(WAITING);
        *waiting() = unpaid;
        taken
    }

    /// Asks validators what they have heard of workers, if they were not asked lately.
    pub(crate) async fn ask(&self, candidates: &[Candidate]) {
        let (own, now) = (self.ports.identity.address(), self.ports.clock.now());
        let mut validators = self.roster.staked(Role::Validator);
        validators.retain(|validator| *validator != own);
        let workers: Vec<Address> = if validators.is_empty() {
            Vec::new()
        } else {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.retain(|_, at| now.saturating_sub(*at) < ASK);
            let fresh = candidates.iter().map(|candidate| candidate.address);
            let fresh: Vec<Address> = fresh.filter(|worker| !asked.contains_key(worker)).collect();
            asked.extend(fresh.iter().map(|worker| (*worker, now)));
            fresh
        };
        if workers.is_empty() {
            self.take(Vec::new()).await;
        } else {
            let told = ask(self.ports.net.as_ref(), &validators, &workers).await;
            let (said, taken) = (told.len(), self.take(told).await);
            tracing::debug!(validators = validators.len(), said, taken, "what others say of workers");
        }
    }

    /// What others say of each of these workers, against what it says; `token`: what they are to be paid in.
    pub(crate) fn of(&self, candidates: &[Candidate], token: Address) -> Vec<Vec<Observation>> {
        let (own, now) = (self.ports.identity.address(), self.ports.clock.now());
        let of = |candidate: &Candidate| {
            let mut told = self.observed.of(candidate.address, now);
            // What this user saw counts by itself; what is paid in something else cannot be compared.
            told.retain(|told| told.payment.user != own && told.payment.token == token);
            weighed(candidate, &told, now)
        };
        candidates.iter().map(of).collect()
    }

    /// Publishes how fast workers were in jobs of this user, each when it is new and from time to time again.
    pub(crate) async fn publish(&self, worth: Vec<Worth>) {
        let statements = self.news(worth);
        for some in statements.chunks(MOST_SPEEDS) {
            let Ok(message) = encode("speeds", &some) else { continue };
            if let Err(error) = self.ports.net.publish(SPEEDS, message).await {
                tracing::debug!(%error, "how fast workers were is not published");
            }
        }
    }

    /// What is to be said now; it counts as said.
    fn news(&self, worth: Vec<Worth>) -> Vec<SignedSpeed> {
        let (user, now) = (&self.ports.identity, self.ports.clock.now());
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.retain(|_, (when, _)| now.saturating_sub(*when) < REPEAT);
        let news = |Worth { job, worker, setting, multiply_adds, at }| {
            let of = (job, worker);
            let is_said = said.get(&of).is_some_and(|(_, seen)| *seen >= at);
            // Nobody takes it in before anything is paid for.
            let is_paid = self.payments.of(job, worker).is_some_and(|payment| payment.user == user.address());
            if is_said || !is_paid {
                return None;
            }
            said.insert(of, (now, at));
            let multiply_adds = (multiply_adds.round() as u64).clamp(1, MOST_MULTIPLY_ADDS);
            SignedSpeed::new((user, self.ports.chain.deployment()), of, (setting, multiply_adds), at).ok()
        };
        worth.into_iter().filter_map(news).collect()
    }
}

/// What is said of a worker, each by what was paid for it.
fn weighed(candidate: &Candidate, told: &[Told], now: u64) -> Vec<Observation> {
    let paid = |told: &Told| u128::try_from(told.payment.amount).unwrap_or(u128::MAX) as f64;
    let all: f64 = told.iter().map(paid).sum();
    let observation = |told: &Told| {
        let says = candidate.advert.speed.multiply_adds(told.signed.setting()?) as f64;
        let hour = candidate.price_per_gmac as f64 * (says / 1e9) * HOUR;
        Some(Observation {
            share: as_good(told.signed.multiply_adds() as f64 / says),
            paid: WEIGHT * paid(told) / (all + hour),
            age: now.saturating_sub(told.at) as f64,
        })
    };
    told.iter().filter_map(observation).collect()
}
