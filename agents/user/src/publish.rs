//! Puts a job's files into the store and forms what the chain registers of them.

use bytes::Bytes;
use cid::Cid;
use serde::{Deserialize, Serialize};
use tensorlink_model::Architecture;
use tensorlink_node::bounds::Bounds;
use tensorlink_node::files;
use tensorlink_node::interval::state_root_of;
use tensorlink_node::ports::{Store, StoreError};
use tensorlink_node::wire::manifest::{MANIFEST_VERSION, Manifest, StageFiles, TrainingFiles};
use tensorlink_node::wire::{Malformed, encode};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::ProgramCommitment;
use tensorlink_proof::commit::program::ProgramTooLarge;
use tensorlink_training::whole::Layout;
use tensorlink_training::{StageInfo, TrainingSet};
use tensorlink_types::{B256, Program, TensorType};
use thiserror::Error;

use crate::prepare::{Base, Draft, Prepared};

/// Why a job's files could not be published.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum PublishError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    TooLarge(#[from] ProgramTooLarge),
    #[error("the manifest cannot be written: {0}")]
    Manifest(#[from] serde_json::Error),
}

/// What the chain registers of a job's files.
#[derive(Clone, PartialEq, Debug)]
pub struct Published {
    /// CID of the manifest.
    pub manifest: Cid,
    /// Program roots, stage by stage.
    pub programs: Vec<B256>,
    /// Initial state roots, stage by stage.
    pub initial_states: Vec<B256>,
    /// What the user keeps to judge the result.
    pub note: JobNote,
}

/// What a user remembers of its job, to judge the result later.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobNote {
    /// Name of the model.
    pub name: String,
    /// CID of the manifest.
    pub manifest: String,
    /// Of a language model: what it is exported as.
    #[serde(default)]
    pub architecture: Option<Architecture>,
    /// Of one that was trained before: what it goes on from.
    #[serde(default)]
    pub base: Option<Base>,
    /// Labels that a step learns from: rows of a batch, or tokens of its sequences.
    #[serde(default)]
    pub labels_per_step: u64,
    /// Names of the classes; of a decoder its characters.
    pub classes: Vec<String>,
    /// Of an encoder made from scratch: what its tokens are.
    #[serde(default)]
    pub tokens: Vec<String>,
    /// Held-out features: type and CID.
    pub features: (TensorType, String),
    /// Held-out labels: type and CID.
    pub labels: (TensorType, String),
    /// CID of where the operators and the state of each stage stand in a step, by which its stages can be cut anew.
    #[serde(default)]
    pub layouts: Option<String>,
}

impl JobNote {
    /// What a label is to people: the token that follows in a text, or the class of a row.
    pub fn label(&self) -> &'static str {
        if self.labels.0.dims().len() > 1 { "token" } else { "label" }
    }
}

/// Publishes a job whose training may not exceed these bounds.
///
/// # Errors
/// [`PublishError`].
pub async fn publish(
    store: &dyn Store,
    draft: &Draft,
    prepared: &Prepared,
    bounds: Bounds,
) -> Result<Published, PublishError> {
    let put = async |bytes: Bytes| Ok::<_, StoreError>(store.put(bytes).await?.to_string());
    let (mut stages, mut programs, mut initial_states) = (Vec::new(), Vec::new(), Vec::new());
    for (stage, state) in prepared.stages.iter().zip(&prepared.states) {
        let mut constants = Vec::new();
        for constant in &stage.constants {
            constants.push(put(constant.to_bytes().into()).await?);
        }
        let stage = publish_stage(store, (&stage.program, &stage.info, state), constants).await?;
        stages.push(StageFiles::Training(stage.files));
        programs.push(stage.program);
        initial_states.push(stage.state);
    }
    let name = draft.name.clone();
    let manifest = Manifest { version: MANIFEST_VERSION, name: name.clone(), stages, bounds };
    let manifest = publish_manifest(store, &manifest).await?;
    let TrainingSet { features, labels } = &draft.data.held_out;
    let note = JobNote {
        name,
        manifest: manifest.to_string(),
        architecture: draft.architecture.clone(),
        base: draft.base.clone(),
        labels_per_step: labels_per_step(prepared),
        classes: draft.data.classes.clone(),
        tokens: draft.tokens.clone(),
        features: (features.ty().clone(), put(features.to_bytes().into()).await?),
        labels: (labels.ty().clone(), put(labels.to_bytes().into()).await?),
        layouts: Some(publish_layouts(store, prepared.stages.iter().map(|stage| &stage.layout)).await?),
    };
    Ok(Published { manifest, programs, initial_states, note })
}

/// A stage whose files are in the store.
pub(crate) struct PublishedStage {
    pub(crate) files: TrainingFiles,
    /// Root of its program.
    pub(crate) program: B256,
    /// Root of its initial state.
    pub(crate) state: B256,
}

/// Publishes a stage whose constants have these CIDs.
pub(crate) async fn publish_stage(
    store: &dyn Store,
    (program, info, state): (&Program, &StageInfo, &[Tensor]),
    constants: Vec<String>,
) -> Result<PublishedStage, PublishError> {
    let put = async |bytes: Bytes| Ok::<_, StoreError>(store.put(bytes).await?.to_string());
    let files = TrainingFiles {
        program: put(encode("program", program)?).await?,
        state: put(files::join(state).into()).await?,
        constants,
        notes: put(encode("stage notes", info)?).await?,
    };
    Ok(PublishedStage { files, program: ProgramCommitment::new(program)?.root(), state: state_root_of(state) })
}

pub(crate) async fn publish_manifest(store: &dyn Store, manifest: &Manifest) -> Result<Cid, PublishError> {
    Ok(store.put(serde_json::to_vec_pretty(manifest)?.into()).await?)
}

/// Publishes where the operators and the state of each stage stand in a step; returns the CID.
pub(crate) async fn publish_layouts(
    store: &dyn Store,
    layouts: impl Iterator<Item = &Layout>,
) -> Result<String, PublishError> {
    let layouts: Vec<&Layout> = layouts.collect();
    Ok(store.put(encode("layouts", &layouts)?).await?.to_string())
}

/// Labels of all micro-batches of a step, which the last stage draws.
fn labels_per_step(prepared: &Prepared) -> u64 {
    let drawn = prepared.stages.last().map(|stage| {
        let operators = stage.info.labels.iter().filter_map(|index| stage.program.operators.get(*index as usize));
        operators.map(|operator| operator.output.elements()).sum()
    });
    drawn.unwrap_or_default()
}
