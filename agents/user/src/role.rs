//! A user's node: knows the market and the chain's events, posts jobs, hires workers, follows jobs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tensorlink_node::budget::Budget;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::{JobState, Role};
use tensorlink_node::ports::{Call, ChainError, Event, EventAt, NetError, Protocol};
use tensorlink_node::wire::gossip::{PROGRESS, Progress, WORKERS, WorkerAdvert};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{Malformed, decode, encode};
use tensorlink_node::{Keeper, Ports, Roster};
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::commit::verify_signer;
use tensorlink_types::abi::{Claim, Holder, JobKind, Offer};
use tensorlink_types::{Address, B256, Bytes, JobId, Lane};
use thiserror::Error;
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::hire::{Candidate, Market, TooFew, Wanted};
use crate::own::Own;

/// Progress reports that wait for a slow reader.
const BACKLOG: usize = 4096;
/// Longest wait for a worker that does not answer: it may be starting.
const ANSWER: Duration = Duration::from_secs(120);
/// Longest wait for an offer of one that does: the job has to be confirmed there, and its shard fetched and checked.
const OFFER: Duration = Duration::from_secs(300);
/// Seconds a worker has to finalise its claims itself before the user does it.
const GRACE: u64 = 3;
/// Seconds after which an advert is one of the past: workers advertise every two.
const FRESH: u64 = 20;
/// Claims finalised by one transaction.
const BATCH: usize = 16;
/// Wait between two questions.
const PAUSE: Duration = Duration::from_millis(500);

/// Why hiring failed.
#[derive(Debug, Error)]
pub enum HireError {
    /// The chain refused or failed.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Too few workers.
    #[error(transparent)]
    TooFew(#[from] TooFew),
    /// A worker does not answer.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A worker answers nonsense.
    #[error("{worker}: {source}")]
    Malformed {
        /// Who.
        worker: Address,
        /// What is wrong.
        source: Malformed,
    },
    /// A worker declines.
    #[error("{worker} declines {lane}: {reason}")]
    Declined {
        /// Who.
        worker: Address,
        /// For what.
        lane: Lane,
        /// Why.
        reason: String,
    },
    /// A worker signs something else than it was asked for.
    #[error("{worker} offers {offer:?} when asked for {lane}")]
    Mismatch {
        /// Who.
        worker: Address,
        /// For what.
        lane: Lane,
        /// What it signed.
        offer: Box<Offer>,
    },
    /// A worker asks for more than it advertised.
    #[error(
        "{worker} advertised {limit} wei an interval for {lane} and asks for {asked}: post again to hire by present adverts"
    )]
    Price {
        /// Who.
        worker: Address,
        /// For what.
        lane: Lane,
        /// What it advertised.
        limit: u128,
        /// What it signed.
        asked: u128,
    },
    /// A worker signs badly.
    #[error("{worker}: {source}")]
    Signature {
        /// Who.
        worker: Address,
        /// What is wrong.
        source: SignatureError,
    },
}

/// A user's node.
pub struct User {
    /// Its world.
    pub ports: Ports,
    roster: Arc<Roster>,
    market: Mutex<Market>,
    pub(crate) events: watch::Receiver<Vec<EventAt>>,
    progress: broadcast::Sender<Progress>,
    /// When each staked worker said something last, seconds of this machine's clock.
    heard: Mutex<HashMap<Address, u64>>,
    /// States that workers of our jobs have us keep.
    pub(crate) keeper: Keeper,
}

