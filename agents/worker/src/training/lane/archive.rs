//! The intervals of a lane on disk: a finished one is written, the state before one is read back and checked.

use std::sync::Arc;

use bytes::Bytes;
use tensorlink_node::bounds::Readings;
use tensorlink_node::custody::holders;
use tensorlink_node::interval::{Outcome, state_root_of};
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Owner, Store};
use tensorlink_node::shard::Shard;
use tensorlink_node::{Ports, blocking, files};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::{SenderSignatures, io_root};
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, B256};

use super::error::LaneError;
use crate::record::{Interval, LaneLog};

/// An interval that is computed and signed, and not on disk yet.
pub(super) struct Finished {
    pub(super) interval: u32,
    pub(super) outcome: Outcome,
    pub(super) signatures: SenderSignatures,
    pub(super) readings: Readings,
}

/// What a lane has on disk.
pub(super) struct Archive {
    pub(super) ports: Ports,
    pub(super) job: JobView,
    pub(super) log: Arc<LaneLog>,
    pub(super) shard: Arc<Shard>,
}

impl Archive {
    /// The state before an interval, as it was claimed: from the disk, and what is damaged there from whoever else
    /// has it.
    ///
    /// # Errors
    /// [`LaneError::Record`] and [`LaneError::Store`] if it is gone, [`LaneError::Corrupt`] if it is another.
    pub(super) async fn state_before(&self, interval: u32) -> Result<Vec<Tensor>, LaneError> {
        if interval == 0 {
            return Ok(self.shard.initial_state.to_vec());
        }
        let record = self.log.get();
        let known = record.intervals.get(&interval);
        let next = record.next_state.as_ref().filter(|_| record.next == interval);
        let state = known
            .map(|known| &known.state)
            .or(next)
            .ok_or_else(|| LaneError::Record(format!("the state before interval {interval} was dropped")))?;
        let cid = state.parse().map_err(|_| LaneError::Record(format!("{state:?} is not a CID")))?;
        let types = || self.shard.program.state.iter().map(|slot| &slot.ty);
        let bytes = self.files().get(&cid, &self.holders().await, files::file_len(types())).await?;
        let state = files::split(&bytes, types()).map_err(|e| LaneError::Record(e.to_string()))?;
        let before = interval.checked_sub(1).and_then(|n| record.intervals.get(&n));
        let claimed = known.map(|known| known.claim.parentState).or(before.map(|before| before.claim.newState));
        if let Some(expected) = claimed {
            let actual = state_root_of(&state);
            if actual != expected {
                return Err(LaneError::Corrupt { interval, expected, actual });
            }
        }
        Ok(state)
    }

    /// Who else should have what this lane has computed, in case that the disk has damaged it; nobody while the chain
    /// cannot be asked: most disks have not.
    async fn holders(&self) -> Vec<Address> {
        let lane = self.log.get().lane;
        match holders(self.ports.chain.as_ref(), &self.job, lane).await {
            Ok(holders) => holders,
            Err(error) => {
                tracing::warn!(%lane, %error, "the chain does not tell who else has this lane's states");
                Vec::new()
            }
        }
    }

    /// Writes a finished interval to disk: its files first, then the record that names them, and says whether it
    /// exceeds a bound: a kill between the two would let the lane go on. A repeated interval must come out as before,
    /// and changes nothing.
    ///
    /// # Errors
    /// [`LaneError::Unsteady`] if it does not; [`LaneError`] of the disk.
    pub(super) async fn keep(&self, finished: Finished) -> Result<(), LaneError> {
        let Finished { interval, outcome, signatures, readings } = finished;
        let record = self.log.get();
        let (lane, logs) = (record.lane, outcome.logs.roots());
        let io = io_root(&logs);
        if let Some(Interval { claim, .. }) = record.intervals.get(&interval) {
            let same = (claim.newState, claim.io) == (outcome.state_root, io);
            return if same { Ok(()) } else { Err(LaneError::Unsteady(interval)) };
        }
        if interval < record.next {
            // Final and forgotten while the neighbours repeated it.
            return Ok(());
        }
        let claim = Claim {
            job: lane.job.0,
            stage: lane.stage,
            replica: lane.replica,
            interval,
            parentState: self.root_before(interval)?,
            newState: outcome.state_root,
            io,
        };
        // Between storing and naming them, equal files of an older interval must not be let go of.
        let _pins = self.ports.pins.lock().await;
        let state = match &record.next_state {
            Some(cid) if interval > 0 => cid.clone(),
            _ => self.put_state(self.shard.initial_state.to_vec()).await?,
        };
        let inputs = self.files().put(Bytes::from(outcome.inputs)).await?.to_string();
        let next_state = self.put_state(outcome.state).await?;
        self.log.update(|record| {
            record.intervals.insert(interval, Interval { signatures, ..Interval::new(claim, logs, state, inputs) });
            record.promised = None;
            record.next = interval + 1;
            record.next_state = Some(next_state);
            record.first_loss = record.first_loss.or(readings.loss);
            // After the last interval there is nothing to halt.
            if record.next < self.job.intervals {
                record.halted = record.halt(&self.shard.bounds, readings);
            }
        })?;
        Ok(())
    }

    /// The store as the lane has it.
    fn files(&self) -> Arc<dyn Store> {
        self.ports.store.of(Owner::Lane(self.log.get().lane))
    }

    /// Stores a state; its CID. Of gigabytes joining them takes a second.
    async fn put_state(&self, state: Vec<Tensor>) -> Result<String, LaneError> {
        let file = blocking(move || files::join(&state)).await;
        Ok(self.files().put(file.into()).await?.to_string())
    }

    /// Root of the state before an interval that is about to be claimed.
    fn root_before(&self, interval: u32) -> Result<B256, LaneError> {
        let Some(before) = interval.checked_sub(1) else { return Ok(state_root_of(&self.shard.initial_state)) };
        let record = self.log.get();
        let before = record.intervals.get(&before).map(|before| before.claim.newState);
        before.ok_or_else(|| LaneError::Record(format!("the claim before interval {interval} was dropped")))
    }
}
