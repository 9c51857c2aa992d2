//! The trained model: fetched from the workers, checked against the final claims, tested on rows that no worker saw.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cid::Cid;
use tensorlink_model::{Architecture, Matrix, Parameter, Weights, WeightsError, parameters};
use tensorlink_node::custody::holders;
use tensorlink_node::files::{self, FileError};
use tensorlink_node::interval::state_root_of;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{ChainError, NetError, Owner, Protocol, Store, StoreError};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::wire::manifest::{MAX_MANIFEST, MAX_PROGRAM, Manifest, ManifestError, TrainingFiles, parse_cid};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{Malformed, decode, encode};
use tensorlink_num::{Tensor, TensorError};
use tensorlink_program::engine::Engine;
use tensorlink_program::{CheckedProgram, ProgramError};
use tensorlink_training::{EvaluateError, Metrics, Stage, StageInfo, TrainingSet, evaluate};
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, B256, ClaimId, Lane, Program};
use thiserror::Error;

use crate::publish::JobNote;
use crate::role::{User, claims_of};

/// Attempts to get a state from those who may have it.
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
    #[error("nobody gives the state of stage {stage} after interval {interval}: {}", reasons.join("; "))]
    Withheld { stage: u16, interval: u32, reasons: Vec<String> },
    #[error("{0}")]
    Declined(String),
    #[error("stage {stage} has no {which} claim for interval {interval}")]
    Unfinished { stage: u16, interval: u32, which: Claims },
}

/// Which claims states are taken from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claims {
    /// Any that is on chain: it may still turn out to be wrong.
    Committed,
    /// Those that nobody can challenge any more.
    Final,
}

impl fmt::Display for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Committed => "confirmed",
            Self::Final => "final",
        })
    }
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
    /// State after the last step that was taken.
    pub state: Vec<Tensor>,
    /// Root of that state, as the final claim holds it.
    pub root: B256,
}

/// The weights of a trained model, out of its stages' states: each the float that is nearest to the integers' value.
///
/// # Errors
/// [`WeightsError`] if the stages are not all of the architecture's.
pub fn weights(architecture: &Architecture, stages: &[TrainedStage]) -> Result<Weights, WeightsError> {
    Weights::new(architecture, matrices(parameters(architecture), stages))
}

/// Those of the parameters that are trained, out of the stages' states, as [`weights`].
pub fn matrices(parameters: Vec<Parameter>, stages: &[TrainedStage]) -> BTreeMap<String, Matrix> {
    let states = stages.iter().flat_map(|stage| stage.program.state.iter().zip(&stage.state));
    let mut tensors: BTreeMap<&str, &Tensor> = states.map(|(slot, tensor)| (slot.name.as_str(), tensor)).collect();
    let mut matrices = BTreeMap::new();
    for Parameter { name, rows, columns } in parameters {
        let values = tensors.remove(name.as_str()).map(|tensor| tensor.to_f64().into_iter().map(|value| value as f32));
        if let Some(matrix) = values.and_then(|values| Matrix::new(rows, columns, values.collect())) {
            matrices.insert(name, matrix);
        }
    }
    matrices
}

/// Tests a trained model on rows.
///
/// # Errors
/// [`ResultError::Evaluate`].
pub fn test<E: Engine>(engine: &E, stages: &[TrainedStage], rows: &TrainingSet) -> Result<Metrics, ResultError> {
    let stages: Vec<Stage<'_>> = stages
        .iter()
        .map(|s| Stage { program: &s.program, info: &s.info, constants: &s.constants, state: &s.state })
        .collect();
    Ok(evaluate(engine, &stages, rows)?)
}