impl User {
    /// Starts listening to the chain and to gossip, until `shutdown`.
    ///
    /// # Errors
    /// When chain or net cannot be listened to.
    pub async fn start(ports: Ports, shutdown: CancellationToken) -> Result<Arc<Self>, HireError> {
        let roster = Arc::new(Roster::new(ports.identity.address()));
        ports.net.set_gate(roster.clone());
        let keeper = Keeper::open(ports.clone(), Budget::new(u64::MAX))?;
        keeper.take_back(ports.chain.times_undone()?).await?;
        let mut chain_events = ports.chain.events(ports.chain.deployment().block).await?;
        let mut adverts = ports.net.subscribe(WORKERS).await?;
        let mut reports = ports.net.subscribe(PROGRESS).await?;
        let requests = ports.net.serve(Protocol::Rpc).await?;
        keeper.take_stock().await;
        let (told, events) = watch::channel(Vec::new());
        let mut own = Own::new(ports.identity.address());
        let user = Arc::new(Self {
            ports,
            roster,
            market: Mutex::default(),
            events,
            progress: broadcast::Sender::new(BACKLOG),
            heard: Mutex::default(),
            keeper,
        });
        let answering = user.clone().answer_all(requests);
        let end = shutdown.clone();
        tokio::spawn(async move { end.run_until_cancelled(answering).await });
        let listener = user.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    event = chain_events.recv() => match event {
                        Some(event) => {
                            listener.roster.apply(&event.event);
                            listener.forget_unstaked(&event.event);
                            if let Err(error) = listener.keeper.apply(&event.event).await {
                                tracing::error!(%error, "the record of kept states cannot be written");
                            }
                            // Told anew after a reorganisation: what it left is there.
                            let is_new = |last: Option<&EventAt>| last.is_none_or(|last| last.place() < event.place());
                            if own.concerns(&event.event) && is_new(told.borrow().last()) {
                                told.send_modify(|events| events.push(event));
                            }
                        }
                        None => match listener.begin_anew(&told).await {
                            Some(anew) if !shutdown.is_cancelled() => {
                                (chain_events, own) = (anew, Own::new(listener.ports.identity.address()));
                            }
                            // Dropping the sender tells whoever watches.
                            _ => return,
                        },
                    },
                    Some((peer, bytes)) = adverts.recv() => {
                        listener.note(peer);
                        listener.hear_advert(peer, &bytes);
                    }
                    Some((peer, bytes)) = reports.recv() => {
                        listener.note(peer);
                        listener.hear_progress(peer, &bytes);
                    }
                }
            }
        });
        Ok(user)
    }

    /// Writes down that a worker is there; of no others, so that their number is bounded by stake.
    fn note(&self, peer: Address) {
        if self.roster.is_staked(peer, Role::Worker) {
            let now = self.ports.clock.now();
            self.heard.lock().unwrap_or_else(PoisonError::into_inner).insert(peer, now);
        }
    }

    /// When a worker said something to its peers last that came here, seconds of this machine's clock.
    pub fn last_message(&self, worker: Address) -> Option<u64> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).get(&worker).copied()
    }

    /// The events anew, from the first on, where they have ended because a reorganisation has undone some; those are
    /// taken back.
    async fn begin_anew(&self, told: &watch::Sender<Vec<EventAt>>) -> Option<mpsc::Receiver<EventAt>> {
        let chain = &self.ports.chain;
        let ChainError::Undone { from } = chain.ended() else { return None };
        tracing::warn!(from, "a reorganisation has undone what was confirmed: it is taken back");
        let anew = async {
            self.keeper.take_back(chain.times_undone()?).await?;
            self.keeper.take_stock().await;
            Ok::<_, HireError>(chain.events(chain.deployment().block).await?)
        };
        let anew = match anew.await {
            Ok(anew) => anew,
            Err(error) => {
                tracing::error!(%error, "the chain cannot be followed any more");
                return None;
            }
        };
        told.send_modify(|events| events.retain(|at| at.block < from));
        self.roster.forget();
        Some(anew)
    }

    /// Only staked workers can be hired. One that has just staked says it again every two seconds.
    fn hear_advert(&self, peer: Address, bytes: &[u8]) {
        match decode::<WorkerAdvert>("advert", bytes) {
            Ok(_) if !self.roster.is_staked(peer, Role::Worker) => tracing::debug!(%peer, "an advert without stake"),
            Ok(advert) => self.market().hear(peer, advert),
            Err(error) => tracing::debug!(%peer, %error, "a malformed advert"),
        }
    }

    /// What a worker offered is forgotten with its stake.
    fn forget_unstaked(&self, event: &Event) {
        if let Event::UnstakeRequested { account, .. } | Event::Slashed { account, .. } = event
            && !self.roster.is_staked(*account, Role::Worker)
        {
            self.market().forget(*account);
        }
    }

    fn market(&self) -> MutexGuard<'_, Market> {
        self.market.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only the lane's own worker can report on it.
    fn hear_progress(&self, peer: Address, bytes: &[u8]) {
        match decode::<Progress>("progress", bytes) {
            Ok(report) => {
                let members = self.roster.members(report.lane.job);
                if members.is_some_and(|members| members.workers.contains(&peer)) {
                    let _ = self.progress.send(report);
                }
            }
            Err(error) => tracing::debug!(%peer, %error, "a malformed report"),
        }
    }

    /// Confirmed events so far of the jobs that this account posted, and convictions and slashes, in order; closed when
    /// the chain is not followed any more.
    pub fn events(&self) -> watch::Receiver<Vec<EventAt>> {
        self.events.clone()
    }

    /// Progress reports from now on.
    pub fn progress(&self) -> broadcast::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Workers with `stake` wei of free stake that take `token`, cheapest first, waiting up to `patience` for `count`
    /// of them.
    ///
    /// # Errors
    /// [`HireError::TooFew`] when patience is over.
    pub async fn find_workers(
        &self,
        count: usize,
        stake: u128,
        token: Address,
        patience: Duration,
    ) -> Result<Vec<Candidate>, HireError> {
        let deadline = self.ports.clock.now().saturating_add(patience.as_secs());
        // One round of adverts, so that the first to speak is not hired for that.
        self.ports.clock.sleep(Duration::from_secs(3)).await;
        loop {
            match self.ranked(count, stake, token).await {
                Err(HireError::TooFew(_)) if self.ports.clock.now() < deadline => self.ports.clock.sleep(PAUSE).await,
                ranked => return ranked,
            }
        }
    }

    /// Workers that answer now, with `stake` wei of free stake, and take `token`, cheapest first; at least `count`.
    ///
    /// # Errors
    /// [`HireError::TooFew`], or when the chain fails.
    pub async fn ranked(&self, count: usize, stake: u128, token: Address) -> Result<Vec<Candidate>, HireError> {
        let own = self.ports.identity.address();
        let market = self.market().clone();
        let mut eligible = HashSet::new();
        let since = self.ports.clock.now().saturating_sub(FRESH);
        // Who has gone says nothing any more, and its last advert is worth nothing.
        let speaks = |worker: &Address| self.last_message(*worker).is_some_and(|at| at >= since);
        for worker in self.roster.staked_workers().into_iter().filter(|worker| *worker != own && speaks(worker)) {
            let view = self.ports.chain.stake(worker, Role::Worker).await?;
            if view.bonded.saturating_sub(view.locked) >= stake {
                eligible.insert(worker);
            }
        }
        Ok(market.rank(count, token, |worker| eligible.contains(&worker))?)
    }

    /// Asks each worker for a binding offer on its lane; lanes in order (`replica · stages + stage`). Where one does
    /// not offer, `instead` names the next to ask for its lane, if there is one. Returns who offered, in the order
    /// of lanes. `terms`: the hash that the job was posted with (P-40).
    ///
    /// # Errors
    /// [`HireError`] of a worker that does not offer, and whom nobody replaces.
    pub async fn collect_offers(
        &self,
        terms: B256,
        lanes: &[Wanted],
        mut instead: impl FnMut(&Wanted, &HireError) -> Option<Wanted>,
    ) -> Result<Vec<(Wanted, Offer, Bytes)>, HireError> {
        let ask = |place: usize, wanted: Wanted| async move { (place, wanted, self.ask_offer(terms, wanted).await) };
        let mut asked: FuturesUnordered<_> =
            lanes.iter().enumerate().map(|(place, wanted)| ask(place, *wanted)).collect();
        let mut offers = BTreeMap::new();
        while let Some((place, wanted, answer)) = asked.next().await {
            match answer {
                Ok((offer, signature)) => drop(offers.insert(place, (wanted, offer, signature))),
                Err(error) => match instead(&wanted, &error) {
                    Some(other) => asked.push(ask(place, other)),
                    None => return Err(error),
                },
            }
        }
        Ok(offers.into_values().collect())
    }

    async fn ask_offer(&self, terms: B256, wanted: Wanted) -> Result<(Offer, Bytes), HireError> {
        let Wanted { lane, worker, .. } = wanted;
        let malformed = |source| HireError::Malformed { worker, source };
        let question = encode("request", &Request::Quote(lane)).map_err(malformed)?;
        let begun = self.ports.clock.now();
        loop {
            let waited = self.ports.clock.now().saturating_sub(begun);
            let late = waited >= OFFER.as_secs();
            let reason = match self.ports.net.request(worker, Protocol::Rpc, question.clone()).await {
                Ok(answer) => match decode("response", &answer).map_err(malformed)? {
                    Response::Offer { offer, signature } => return self.check_offer(terms, wanted, offer, signature),
                    // It may not have confirmed the job yet, or not have found us yet.
                    Response::Declined(reason) => reason,
                    Response::Refused(reason) => return Err(HireError::Declined { worker, lane, reason }),
                    other => format!("answers {other:?}"),
                },
                Err(error) if waited >= ANSWER.as_secs() => return Err(error.into()),
                Err(error) => error.to_string(),
            };
            if late {
                return Err(HireError::Declined { worker, lane, reason });
            }
            tracing::debug!(%worker, %lane, %reason, "no offer yet");
            self.ports.clock.sleep(PAUSE).await;
        }
    }

    fn check_offer(
        &self,
        terms: B256,
        Wanted { lane, worker, limit }: Wanted,
        offer: Offer,
        signature: Vec<u8>,
    ) -> Result<(Offer, Bytes), HireError> {
        let named = (offer.job, offer.terms, offer.stage, offer.replica, offer.worker);
        if named != (lane.job.0, terms, lane.stage, lane.replica, worker) {
            return Err(HireError::Mismatch { worker, lane, offer: Box::new(offer) });
        }
        if offer.pricePerInterval > limit {
            return Err(HireError::Price { worker, lane, limit, asked: offer.pricePerInterval });
        }
        verify_signer(&signature, self.ports.contracts.offer(&offer), worker)
            .map_err(|source| HireError::Signature { worker, source })?;
        Ok((offer, signature.into()))
    }

    /// Waits until all workers of an accepted job are ready to run it.
    ///
    /// # Errors
    /// [`HireError`] if one does not become ready in time.
    pub async fn wait_until_ready(&self, job: JobId, lanes: &[Wanted]) -> Result<(), HireError> {
        let ready = lanes.iter().map(|&Wanted { lane, worker, .. }| async move {
            let malformed = |source| HireError::Malformed { worker, source };
            let question = encode("request", &Request::Ready(job)).map_err(malformed)?;
            let deadline = self.ports.clock.now().saturating_add(OFFER.as_secs());
            loop {
                let reason = match self.ports.net.request(worker, Protocol::Rpc, question.clone()).await {
                    Ok(answer) => match decode("response", &answer).map_err(malformed)? {
                        Response::Ready(true) => return Ok(()),
                        other => format!("answers {other:?}"),
                    },
                    Err(error) => error.to_string(),
                };
                if self.ports.clock.now() >= deadline {
                    return Err(HireError::Declined { worker, lane, reason });
                }
                self.ports.clock.sleep(PAUSE).await;
            }
        });
        futures::future::try_join_all(ready).await.map(|_| ())
    }

    /// Moves a job towards settlement as far as it goes now: finalises claims whose window is over, of whatever
    /// lane, and settles it once none is pending. No worker can hold the user's escrow back by leaving. Whether the
    /// job is settled.
    ///
    /// # Errors
    /// [`ChainError`] when the chain fails; what is refused for now is tried at the next call.
    pub async fn wind_up(&self, job: JobId) -> Result<bool, ChainError> {
        let Some(view) = self.ports.chain.job(job).await? else { return Ok(false) };
        if view.state == JobState::Settled {
            return Ok(true);
        }
        if view.kind == JobKind::Serving {
            // Its receipts are on no record: the contract knows when the windows of its end and of what it redeemed
            // last are over (rule P-20).
            let closing = view.state == JobState::Closing;
            return if closing { attempt(self.ports.chain.send(Call::Settle { job }).await) } else { Ok(false) };
        }
        let now = self.ports.chain.head().await?.timestamp;
        self.end_demands(job, now).await?;
        let mut pending = false;
        let mut finished = true;
        for lane in (0..view.replicas).flat_map(|replica| (0..view.stages).map(move |stage| (stage, replica))) {
            let lane = Lane { job, stage: lane.0, replica: lane.1 };
            let state = self.ports.chain.lane(lane).await?;
            let open = state.finalized..state.void_from.unwrap_or(view.intervals).max(state.finalized);
            let mut claims: Vec<(Claim, u64)> = claims_of(&self.events.borrow(), lane, open).collect();
            pending |= !claims.is_empty();
            // Who did not seal in time makes no more claims, and nobody waits for it.
            finished &=
                state.finalized >= view.intervals || (view.replicas > 1 && self.ports.chain.is_too_late(lane).await?);
            claims.truncate(BATCH);
            let mut ripe = 0;
            for (_, at) in &claims {
                // No attestation is at hand here that somebody else has the states: two windows, then (rule P-34).
                if at.saturating_add(view.challenge_window.saturating_mul(2)).saturating_add(GRACE) > now {
                    break;
                }
                ripe += 1;
            }
            claims.truncate(ripe);
            if !claims.is_empty() {
                attempt(self.ports.chain.send(Call::Finalize { claims, holder: Holder::default() }).await)?;
            }
        }
        if !pending && (finished || view.state == JobState::Closing) {
            return attempt(self.ports.chain.send(Call::Settle { job }).await);
        }
        Ok(false)
    }
}

/// Confirmed claims of a lane, each in the version that was confirmed last, in order.
pub(crate) fn claims_of(
    events: &[EventAt],
    lane: Lane,
    intervals: std::ops::Range<u32>,
) -> impl Iterator<Item = (Claim, u64)> + use<> {
    let mut claims = BTreeMap::new();
    for at in events {
        if let Event::ClaimCommitted { claim, committed_at, .. } = &at.event
            && claim.lane() == lane
            && intervals.contains(&claim.interval)
        {
            claims.insert(claim.interval, (claim.clone(), *committed_at));
        }
    }
    claims.into_values()
}

/// Whether a call was carried out; a refusal passes with time.
pub(crate) fn attempt(result: Result<tensorlink_node::ports::chain::Receipt, ChainError>) -> Result<bool, ChainError> {
    match result {
        Ok(_) => Ok(true),
        Err(ChainError::Reverted { name, arguments }) => {
            tracing::debug!(%name, %arguments, "not yet");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
