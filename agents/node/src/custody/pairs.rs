//! Who keeps whose states.

use tensorlink_types::{Address, Lane};

use crate::ports::chain::JobView;
use crate::ports::{Chain, ChainError};

/// The lane whose worker keeps what a lane computes: the one of the next stage, after the last that of the first; of a
/// job of one stage, the next replica. None in a job of one lane: there the user keeps it.
pub const fn keeper_of(lane: Lane, stages: u16, replicas: u16) -> Option<Lane> {
    if stages > 1 {
        let next = lane.stage.saturating_add(1);
        Some(Lane { stage: if next < stages { next } else { 0 }, ..lane })
    } else if replicas > 1 {
        let next = lane.replica.saturating_add(1);
        Some(Lane { replica: if next < replicas { next } else { 0 }, ..lane })
    } else {
        None
    }
}

/// The lane for which a lane's worker is the keeper: the reverse of [`keeper_of`].
pub const fn ward_of(lane: Lane, stages: u16, replicas: u16) -> Option<Lane> {
    if stages > 1 {
        let of = if lane.stage == 0 { stages } else { lane.stage };
        Some(Lane { stage: of.saturating_sub(1), ..lane })
    } else if replicas > 1 {
        let of = if lane.replica == 0 { replicas } else { lane.replica };
        Some(Lane { replica: of.saturating_sub(1), ..lane })
    } else {
        None
    }
}

/// Whoever should have a lane's files and states: its worker, its keeper, the job's user.
///
/// # Errors
/// [`ChainError`].
pub async fn holders(chain: &dyn Chain, job: &JobView, lane: Lane) -> Result<Vec<Address>, ChainError> {
    let mut holders = vec![chain.assignment(lane).await?.0];
    if let Some(keeper) = keeper_of(lane, job.stages, job.replicas) {
        holders.push(chain.assignment(keeper).await?.0);
    }
    holders.push(job.user);
    Ok(holders)
}

#[cfg(test)]
mod tests {
    use tensorlink_types::JobId;

    use super::*;

    #[test]
    fn every_lane_of_several_has_one_keeper_and_is_the_keeper_of_one() {
        for (stages, replicas) in [(2, 1), (3, 1), (1, 2), (1, 3), (4, 2)] {
            for (stage, replica) in (0..stages).flat_map(|stage| (0..replicas).map(move |replica| (stage, replica))) {
                let lane = Lane { job: JobId(1), stage, replica };
                let keeper = keeper_of(lane, stages, replicas).unwrap();
                assert_ne!(keeper, lane);
                assert!(keeper.stage < stages && keeper.replica < replicas);
                assert_eq!(ward_of(keeper, stages, replicas), Some(lane));
            }
        }
        let only = Lane { job: JobId(1), stage: 0, replica: 0 };
        assert_eq!((keeper_of(only, 1, 1), ward_of(only, 1, 1)), (None, None));
    }
}