impl User {
    /// Intervals, from the first on, that are final in every stage: all of a finished job's. What the stages end the
    /// last of them in belongs together, as neighbours agree on all they sent each other in an interval before any of
    /// them claims it.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn final_everywhere(&self, job: &JobView) -> Result<u32, ChainError> {
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
    pub async fn trained(
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
            let notes = self.looked_at().get(&parse_cid(&files.notes)?, &[], MAX_MANIFEST).await?;
            let mut constants = Vec::new();
            for (slot, cid) in program.constants.iter().zip(&files.constants) {
                let bytes = self.looked_at().get(&parse_cid(cid)?, &[], slot.ty.byte_len()).await?;
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

    /// A job's files, which its user has.
    pub(crate) async fn manifest(&self, note: &JobNote) -> Result<Manifest, ResultError> {
        let manifest = parse_cid(&note.manifest)?;
        Ok(Manifest::parse(&self.looked_at().get(&manifest, &[], MAX_MANIFEST).await?)?)
    }

    /// A stage's program.
    pub(crate) async fn program(&self, files: &TrainingFiles) -> Result<CheckedProgram, ResultError> {
        let program = self.looked_at().get(&parse_cid(&files.program)?, &[], MAX_PROGRAM).await?;
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
        for replica in 0..job.replicas {
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
        if claims == Claims::Final && self.ports.chain.lane(lane).await?.finalized <= interval {
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
        let cid = if holder == self.ports.identity.address() {
            let own = self.keeper.file_of(claim);
            own.ok_or_else(|| ResultError::Declined("its user does not keep it".to_owned()))?.to_bytes()
        } else {
            let question = encode("request", &Request::EndState(claim))?;
            let answer = self.ports.net.request(holder, Protocol::Rpc, question).await?;
            match decode("response", &answer)? {
                Response::EndState(cid) => cid,
                Response::Declined(reason) => return Err(ResultError::Declined(reason)),
                other => return Err(ResultError::Declined(format!("it answers {other:?}"))),
            }
        };
        let cid = Cid::try_from(cid).map_err(|_| ManifestError::Cid("of a state".into()))?;
        let types = || program.state.iter().map(|slot| &slot.ty);
        let bytes = self.looked_at().get(&cid, &[holder], files::file_len(types())).await?;
        Ok(files::split(&bytes, types())?)
    }

    /// The rows that no worker saw.
    ///
    /// # Errors
    /// [`ResultError`].
    pub async fn held_out(&self, note: &JobNote) -> Result<TrainingSet, ResultError> {
        let tensor = async |(ty, cid): &(tensorlink_types::TensorType, String)| {
            let bytes = self.looked_at().get(&parse_cid(cid)?, &[], ty.byte_len()).await?;
            Ok::<_, ResultError>(Tensor::from_bytes(ty.clone(), &bytes)?)
        };
        Ok(TrainingSet { features: tensor(&note.features).await?, labels: tensor(&note.labels).await? })
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_model::random;
    use tensorlink_training::model::language::Origin;
    use tensorlink_training::{LanguageModel, Training};

    use super::*;
    use crate::Draft;

    const MODEL: &str = r#"{ "name": "small",
        "decoder": { "width": 16, "layers": 2, "heads": 4, "kv_heads": 2, "hidden": 24, "context": 8 },
        "optimizer": { "learning_rate": 0.003, "warmup": 1, "weight_decay": 0.1, "clip": 1.0 },
        "sequences": 2, "steps": 2, "operand_bits": 8, "seed": 7 }"#;

    #[test]
    fn weights_are_what_the_stages_hold() {
        let model = LanguageModel::parse("m.json", MODEL.as_bytes()).unwrap();
        let Origin::Decoder(decoder) = model.origin() else { panic!("{:?}", model.origin()) };
        let draft = Draft::language(&model, decoder, "In the beginning God created. ".repeat(8).as_bytes()).unwrap();
        let prepared = draft.compile(&draft.cut(&[1 << 30; 2]).unwrap(), Training::calibrate).unwrap();
        let mut stages: Vec<TrainedStage> = prepared
            .stages
            .into_iter()
            .zip(prepared.states)
            .map(|(stage, state)| TrainedStage {
                root: state_root_of(&state),
                program: CheckedProgram::new(stage.program).unwrap(),
                info: stage.info,
                constants: stage.constants,
                state,
            })
            .collect();
        let architecture = draft.architecture.unwrap();
        let trained = weights(&architecture, &stages).unwrap();
        let drawn = random::weights(&architecture, 7).unwrap();
        assert_eq!(trained.count(), drawn.count());
        for ((name, trained), (_, drawn)) in trained.iter().zip(drawn.iter()) {
            let pairs = trained.values().iter().zip(drawn.values());
            let largest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(largest < 1e-6, "{name}: {largest}");
        }
        stages.pop();
        assert!(matches!(weights(&architecture, &stages), Err(WeightsError::Missing(_))));
    }
}
