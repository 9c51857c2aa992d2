//! Neighbours that have claimed an interval and keep from us what they sent in it (rule P-36): a part of it is demanded
//! on chain.
//!
//! Once about a neighbour in a job, and never again of a worker that showed what it does not send: it would only be
//! paid for that.

mod ledger;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tensorlink_node::custody::holders;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Call, ChainError, CustodyMove, Event, Owner};
use tensorlink_node::shard::{ShardError, ShardSource};
use tensorlink_node::wire::frame::SignedLog;
use tensorlink_node::{Ports, names};
use tensorlink_proof::commit::ProgramCommitment;
use tensorlink_proof::commit::program::ProgramTooLarge;
use tensorlink_types::abi::{Claim, Part};
use tensorlink_types::{Address, JobId, Lane, U256};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use self::ledger::{Claimed, Ledger};
use super::awaited::{Awaited, Side};
use crate::context::BACK_OFF;
use crate::record::LaneLog;
use crate::state::Lanes;

/// A neighbour is waited for in vain for this part of a window: what is left of it is enough for the demand.
const PATIENCE: u64 = 4;
/// And this long at most, seconds.
const MOST_PATIENCE: u64 = 1800;

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

/// What neighbours keep from our lanes.
pub(crate) struct Withheld {
    ports: Ports,
    lanes: Arc<Lanes>,
    ledger: Ledger,
    /// For whom each lane waits, and what is shown to it on chain.
    awaited: Mutex<HashMap<Lane, Arc<Awaited>>>,
}

impl Withheld {
    pub(crate) fn new(ports: Ports, lanes: Arc<Lanes>) -> Self {
        Self { ports, lanes, ledger: Ledger::default(), awaited: Mutex::default() }
    }

    fn all_awaited(&self) -> MutexGuard<'_, HashMap<Lane, Arc<Awaited>>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For whom a lane of ours waits.
    pub(crate) fn awaited(&self, lane: Lane) -> Arc<Awaited> {
        self.all_awaited().entry(lane).or_default().clone()
    }

    /// A neighbour's attestation that is shown on chain is as good as one that it sends.
    pub(crate) fn attested(&self, attestation: SignedLog) {
        let log = &attestation.log;
        let lane = Lane { job: JobId(log.job), stage: log.toStage, replica: log.replica };
        if self.lanes.contains(lane) {
            tracing::info!(%lane, interval = log.interval, "a neighbour's attestation of what it sent is on chain");
            self.awaited(lane).shown(attestation);
        }
    }

    /// A lane's record goes.
    pub(crate) fn forget(&self, lane: Lane) {
        self.all_awaited().remove(&lane);
    }

    /// Takes in a confirmed event: what neighbours claim, and what is demanded of them and shown.
    pub(crate) fn apply(&self, event: &Event) {
        match event {
            Event::ClaimCommitted { claim, committed_at, .. } => self.claimed(claim, *committed_at),
            Event::Demanded { id, demand } if self.lanes.has_any(JobId(demand.job)) => {
                self.ledger.demanded(*id, demand, self.ports.identity.address());
            }
            Event::DemandEnded { id, shown, .. } => self.ledger.ended(*id, shown.is_some()),
            Event::JobSettled { job, .. } => self.ledger.forget(*job),
            _ => {}
        }
    }

    /// Takes in a claim that may be of a neighbour of ours.
    fn claimed(&self, claim: &Claim, committed_at: u64) {
        let lane = claim.lane();
        let neighbours = self.lanes.of(lane.job).into_iter();
        let beside = |own: &Lane| Side::BOTH.iter().any(|side| side.lane(*own, u16::MAX) == Some(lane));
        if let Some(log) = neighbours.filter(beside).find_map(|own| self.lanes.log(own)) {
            self.ledger.claimed(claim, committed_at, (log.get().next, self.ports.clock.now()));
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
                () = self.ports.clock.sleep(BACK_OFF) => {}
            }
            let record = log.get();
            if record.closing || record.next >= job.intervals {
                return;
            }
            for (side, lane) in Side::BOTH.into_iter().filter_map(|side| Some((side, side.lane(own, job.stages)?))) {
                let Some(claimed) = self.ledger.open(lane, record.next) else { continue };
                let now = self.ports.clock.now();
                let in_vain = awaited.in_vain(side, Instant::now());
                if in_vain < Duration::from_secs(patience) || now < claimed.from.saturating_add(patience) {
                    continue;
                }
                match self.demand_sent(log, job, &claimed, (side, awaited)).await {
                    Ok(demand) => {
                        self.ledger.asked(lane);
                        tracing::warn!(%own, from = %lane, record.next, demand, "what a neighbour keeps from us is demanded on chain");
                    }
                    Err(error @ (Undemanded::Unworthy | Undemanded::Shown(_))) => {
                        self.ledger.asked(lane);
                        tracing::warn!(%own, from = %lane, record.next, %error, "a neighbour keeps something from us, and nothing is demanded");
                    }
                    Err(error) => {
                        self.ledger.put_off(&claimed.claim, now);
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
        let ports = &self.ports;
        let (claim, lane, record) = (claimed.claim.clone(), claimed.claim.lane(), log.get());
        let (worker, _) = ports.chain.assignment(lane).await?;
        if self.ledger.has_shown(worker) {
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
