//! Claims of jobs with several replicas: sealed as soon as they are computed, revealed when no other replica could copy
//! them any more (rules P-24 and P-25).
//!
//! The salt of a seal is not kept: it is drawn from the worker's own signature about the claim, which nobody else can
//! make and which comes out the same after a kill, on a restored disk, and when a reorganisation undoes the seal.

use std::collections::{BTreeMap, BTreeSet};

use tensorlink_node::Identity;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::ports::{Call, ChainError, Event};
use tensorlink_proof::commit::seal;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_types::{B256, ClaimId};

use super::claimant::{Claimant, ClaimsError, Failure, Made, commit};
use crate::record::{LaneLog, LaneRecord, Round};

/// What the contracts say about when to seal and reveal.
#[derive(Clone, Copy, Debug)]
struct Terms {
    /// Replicas of the job.
    replicas: u16,
    /// Until when the job takes seals, seconds.
    deadline: u64,
    /// Seconds that replicas wait for each other.
    window: u64,
}

/// A lane and who makes its claims.
pub(crate) struct Sealer<'a> {
    pub(crate) by: &'a Claimant,
    pub(crate) log: &'a LaneLog,
}

/// The secret that a claim of this key is sealed with.
///
/// # Errors
/// When the key cannot sign.
pub fn salt(identity: &Identity, claim: ClaimId) -> Result<B256, SignatureError> {
    identity.salt("tensorlink seal", claim)
}

/// Whether nobody can seal `interval` any more at time `now`, by confirmed events alone: a reorganisation that
/// undid another's seal would let it copy what we show.
fn may_reveal(record: &LaneRecord, interval: u32, terms: Terms, now: u64) -> bool {
    if record.closing || now > terms.deadline {
        return true;
    }
    let Some(round) = record.rounds.get(&interval) else { return false };
    if round.replicas.len() >= usize::from(terms.replicas) {
        return true;
    }
    let (all_have, since) = match interval.checked_sub(1) {
        None => (false, round.sealed_at),
        // Who did not seal the interval before cannot seal this one. Who did is known once one of them has
        // revealed it.
        Some(before) => match record.rounds.get(&before) {
            Some(Round { replicas, revealed_at: Some(at), .. }) => {
                (replicas.len() <= round.replicas.len(), round.sealed_at.max(*at))
            }
            _ => return false,
        },
    };
    all_have || since.saturating_add(terms.window) <= now
}

/// Takes in a confirmed event of the lane's job: what its replicas seal and reveal, and that the job is closing.
///
/// # Errors
/// When the disk fails.
pub fn told(log: &LaneLog, event: &Event) -> Result<(), JournalError> {
    let record = log.get();
    // Events are told again after a restart; what was forgotten stays so.
    let from = record.intervals.keys().next().copied().unwrap_or(record.next);
    match event {
        Event::ClaimSealed { lane, interval, sealed_at, .. }
            if (lane.job, lane.stage) == (record.lane.job, record.lane.stage) && *interval >= from =>
        {
            log.update(|record| {
                let fresh =
                    Round { sealed_at: *sealed_at, replicas: BTreeSet::new(), revealed_at: None, differ: false };
                record.rounds.entry(*interval).or_insert(fresh).replicas.insert(lane.replica);
            })
        }
        Event::ClaimCommitted { claim, committed_at, .. }
            if (claim.lane().job, claim.stage) == (record.lane.job, record.lane.stage) =>
        {
            log.update(|record| {
                if let Some(round) = record.rounds.get_mut(&claim.interval) {
                    round.revealed_at.get_or_insert(*committed_at);
                }
            })
        }
        Event::ReplicasDiffer { job, stage, interval, .. }
            if (*job, *stage) == (record.lane.job, record.lane.stage) =>
        {
            log.update(|record| {
                if let Some(round) = record.rounds.get_mut(interval) {
                    round.differ = true;
                }
            })
        }
        Event::JobClosing { job, .. } if *job == record.lane.job => log.update(|record| record.closing = true),
        _ => Ok(()),
    }
}

