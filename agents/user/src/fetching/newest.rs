//! From where a training that lost a worker can go on: how far it is claimed, and which states somebody keeps.

use std::collections::{BTreeSet, HashSet};

use tensorlink_node::custody::holders;
use tensorlink_node::finality::Finality;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{ChainError, EventAt};
use tensorlink_types::{Address, JobId, Lane};

use super::Fetching;
use crate::result::{Claims, ResultError};
use crate::told::claims_of;

/// The newest intervals, whose states their own workers have; or, where copying takes long, their keepers.
const RECENT: u32 = 48;
/// Intervals whose states are asked for.
const ASKED: usize = 64;

impl Fetching {
    /// The replica that has come furthest, and after how many intervals each of its stages has made a claim that can be
    /// gone on from. Of a convicted lane those are the final ones alone: who lied once may have lied before.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn furthest(&self, job: &JobView) -> Result<(u16, u32), ChainError> {
        let mut furthest = (0, 0);
        for replica in 0..job.replicas {
            let mut everywhere = job.intervals;
            for stage in 0..job.stages {
                let lane = Lane { job: job.id, stage, replica };
                let view = self.ports.chain.lane(lane).await?;
                let claimed = || claims_of(&self.events.borrow(), lane, 0..job.intervals).last();
                let of_stage = match view.void_from {
                    Some(_) => view.finalized,
                    None => claimed().map_or(0, |(claim, _)| claim.interval.saturating_add(1)),
                };
                everywhere = everywhere.min(of_stage);
            }
            if everywhere > furthest.1 {
                furthest = (replica, everywhere);
            }
        }
        Ok(furthest)
    }

    /// The most intervals of a replica, of so many, after which somebody says that it has each stage's state; none if
    /// nobody has any, and 0 if there are none.
    ///
    /// # Errors
    /// [`ResultError`] when the chain fails.
    pub(crate) async fn newest_kept(
        &self,
        job: &JobView,
        (replica, most): (u16, u32),
    ) -> Result<Option<u32>, ResultError> {
        if most == 0 {
            return Ok(Some(0));
        }
        let mut candidates: BTreeSet<u32> = (most.saturating_sub(RECENT)..=most).collect();
        candidates.extend(kept_by_others(&self.events.borrow(), job.id));
        candidates.insert(self.final_everywhere(job).await?);
        // Who cannot be reached is asked once.
        let mut gone = HashSet::new();
        for intervals in candidates.into_iter().rev().filter(|intervals| (1..=most).contains(intervals)).take(ASKED) {
            let mut everywhere = true;
            for stage in 0..job.stages {
                let lane = Lane { job: job.id, stage, replica };
                everywhere = everywhere && self.is_kept(job, (lane, intervals - 1), &mut gone).await?;
            }
            if everywhere {
                return Ok(Some(intervals));
            }
        }
        Ok(None)
    }

    /// Whether somebody says that it has the state that a lane's claim of an interval ends in.
    async fn is_kept(
        &self,
        job: &JobView,
        (lane, interval): (Lane, u32),
        gone: &mut HashSet<Address>,
    ) -> Result<bool, ResultError> {
        let Some(claim) = self.claim_of(lane, interval, Claims::Of(lane.replica)).await? else { return Ok(false) };
        let id = self.ports.contracts.claim_id(&claim);
        for holder in holders(self.ports.chain.as_ref(), job, lane).await? {
            if gone.contains(&holder) {
                continue;
            }
            match self.file_of(holder, id).await {
                Ok(_) => return Ok(true),
                Err(ResultError::Net(_)) => drop(gone.insert(holder)),
                Err(_) => {}
            }
        }
        Ok(false)
    }
}

/// Numbers of intervals after which all stages of a job were to have their states kept by others.
fn kept_by_others(events: &[EventAt], job: JobId) -> Vec<u32> {
    let (finality, mut kept) = (Finality::default(), Vec::new());
    for at in events {
        finality.apply(&at.event);
        let newest = finality.kept_by_others(job).map(|interval| interval.saturating_add(1));
        if newest.is_some() && newest != kept.last().copied() {
            kept.extend(newest);
        }
    }
    kept
}
