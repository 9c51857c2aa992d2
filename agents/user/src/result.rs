//! The trained model: fetched from the workers, checked against the final claims, tested on rows that no worker saw.

use std::time::Duration;

use cid::Cid;
use tensorlink_graph::engine::Engine;
use tensorlink_graph::{CheckedProgram, EvaluateError, Metrics, ProgramError, Stage, StageInfo, TrainingSet, evaluate};
use tensorlink_node::custody::holders;
use tensorlink_node::files::{self, FileError};
use tensorlink_node::interval::state_root_of;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{ChainError, NetError, Protocol, StoreError};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::wire::manifest::{MAX_MANIFEST, MAX_PROGRAM, Manifest, ManifestError, parse_cid};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{Malformed, decode, encode};
use tensorlink_num::{Tensor, TensorError};
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, B256, Lane, Program};
use thiserror::Error;

use crate::publish::JobNote;
use crate::role::{User, claims_of};

/// Attempts to get a final state from a worker.
const PATIENCE: Policy = Policy { attempts: 8, first: Duration::from_millis(500), longest: Duration::from_secs(4) };

/// Why there is no result.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum ResultError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Tensor(#[from] TensorError),
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    #[error("no worker of stage {stage} gives its final state: {reason}")]
    Withheld { stage: u16, reason: String },
    #[error("stage {0} has no claim for the last interval")]
    Unfinished(u16),
}

/// One stage of a trained model.
#[derive(Clone, Debug)]
pub struct TrainedStage {
    /// Its program.
    pub program: CheckedProgram,
    /// The compiler's notes.
    pub info: StageInfo,
    /// Constants of the program.
    pub constants: Vec<Tensor>,
    /// State after the last step.
    pub state: Vec<Tensor>,
    /// Root of that state, as the final claim holds it.
    pub root: B256,
}

impl User {
    /// Fetches the trained stages of a finished job, each equal to a claim on chain. The claims are those confirmed here.
    ///
    /// # Errors
    /// [`ResultError`].
    pub async fn trained(&self, job: &JobView, note: &JobNote) -> Result<Vec<TrainedStage>, ResultError> {
        let manifest = parse_cid(&note.manifest)?;
        let manifest = Manifest::parse(&self.ports.store.get(&manifest, &[], MAX_MANIFEST).await?)?;
        let mut stages = Vec::new();
        for stage in 0..job.stages {
            let files = manifest.training(stage)?;
            let program = self.ports.store.get(&parse_cid(&files.program)?, &[], MAX_PROGRAM).await?;
            let program = CheckedProgram::new(decode::<Program>("program", &program)?)?;
            let notes = self.ports.store.get(&parse_cid(&files.notes)?, &[], MAX_MANIFEST).await?;
            let mut constants = Vec::new();
            for (slot, cid) in program.constants.iter().zip(&files.constants) {
                let bytes = self.ports.store.get(&parse_cid(cid)?, &[], slot.ty.byte_len()).await?;
                constants.push(Tensor::from_bytes(slot.ty.clone(), &bytes)?);
            }
            let (state, root) = self.final_state(job, stage, &program).await?;
            stages.push(TrainedStage { program, info: decode("stage notes", &notes)?, constants, state, root });
        }
        Ok(stages)
    }

    async fn final_state(
        &self,
        job: &JobView,
        stage: u16,
        program: &Program,
    ) -> Result<(Vec<Tensor>, B256), ResultError> {
        let mut reason = String::from("nobody was asked");
        let mut claimed = false;
        for replica in 0..job.replicas {
            let lane = Lane { job: job.id, stage, replica };
            let Some(claim) = self.last_claim(job, lane).await? else { continue };
            claimed = true;
            let id = self.ports.contracts.claim_id(&claim);
            // Its worker, then whoever else may keep the state.
            for (index, holder) in holders(self.ports.chain.as_ref(), job, lane).await?.into_iter().enumerate() {
                let question = if index == 0 { Request::FinalState(lane) } else { Request::Kept(id) };
                match self.state_from(lane, (holder, &question), program).await {
                    Ok(state) if state_root_of(&state) == claim.newState => return Ok((state, claim.newState)),
                    Ok(_) => reason = format!("{holder} gives another state than was claimed"),
                    Err(error) => reason = error.to_string(),
                }
            }
        }
        if claimed { Err(ResultError::Withheld { stage, reason }) } else { Err(ResultError::Unfinished(stage)) }
    }

    /// The lane's last claim, unless a conviction voided it.
    async fn last_claim(&self, job: &JobView, lane: Lane) -> Result<Option<Claim>, ResultError> {
        if self.ports.chain.lane(lane).await?.void_from.is_some() {
            return Ok(None);
        }
        let last = job.intervals.saturating_sub(1)..job.intervals;
        let claim = claims_of(&self.events.borrow(), lane, last).next();
        Ok(claim.map(|(claim, _)| claim))
    }

    async fn state_from(
        &self,
        lane: Lane,
        (holder, question): (Address, &Request),
        program: &Program,
    ) -> Result<Vec<Tensor>, ResultError> {
        let declined = |reason| ResultError::Withheld { stage: lane.stage, reason };
        let cid = if holder == self.ports.identity.address() {
            let Request::Kept(claim) = question else { return Err(declined("we are no worker".to_owned())) };
            self.keeper.file_of(*claim).ok_or_else(|| declined("it is not kept here".to_owned()))?.to_bytes()
        } else {
            let question = encode("request", question)?;
            let answer = retry(self.ports.clock.as_ref(), PATIENCE, || async {
                self.ports.net.request(holder, Protocol::Rpc, question.clone()).await.map_err(Failure::Transient)
            });
            match decode("response", &answer.await?)? {
                Response::FinalState(cid) | Response::Kept(cid) => cid,
                Response::Declined(reason) => return Err(declined(reason)),
                other => return Err(declined(format!("{other:?}"))),
            }
        };
        let cid = Cid::try_from(cid).map_err(|_| ManifestError::Cid("of the final state".into()))?;
        let types = || program.state.iter().map(|slot| &slot.ty);
        let bytes = self.ports.store.get(&cid, &[holder], files::file_len(types())).await?;
        Ok(files::split(&bytes, types())?)
    }

    /// Tests a trained model on the held-out rows.
    ///
    /// # Errors
    /// [`ResultError`].
    pub async fn test<E: Engine>(
        &self,
        engine: &E,
        stages: &[TrainedStage],
        note: &JobNote,
    ) -> Result<Metrics, ResultError> {
        let tensor = async |(ty, cid): &(tensorlink_types::TensorType, String)| {
            let bytes = self.ports.store.get(&parse_cid(cid)?, &[], ty.byte_len()).await?;
            Ok::<_, ResultError>(Tensor::from_bytes(ty.clone(), &bytes)?)
        };
        let rows = TrainingSet { features: tensor(&note.features).await?, labels: tensor(&note.labels).await? };
        let stages: Vec<Stage<'_>> = stages
            .iter()
            .map(|s| Stage { program: &s.program, info: &s.info, constants: &s.constants, state: &s.state })
            .collect();
        Ok(evaluate(engine, &stages, &rows)?)
    }
}
