//! Programs of the stages whose states are kept: they tell what a state is made of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cid::Cid;
use tensorlink_types::{Address, JobId, Lane, Program};

use super::KeepError;
use crate::names;
use crate::ports::{ChainError, Owner, Ports};
use crate::shard::ShardSource;

/// Those that were asked for, until their jobs are over.
pub(super) struct Programs {
    ports: Ports,
    known: Mutex<HashMap<(JobId, u16), Arc<Program>>>,
}

impl Programs {
    /// None is known yet.
    pub(super) fn new(ports: Ports) -> Self {
        Self { ports, known: Mutex::default() }
    }

    /// The program of a lane's stage.
    pub(super) async fn of(&self, lane: Lane, manifest: Cid, worker: Address) -> Result<Arc<Program>, KeepError> {
        let key = (lane.job, lane.stage);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(program) = known {
            return Ok(program);
        }
        let source = source(&self.ports, lane, manifest, worker).await?;
        let root = self.ports.chain.program_root(lane.job, lane.stage).await?;
        // It is in memory from now on.
        let store = self.ports.store.of(Owner::Nobody);
        let program = Arc::new(names::program(store.as_ref(), &source, (0, root)).await?);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, program.clone());
        Ok(program)
    }

    /// A job is over.
    pub(super) fn forget(&self, job: JobId) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _), _| *of != job);
    }
}

/// Where the files of a lane's stage are: with the job's user, and its worker.
pub(super) async fn source(
    ports: &Ports,
    lane: Lane,
    manifest: Cid,
    worker: Address,
) -> Result<ShardSource, ChainError> {
    let user = ports.chain.job(lane.job).await?.map(|job| job.user);
    let holders = user.into_iter().chain([worker]).collect();
    Ok(ShardSource { job: lane.job, stage: lane.stage, manifest, holders })
}
