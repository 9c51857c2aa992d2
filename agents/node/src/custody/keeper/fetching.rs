//! Fetches states of others' claims, and checks that they are that.

use std::time::Duration;

use tensorlink_types::Address;
use tokio::time::timeout;

use super::turns::{Ended, Turns};
use super::{Asked, Holding, KeepError, Keeper};
use crate::blocking;
use crate::files::{self, FileError};
use crate::interval::state_root_of;
use crate::ports::chain::JobState;
use crate::ports::{Owner, StoreError};

/// Longest time for one: the asker waits no longer.
const FETCH: Duration = Duration::from_secs(110);
/// A lane whose state did not arrive waits for as long as the fetch took, and for twice as long after each further
/// failure, so many times.
const DOUBLED: u32 = 4;
/// After a wrong file it waits for so long at least.
const WRONG: Duration = Duration::from_secs(60);

/// How long a lane has to wait for the next of its states to be fetched.
pub(super) fn wait_of(ended: &Ended<'_>) -> Duration {
    let Err(error) = ended.result else { return Duration::ZERO };
    let is_wrong = match error {
        KeepError::OtherState | KeepError::File(_) => true,
        KeepError::Store(StoreError::Mismatch { from, .. }) => *from == ended.worker.to_string(),
        KeepError::Store(StoreError::TooLarge { .. } | StoreError::Unsupported(_)) => true,
        _ => false,
    };
    let wait = ended.took.saturating_mul(1 << ended.failures.min(DOUBLED));
    if is_wrong { wait.max(WRONG) } else { wait }
}

impl Keeper {
    /// Fetches a state that is not here, when it is its lane's turn, and notes it as mirrored.
    pub(super) async fn take(
        &self,
        asked: &Asked,
        (worker, finalized): (Address, u32),
        turns: &Turns,
    ) -> Result<(), KeepError> {
        let lane = asked.claim.lane();
        let job = self.ports.chain.job(lane.job).await?;
        let over = job.is_none_or(|job| job.state == JobState::Settled);
        if over || asked.claim.interval < finalized {
            return Err(KeepError::Final);
        }
        let turn = turns.begin(lane, worker)?;
        let taken = self.take_now(asked, worker).await;
        turn.end(&taken);
        taken
    }

    async fn take_now(&self, asked: &Asked, worker: Address) -> Result<(), KeepError> {
        timeout(FETCH, self.fetch(asked, worker)).await.unwrap_or(Err(KeepError::Late))?;
        let id = self.ports.contracts.claim_id(&asked.claim);
        let _pins = self.ports.pins.lock().await;
        // Another question about the claim may have been first, with another file of the same state: one is kept.
        if self.file_of(id).is_none() {
            // Nobody's until now, it may have made room for others.
            if !self.held(id).own(&asked.state).await? {
                return Err(KeepError::Busy);
            }
            let (state, manifest) = (asked.state.to_string(), asked.manifest.to_string());
            let holding = Holding { claim: asked.claim.clone(), state, manifest, over: false, mirrored: true };
            self.holdings.update(|holdings| holdings.push(holding))?;
        }
        Ok(())
    }

    /// Fetches a state, and checks that it is the claim's. Before that it is nobody's, or a worker could fill the disk
    /// with files that are not.
    async fn fetch(&self, asked: &Asked, worker: Address) -> Result<(), KeepError> {
        let program = self.programs.of(asked.claim.lane(), asked.manifest, worker).await?;
        let length = files::file_len(program.state.iter().map(|slot| &slot.ty));
        // The file, and its tensors.
        let needed = length.saturating_mul(2);
        let memory = self.memory.take(needed).ok_or_else(|| KeepError::Memory { needed, left: self.memory.left() })?;
        let store = self.ports.store.of(Owner::Nobody);
        let was_here = store.has(&asked.state).await?;
        let bytes = store.get(&asked.state, &[worker], length).await?;
        let root = blocking(move || {
            let _memory = memory;
            let tensors = files::split(&bytes, program.state.iter().map(|slot| &slot.ty))?;
            Ok::<_, FileError>(state_root_of(&tensors))
        });
        let root = root.await;
        if matches!(root, Ok(root) if root == asked.claim.newState) {
            return Ok(());
        }
        if !was_here {
            // Of no use, it takes no place, unless somebody here needs it.
            let _ = store.unpin(&asked.state).await;
        }
        Err(root.map_or_else(KeepError::from, |_| KeepError::OtherState))
    }
}
