//! Neighbours that have claimed an interval and keep from us what they sent in it (rule P-36): a part of it is demanded
//! on chain.
//!
//! Once about a neighbour in a job, and never again of a worker that showed what it does not send: it would only be
//! paid for that.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tensorlink_model::CacheEngine;
use tensorlink_node::custody::holders;
use tensorlink_node::names;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Call, ChainError, CustodyMove, Owner};
use tensorlink_node::shard::{ShardError, ShardSource};
use tensorlink_proof::commit::ProgramCommitment;
use tensorlink_proof::commit::program::ProgramTooLarge;
use tensorlink_proof::custody::sent_over;
use tensorlink_types::abi::{Claim, Demand, Part};
use tensorlink_types::{Address, JobId, Lane, U256};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::awaited::{Awaited, Side};
use crate::record::LaneLog;
use crate::role::{BACK_OFF, Worker};

/// A neighbour is waited for in vain for this part of a window: what is left of it is enough for the demand.
const PATIENCE: u64 = 4;
/// And this long at most, seconds.
const MOST_PATIENCE: u64 = 1800;
/// Claims of a neighbour that are remembered. It has made none that counts before we have what we need for the first
/// of them.
const CLAIMS: usize = 16;

/// Why nothing is demanded yet.
#[derive(Debug, Error)]
enum Undemanded {
    #[error("{0:?} is not a CID")]
    Manifest(String),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error(transparent)]
    Program(#[from] ProgramTooLarge),
    #[error("the bounty would not make up for the bond, if it shows it")]
    Unworthy,
    #[error("{0} has shown on chain before what it did not send, and was paid for it")]
    Shown(Address),
}

/// A neighbour's claim.
#[derive(Clone, PartialEq, Debug)]
struct Claimed {
    claim: Claim,
    committed_at: u64,
    /// When something can be done about it, seconds by our clock.
    from: u64,
}

#[derive(Debug, Default)]
struct Known {
    claims: HashMap<Lane, BTreeMap<u32, Claimed>>,
    /// Of whom we have demanded something.
    asked: HashSet<Lane>,
    /// The same by demand.
    demands: HashMap<U256, Address>,
    /// Who has shown what we asked for, in whatever job. Each of them has cost us a bond: there are not many.
    shown: HashSet<Address>,
}

/// What neighbours have claimed, and what came of our demands: folded from confirmed events, and so the same after
/// a restart.
#[derive(Debug, Default)]
pub(crate) struct Withheld(Mutex<Known>);

impl Withheld {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a neighbour's claim; `next` is the first interval that our lane has not finished, `now` in seconds.
    pub(crate) fn claimed(&self, claim: &Claim, committed_at: u64, (next, now): (u32, u64)) {
        let mut known = self.known();
        let claims = known.claims.entry(claim.lane()).or_default();
        claims.retain(|interval, _| *interval >= next);
        if claim.interval >= next && (claims.len() < CLAIMS || claims.contains_key(&claim.interval)) {
            claims.insert(claim.interval, Claimed { claim: claim.clone(), committed_at, from: now });
        }
    }

    /// Takes in a demand.
    pub(crate) fn demanded(&self, id: U256, demand: &Demand, own: Address) {
        if demand.demander == own && sent_over(demand).is_some() {
            let mut known = self.known();
            known.asked.insert(Lane { job: JobId(demand.job), stage: demand.stage, replica: demand.replica });
            known.demands.insert(id, demand.holder);
        }
    }

    /// Takes in the end of a demand.
    pub(crate) fn ended(&self, id: U256, shown: bool) {
        let mut known = self.known();
        if let Some(holder) = known.demands.remove(&id)
            && shown
        {
            known.shown.insert(holder);
        }
    }

    /// A job is over.
    pub(crate) fn forget(&self, job: JobId) {
        let mut known = self.known();
        known.claims.retain(|lane, _| lane.job != job);
        known.asked.retain(|lane| lane.job != job);
    }

    /// A neighbour's claim for an interval about which something is to be demanded if it goes on keeping it from us.
    fn open(&self, lane: Lane, interval: u32) -> Option<Claimed> {
        let known = self.known();
        let claimed = known.claims.get(&lane)?.get(&interval)?;
        (!known.asked.contains(&lane)).then(|| claimed.clone())
    }

