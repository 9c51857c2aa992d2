//! What a job came to, fetched from its workers and checked against their claims.

mod newest;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cid::Cid;
use tensorlink_node::custody::holders;
use tensorlink_node::interval::state_root_of;
use tensorlink_node::ports::chain::{JobView, LaneView};
use tensorlink_node::ports::{ChainError, EventAt, Owner, Protocol, Store};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::wire::manifest::{MAX_MANIFEST, MAX_PROGRAM, Manifest, ManifestError, TrainingFiles, parse_cid};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_node::{Ports, files};
use tensorlink_num::Tensor;
use tensorlink_program::CheckedProgram;
use tensorlink_training::TrainingSet;
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, B256, ClaimId, Lane, Program, TensorType};
use tokio::sync::watch;

use crate::keeping::Keeping;
use crate::publish::JobNote;
use crate::result::{Claims, ResultError, TrainedStage};
use crate::told::claims_of;

/// Attempts to get a state from those who may have it.
const PATIENCE: Policy = Policy { attempts: 8, first: Duration::from_millis(500), longest: Duration::from_secs(4) };

/// Fetches what jobs came to.
pub(crate) struct Fetching {
    ports: Ports,
    events: watch::Receiver<Vec<EventAt>>,
    keeping: Arc<Keeping>,
}

impl Fetching {
    /// Of the jobs that these events are about, from their workers, or from what is kept here.
    pub(crate) const fn new(ports: Ports, events: watch::Receiver<Vec<EventAt>>, keeping: Arc<Keeping>) -> Self {
        Self { ports, events, keeping }
    }