impl Sealer<'_> {
    /// Seals what is computed, and reveals what may be.
    pub(crate) async fn advance(&self, job: &JobView) -> Result<(), Failure> {
        let window = self.by.seal_window().await?;
        let terms = Terms { replicas: job.replicas, deadline: job.deadline, window };
        self.forget_undone().await?;
        if job.state == JobState::Running && self.by.chain.head().await?.timestamp <= job.deadline {
            while self.seal_next().await? {}
        }
        while self.reveal_next(terms).await? {}
        Ok(())
    }

    /// A reorganisation may have undone a seal whose receipt we saw. If the chain holds none for the first that is not
    /// confirmed, it and those after it are made again.
    async fn forget_undone(&self) -> Result<(), Failure> {
        let record = self.log.get();
        let confirmed = |rounds: &BTreeMap<u32, Round>, interval: &u32| {
            rounds.get(interval).is_some_and(|round| round.replicas.contains(&record.lane.replica))
        };
        let open = record.intervals.iter().find(|(n, interval)| interval.sealed && !confirmed(&record.rounds, n));
        let Some(first) = open.map(|(number, _)| *number) else { return Ok(()) };
        if self.by.chain.seal(record.lane, first).await? != B256::ZERO {
            return Ok(());
        }
        tracing::warn!(lane = %record.lane, interval = first, "a reorganisation undid the seal; it is made again");
        self.log.update(|record| {
            record.barred_from = None;
            for interval in record.intervals.range_mut(first..).map(|(_, interval)| interval) {
                interval.sealed = false;
            }
        })?;
        Ok(())
    }

    /// Seals the next claim; whether it did.
    async fn seal_next(&self) -> Result<bool, Failure> {
        let record = self.log.get();
        let open = record.intervals.iter().find(|(_, interval)| !interval.sealed && interval.committed_at.is_none());
        let Some((&interval, entry)) = open.filter(|(interval, _)| !record.is_barred(**interval)) else {
            return Ok(false);
        };
        let id = self.by.contracts.claim_id(&entry.claim);
        let own = seal(id, self.salt(id)?);
        let there = self.by.chain.seal(record.lane, interval).await?;
        if there == B256::ZERO {
            match self.by.chain.send(Call::Seal { lane: record.lane, interval, seal: own }).await {
                Ok(receipt) => tracing::debug!(lane = %record.lane, interval, gas = receipt.gas, "claim sealed"),
                Err(ChainError::Reverted { name, arguments }) => {
                    self.log.tell_refused("seal", interval, &name, &arguments);
                    if name == "SealingOver" {
                        self.bar(interval, "the other replicas did not wait for this claim")?;
                    }
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        } else if there != own {
            return Err(Failure::Final(ClaimsError::Foreign(interval)));
        }
        self.log.update(|record| {
            if let Some(entry) = record.intervals.get_mut(&interval) {
                entry.sealed = true;
            }
        })?;
        Ok(true)
    }

    /// Reveals the next claim; whether it did.
    async fn reveal_next(&self, terms: Terms) -> Result<bool, Failure> {
        let record = self.log.get();
        let Some((claim, previous)) = record.next_to_commit() else { return Ok(false) };
        let interval = claim.interval;
        let is_sealed = record.intervals.get(&interval).is_some_and(|entry| entry.sealed);
        if !is_sealed
            || record.is_barred(interval)
            || !may_reveal(&record, interval, terms, self.by.chain.head().await?.timestamp)
        {
            return Ok(false);
        }
        let (chain, salt) = (self.by.chain.as_ref(), self.salt(self.by.contracts.claim_id(&claim))?);
        let call = Call::Reveal { claim: claim.clone(), previous, salt };
        let made = commit(chain, self.log, call, &claim).await?;
        if matches!(&made, Made::Refused(name) if name == "DeadlinePassed") {
            self.bar(interval, "the job was closed too long ago")?;
        }
        Ok(matches!(made, Made::Done))
    }

    fn salt(&self, claim: ClaimId) -> Result<B256, Failure> {
        salt(&self.by.identity, claim).map_err(|error| Failure::Final(error.into()))
    }

    fn bar(&self, interval: u32, reason: &str) -> Result<(), JournalError> {
        tracing::error!(lane = %self.log.get().lane, interval, "no more claims from this one on: {reason}");
        self.log.update(|record| record.barred_from = Some(interval))
    }
}
