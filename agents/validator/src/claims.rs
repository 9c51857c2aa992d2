//! Claims on record, as the chain's events tell them: what a claim's neighbours claimed is looked up here.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use tensorlink_node::ports::Event;
use tensorlink_types::abi::Claim;
use tensorlink_types::{ClaimId, Lane};

use crate::target::{Standing, Target};

/// Final claims kept of a lane: workers forget older ones, too.
const KEPT: u32 = 64;
/// Most claims kept of a lane. More that are not final nobody has: they cost their worker as many transactions.
const MOST: usize = 1 << 16;

/// A claim on record.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct OnRecord {
    /// Its id.
    pub(crate) id: ClaimId,
    /// The claim.
    pub(crate) claim: Claim,
    /// Timestamp of its block.
    pub(crate) committed_at: u64,
}

/// The claims of every lane whose job goes on: all that are not final, and the last that are.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    lanes: Mutex<HashMap<Lane, BTreeMap<u32, OnRecord>>>,
}

impl Claims {
    /// Takes in an event.
    pub(crate) fn apply(&self, event: &Event) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::ClaimCommitted { id, claim, committed_at } => {
                let of_lane = lanes.entry(claim.lane()).or_default();
                let on_record = OnRecord { id: *id, claim: claim.clone(), committed_at: *committed_at };
                of_lane.insert(claim.interval, on_record);
                if of_lane.len() > MOST {
                    of_lane.pop_first();
                }
            }
            Event::ClaimsFinalized { lane, to, .. } => {
                if let Some(of_lane) = lanes.get_mut(lane) {
                    *of_lane = of_lane.split_off(&to.saturating_sub(KEPT));
                }
            }
            Event::JobSettled { job, .. } => lanes.retain(|lane, _| lane.job != *job),
            _ => {}
        }
    }

    /// A claim by its id.
    pub(crate) fn find(&self, id: ClaimId) -> Option<OnRecord> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.values().flat_map(BTreeMap::values).find(|found| found.id == id).cloned()
    }

    /// The claim of a lane for an interval.
    pub(crate) fn get(&self, lane: Lane, interval: u32) -> Option<OnRecord> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.get(&lane)?.get(&interval).cloned()
    }

    /// The claim of a lane of a target's job for an interval, to be looked into as well, if it is confirmed.
    pub(crate) fn beside(&self, target: &Target, lane: Lane, interval: u32) -> Option<Target> {
        let OnRecord { id, claim, committed_at } = self.get(lane, interval)?;
        let standing = Standing::Committed { at: committed_at };
        Some(Target { id, claim, standing, manifest: target.manifest, listed: None })
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::{B256, JobId, U256};

    use super::*;

    fn committed(job: u64, stage: u16, interval: u32) -> Event {
        let claim =
            Claim { job, stage, replica: 0, interval, parentState: B256::ZERO, newState: B256::ZERO, io: B256::ZERO };
        Event::ClaimCommitted { id: ClaimId(B256::repeat_byte(interval as u8)), claim, committed_at: 7 }
    }

    fn lane(job: u64, stage: u16) -> Lane {
        Lane { job: JobId(job), stage, replica: 0 }
    }

    #[test]
    fn open_claims_of_running_jobs_are_kept_and_the_last_final_ones() {
        let claims = Claims::default();
        for interval in 0..=KEPT + 1 {
            claims.apply(&committed(1, 0, interval));
        }
        assert!(claims.get(lane(1, 0), 0).is_some(), "however many there are");
        claims.apply(&Event::ClaimsFinalized { lane: lane(1, 0), from: 0, to: KEPT + 1 });
        claims.apply(&committed(2, 3, 5));
        assert_eq!(claims.get(lane(1, 0), 0), None, "long final");
        assert_eq!(claims.get(lane(1, 0), 1).map(|found| found.claim.interval), Some(1));
        assert_eq!(claims.get(lane(1, 1), 1), None);
        assert_eq!(claims.get(lane(2, 3), 5).map(|found| found.committed_at), Some(7));
        claims.apply(&Event::JobSettled { job: JobId(2), refund: U256::ZERO });
        assert_eq!(claims.get(lane(2, 3), 5), None);
        assert!(claims.get(lane(1, 0), 1).is_some());
    }
}