    /// Intervals, from the first on, that are final in every stage: all of a finished job's. What the stages end the
    /// last of them in belongs together, as neighbours agree on all they sent each other in an interval before any of
    /// them claims it.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn final_everywhere(&self, job: &JobView) -> Result<u32, ChainError> {
        let mut everywhere = job.intervals;
        for stage in 0..job.stages {
            let mut of_stage = 0;
            for replica in 0..job.replicas {
                let lane = self.ports.chain.lane(Lane { job: job.id, stage, replica }).await?;
                of_stage = of_stage.max(lane.finalized);
            }
            everywhere = everywhere.min(of_stage);
        }
        Ok(everywhere)
    }

    /// Fetches the stages as they are after an interval, each equal to a claim on chain, of those confirmed here.
    ///
    /// # Errors
    /// [`ResultError`].
    pub(crate) async fn trained(
        &self,
        job: &JobView,
        note: &JobNote,
        (interval, claims): (u32, Claims),
    ) -> Result<Vec<TrainedStage>, ResultError> {
        let manifest = self.manifest(note).await?;
        let mut stages = Vec::new();
        for stage in 0..job.stages {
            let files = manifest.training(stage)?;
            let program = self.program(files).await?;
            let notes = self.own(&files.notes, MAX_MANIFEST).await?;
            let mut constants = Vec::new();
            for (slot, cid) in program.constants.iter().zip(&files.constants) {
                let bytes = self.own(cid, slot.ty.byte_len()).await?;
                constants.push(Tensor::from_bytes(slot.ty.clone(), &bytes)?);
            }
            let (state, root) = self.state_after(job, (stage, interval, claims), &program).await?;
            stages.push(TrainedStage { program, info: decode("stage notes", &notes)?, constants, state, root });
        }
        Ok(stages)
    }

    /// The store for who only reads: what is published stays there anyway, and what is fetched for a look need not.
    fn looked_at(&self) -> Arc<dyn Store> {
        self.ports.store.of(Owner::Nobody)
    }

    /// A file that its user has, of at most so many bytes.
    pub(crate) async fn own(&self, cid: &str, limit: u64) -> Result<Bytes, ResultError> {
        Ok(self.looked_at().get(&parse_cid(cid)?, &[], limit).await?)
    }

    /// A job's files, which its user has.
    pub(crate) async fn manifest(&self, note: &JobNote) -> Result<Manifest, ResultError> {
        Ok(Manifest::parse(&self.own(&note.manifest, MAX_MANIFEST).await?)?)
    }

    /// A stage's program.
    pub(crate) async fn program(&self, files: &TrainingFiles) -> Result<CheckedProgram, ResultError> {
        let program = self.own(&files.program, MAX_PROGRAM).await?;
        Ok(CheckedProgram::new(decode::<Program>("program", &program)?)?)
    }

    /// The state that a stage's claim of an interval ends in, from whoever has it, and its root.
    pub(crate) async fn state_after(
        &self,
        job: &JobView,
        (stage, interval, claims): (u16, u32, Claims),
        program: &Program,
    ) -> Result<(Vec<Tensor>, B256), ResultError> {
        // Whoever has it may be busy, or behind with the chain.
        retry(self.ports.clock.as_ref(), PATIENCE, || async {
            match self.ask_for_state(job, (stage, interval, claims), program).await {
                Err(error @ ResultError::Withheld { .. }) => Err(Failure::Transient(error)),
                other => other.map_err(Failure::Permanent),
            }
        })
        .await
    }

    /// Asks each who may have the state, once.
    async fn ask_for_state(
        &self,
        job: &JobView,
        (stage, interval, claims): (u16, u32, Claims),
        program: &Program,
    ) -> Result<(Vec<Tensor>, B256), ResultError> {
        let mut reasons = Vec::new();
        for replica in (0..job.replicas).filter(|replica| claims.are_of(*replica)) {
            let lane = Lane { job: job.id, stage, replica };
            let Some(claim) = self.claim_of(lane, interval, claims).await? else { continue };
            let id = self.ports.contracts.claim_id(&claim);
            // Its worker, then whoever else may keep the state.
            for holder in holders(self.ports.chain.as_ref(), job, lane).await? {
                match self.state_from((holder, id), program).await {
                    Ok(state) if state_root_of(&state) == claim.newState => return Ok((state, claim.newState)),
                    Ok(_) => reasons.push(format!("{holder} gives another state than was claimed")),
                    Err(error) => reasons.push(format!("{holder}: {error}")),
                }
            }
        }
        if reasons.is_empty() {
            Err(ResultError::Unfinished { stage, interval, which: claims })
        } else {
            Err(ResultError::Withheld { stage, interval, reasons })
        }
    }

    /// The lane's claim for an interval, if it is one of those.
    async fn claim_of(&self, lane: Lane, interval: u32, claims: Claims) -> Result<Option<Claim>, ResultError> {
        let LaneView { finalized, void_from, .. } = self.ports.chain.lane(lane).await?;
        if void_from.is_some_and(|from| from <= interval) || (claims == Claims::Final && finalized <= interval) {
            return Ok(None);
        }
        let claim = claims_of(&self.events.borrow(), lane, interval..interval.saturating_add(1)).next();
        Ok(claim.map(|(claim, _)| claim))
    }

    async fn state_from(
        &self,
        (holder, claim): (Address, ClaimId),
        program: &Program,
    ) -> Result<Vec<Tensor>, ResultError> {
        let cid = self.file_of(holder, claim).await?;
        let types = || program.state.iter().map(|slot| &slot.ty);
        let bytes = self.looked_at().get(&cid, &[holder], files::file_len(types())).await?;
        Ok(files::split(&bytes, types())?)
    }

    /// CID of the state that a claim ends in, as a holder tells it.
    async fn file_of(&self, holder: Address, claim: ClaimId) -> Result<Cid, ResultError> {
        if holder == self.ports.identity.address() {
            let own = self.keeping.file_of(claim);
            return own.ok_or_else(|| ResultError::Declined("its user does not keep it".to_owned()));
        }
        let question = encode("request", &Request::EndState(claim))?;
        let answer = self.ports.net.request(holder, Protocol::Rpc, question).await?;
        match decode("response", &answer)? {
            Response::EndState(cid) => Cid::try_from(cid).map_err(|_| ManifestError::Cid("of a state".into()).into()),
            Response::Declined(reason) => Err(ResultError::Declined(reason)),
            other => Err(ResultError::Declined(format!("it answers {other:?}"))),
        }
    }

    /// The rows that no worker saw.
    ///
    /// # Errors
    /// [`ResultError`].
    pub(crate) async fn held_out(&self, note: &JobNote) -> Result<TrainingSet, ResultError> {
        let tensor = async |(ty, cid): &(TensorType, String)| {
            let bytes = self.own(cid, ty.byte_len()).await?;
            Ok::<_, ResultError>(Tensor::from_bytes(ty.clone(), &bytes)?)
        };
        Ok(TrainingSet { features: tensor(&note.features).await?, labels: tensor(&note.labels).await? })
    }
}
