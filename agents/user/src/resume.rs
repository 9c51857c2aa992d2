//! A training that goes on in another job (rule P-38): the same programs, from the states that claims of the earlier
//! job end in. [`Uncut`](crate::Uncut) cuts them anew.

use tensorlink_node::bounds::Bounds;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::wire::manifest::{Manifest, StageFiles, TrainingFiles};
use tensorlink_node::{Ports, files};
use tensorlink_program::{CheckedProgram, ProgramError};
use tensorlink_proof::commit::ProgramCommitment;
use tensorlink_training::whole::CutError;
use thiserror::Error;

use crate::fetching::Fetching;
use crate::publish::{JobNote, PublishError, Published, publish_manifest};
use crate::result::{Claims, ResultError};

/// Why a training cannot go on.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum ResumeError {
    #[error(transparent)]
    Result(#[from] ResultError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Cut(#[from] CutError),
    #[error("workers take no stages of these layers ({0}): use more --stages")]
    Large(ProgramError),
}

/// A job ready to be posted.
#[derive(Clone, Debug)]
pub struct Resumption {
    /// Programs, stage by stage.
    pub programs: Vec<CheckedProgram>,
    /// What the chain registers.
    pub published: Published,
    /// What its training may not exceed: what it might not before.
    pub bounds: Bounds,
}

/// Publishes what is left of a training after so many `intervals` of a job, which end in such `claims`: its files, with
/// the state after them in place of the first. None of them is to repeat it from the beginning.
///
/// # Errors
/// [`ResumeError`].
pub(crate) async fn resume(
    ports: &Ports,
    fetching: &Fetching,
    job: &JobView,
    note: &JobNote,
    (intervals, claims): (u32, Claims),
) -> Result<Resumption, ResumeError> {
    let former = fetching.manifest(note).await?;
    let store = ports.store.as_ref();
    let (mut stages, mut programs) = (Vec::new(), Vec::new());
    let (mut roots, mut initial_states) = (Vec::new(), Vec::new());
    for stage in 0..job.stages {
        let files = former.training(stage).map_err(ResultError::from)?;
        let program = fetching.program(files).await?;
        let (state, root) = match intervals.checked_sub(1) {
            Some(last) => {
                let (state, root) = fetching.state_after(job, (stage, last, claims), &program).await?;
                (store.put(files::join(&state).into()).await.map_err(PublishError::from)?.to_string(), root)
            }
            None => {
                let root = ports.chain.initial_state(job.id, stage).await.map_err(ResultError::from)?;
                (files.state.clone(), root)
            }
        };
        stages.push(StageFiles::Training(TrainingFiles { state, ..files.clone() }));
        roots.push(ProgramCommitment::new(&program).map_err(PublishError::from)?.root());
        initial_states.push(root);
        programs.push(program);
    }
    let bounds = former.bounds;
    let manifest = publish_manifest(store, &Manifest { stages, ..former }).await?;
    let note = JobNote { manifest: manifest.to_string(), ..note.clone() };
    Ok(Resumption { programs, published: Published { manifest, programs: roots, initial_states, note }, bounds })
}