    fn asked(&self, lane: Lane) {
        self.known().asked.insert(lane);
    }

    fn has_shown(&self, worker: Address) -> bool {
        self.known().shown.contains(&worker)
    }

    fn put_off(&self, claim: &Claim, from: u64) {
        let mut known = self.known();
        if let Some(claimed) = known.claims.get_mut(&claim.lane()).and_then(|claims| claims.get_mut(&claim.interval)) {
            claimed.from = from;
        }
    }
}

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Takes in a claim that may be of a neighbour of ours.
    pub(crate) fn claimed_beside(&self, claim: &Claim, committed_at: u64) {
        let lane = claim.lane();
        let neighbours = self.lanes_of(lane.job).into_iter();
        let beside = |own: &Lane| Side::BOTH.iter().any(|side| side.lane(*own, u16::MAX) == Some(lane));
        if let Some(log) = neighbours.filter(beside).find_map(|own| self.log_of(own)) {
            self.withheld.claimed(claim, committed_at, (log.get().next, self.context.ports.clock.now()));
        }
    }

    /// Demands what a neighbour keeps from a lane, until the lane has all of it or is stopped.
    pub(crate) async fn demand_what_is_owed(
        &self,
        log: &LaneLog,
        job: &JobView,
        awaited: &Awaited,
        stop: &CancellationToken,
    ) {
        let own = log.get().lane;
        let patience = (job.challenge_window / PATIENCE).clamp(1, MOST_PATIENCE);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.context.ports.clock.sleep(BACK_OFF) => {}
            }
            let record = log.get();
            if record.closing || record.next >= job.intervals {
                return;
            }
            for (side, lane) in Side::BOTH.into_iter().filter_map(|side| Some((side, side.lane(own, job.stages)?))) {
                let Some(claimed) = self.withheld.open(lane, record.next) else { continue };
                let now = self.context.ports.clock.now();
                let in_vain = awaited.in_vain(side, Instant::now());
                if in_vain < Duration::from_secs(patience) || now < claimed.from.saturating_add(patience) {
                    continue;
                }
                match self.demand_sent(log, job, &claimed, (side, awaited)).await {
                    Ok(demand) => {
                        self.withheld.asked(lane);
                        tracing::warn!(%own, from = %lane, record.next, demand, "what a neighbour keeps from us is demanded on chain");
                    }
                    Err(error @ (Undemanded::Unworthy | Undemanded::Shown(_))) => {
                        self.withheld.asked(lane);
                        tracing::warn!(%own, from = %lane, record.next, %error, "a neighbour keeps something from us, and nothing is demanded");
                    }
                    Err(error) => {
                        self.withheld.put_off(&claimed.claim, now);
                        tracing::warn!(%own, from = %lane, record.next, %error, "a neighbour keeps something from us, and it cannot be demanded yet");
                    }
                }
            }
        }
    }

    /// Demands one leaf, at random, of the first tensor that has not come; of any, if only the attestation of them
    /// is missing.
    async fn demand_sent(
        &self,
        log: &LaneLog,
        job: &JobView,
        claimed: &Claimed,
        (side, awaited): (Side, &Awaited),
    ) -> Result<String, Undemanded> {
        let ports = &self.context.ports;
        let (claim, lane, record) = (claimed.claim.clone(), claimed.claim.lane(), log.get());
        let (worker, _) = ports.chain.assignment(lane).await?;
        if self.withheld.has_shown(worker) {
            return Err(Undemanded::Shown(worker));
        }
        // As for challenges: else who shows what it keeps could live on it.
        let terms = ports.chain.parameters().await?;
        if terms.bounty(job.worker_stake) < U256::from(terms.dispute_bond) {
            return Err(Undemanded::Unworthy);
        }
        let manifest = record.manifest.parse().map_err(|_| Undemanded::Manifest(record.manifest))?;
        let holders = holders(ports.chain.as_ref(), job, lane).await?;
        let source = ShardSource { job: lane.job, stage: lane.stage, manifest, holders };
        let root = ports.chain.program_root(lane.job, lane.stage).await?;
        let program = names::program(ports.store.of(Owner::Nobody).as_ref(), &source, (0, root)).await?;
        let program = ProgramCommitment::new(&program)?.header;

        let steps = job.steps_per_interval;
        let first_step = claim.interval.saturating_mul(steps);
        let entries = steps.saturating_mul(program.microBatches).max(1);
        let missing = awaited.missing(side, (first_step, steps), program.microBatches);
        let tensor = missing.unwrap_or_else(|| rand::random_range(0..entries));
        let part = Part { tensor, firstLeaf: rand::random(), leaves: 1 };
        let (committed_at, to_next) = (claimed.committed_at, side == Side::Previous);
        let call = CustodyMove::DemandSent { claim, committed_at, program, to_next, part };
        let receipt = ports.chain.attempt(Call::Custody(Box::new(call))).await?;
        Ok(receipt.transaction.to_string())
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::B256;
    use tensorlink_types::abi::DemandKind;

    use super::*;

    const LANE: Lane = Lane { job: JobId(3), stage: 1, replica: 0 };
    const OWN: Address = Address::repeat_byte(1);
    const HOLDER: Address = Address::repeat_byte(2);

    fn claim(interval: u32) -> Claim {
        Claim { job: 3, stage: 1, replica: 0, interval, parentState: B256::ZERO, newState: B256::ZERO, io: B256::ZERO }
    }

    fn demand(interval: u32, kind: DemandKind, demander: Address) -> Demand {
        let claim = claim(interval);
        let claim_id = B256::with_last_byte(claim.interval as u8);
        Demand { kind: kind as u8, claimId: claim_id, job: 3, stage: 1, demander, holder: HOLDER, ..Demand::default() }
    }

    fn is_open(withheld: &Withheld, interval: u32) -> bool {
        withheld.open(LANE, interval).is_some()
    }

    #[test]
    fn a_neighbour_is_asked_once_in_a_job() {
        let withheld = Withheld::default();
        withheld.claimed(&claim(4), 90, (5, 100));
        assert!(!is_open(&withheld, 4), "we have finished it");
        withheld.claimed(&claim(5), 90, (5, 100));
        let open = withheld.open(LANE, 5).unwrap();
        assert_eq!((open.committed_at, open.from, is_open(&withheld, 6)), (90, 100, false));
        withheld.put_off(&claim(5), 130);
        assert_eq!(withheld.open(LANE, 5).unwrap().from, 130);

        // By others, or for another thing.
        withheld.demanded(U256::from(1), &demand(5, DemandKind::SentToNext, Address::ZERO), OWN);
        withheld.demanded(U256::from(2), &demand(5, DemandKind::State, OWN), OWN);
        assert!(is_open(&withheld, 5));
        withheld.demanded(U256::from(3), &demand(5, DemandKind::SentToNext, OWN), OWN);
        withheld.claimed(&claim(6), 95, (5, 110));
        assert!(!is_open(&withheld, 5) && !is_open(&withheld, 6), "nor while the first demand is open");
        withheld.forget(LANE.job);
        withheld.claimed(&claim(6), 95, (6, 110));
        assert!(is_open(&withheld, 6));
        withheld.asked(LANE);
        assert!(!is_open(&withheld, 6), "before its event is confirmed, too");
    }

    #[test]
    fn who_shows_what_it_does_not_send_is_not_paid_for_it_twice() {
        let withheld = Withheld::default();
        withheld.demanded(U256::from(3), &demand(5, DemandKind::SentToPrevious, OWN), OWN);
        withheld.ended(U256::from(4), true);
        assert!(!withheld.has_shown(HOLDER), "that was another's demand");
        withheld.ended(U256::from(3), true);
        withheld.forget(LANE.job);
        assert!(withheld.has_shown(HOLDER), "in no job any more");
        withheld.demanded(U256::from(5), &demand(5, DemandKind::SentToPrevious, OWN), OWN);
        withheld.ended(U256::from(5), false);
        assert!(!withheld.has_shown(OWN));
    }

    #[test]
    fn no_more_claims_are_remembered_than_there_is_a_use_for() {
        let withheld = Withheld::default();
        for interval in 0..100 {
            withheld.claimed(&claim(interval), 1, (0, 1));
        }
        assert!(is_open(&withheld, 0) && is_open(&withheld, 15) && !is_open(&withheld, 16));
        withheld.claimed(&claim(20), 1, (18, 1));
        assert!(!is_open(&withheld, 0) && is_open(&withheld, 20));
    }
}
