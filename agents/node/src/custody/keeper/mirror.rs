//! The newest state of each lane, at hand without a signature: a job that loses its worker goes on from there.

use std::time::Duration;

use tensorlink_types::Address;

use super::turns::Ended;
use super::{Asked, Holding, KeepError, Keeper};

/// To mirror states takes this part of the time.
pub const SPARED: u32 = 20;

/// How long a lane has to wait for the next of its states to be mirrored.
pub(super) fn wait_of(ended: &Ended<'_>) -> Duration {
    ended.took.saturating_mul(SPARED.saturating_sub(1))
}

impl Keeper {
    /// Fetches the state that a claim ends in from the claim's worker, who asks, to have it at hand until that of a
    /// newer claim of the lane is here; one that all stages have claimed stays until a newer one of those is. Nothing
    /// is attested.
    ///
    /// # Errors
    /// [`KeepError`].
    pub async fn mirror(&self, asked: &Asked, worker: Address) -> Result<(), KeepError> {
        let id = self.ports.contracts.claim_id(&asked.claim);
        let finalized = self.check(asked, worker).await?;
        let (lane, number) = (asked.claim.lane(), asked.claim.interval);
        if !self.is_here(id).await? {
            // Or a worker could have the same states fetched again and again.
            if self.holdings.all().iter().any(|held| held.claim.lane() == lane && held.claim.interval > number) {
                return Err(KeepError::Older);
            }
            self.take(asked, (worker, finalized), &self.to_mirror).await?;
        }
        let everywhere = self.finality.claimed_everywhere(lane.job);
        let of_lane = |held: &Holding| held.mirrored && held.claim.lane() == lane;
        // Its job would go on from the newest that all stages have claimed. The next after that will be it soon,
        // however many newer ones come meanwhile.
        let (usable, next) = {
            let all = self.holdings.all();
            let mirrored = || all.iter().filter(|held| of_lane(held)).map(|held| held.claim.interval);
            (mirrored().filter(|one| *one < everywhere).max(), mirrored().filter(|one| *one >= everywhere).min())
        };
        let is_old = |held: &Holding| {
            let interval = Some(held.claim.interval);
            of_lane(held) && interval < Some(number) && interval != usable && interval != next
        };
        Ok(self.drop_where(is_old).await?)
    }
}
