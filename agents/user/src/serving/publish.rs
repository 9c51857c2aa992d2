//! Puts a serving job's files into the store and forms what the chain registers of them; reads them back.

use bytes::Bytes;
use cid::Cid;
use serde::{Deserialize, Serialize};
use tensorlink_model::{Plan, Setting};
use tensorlink_node::bounds::Bounds;
use tensorlink_node::ports::{Store, StoreError};
use tensorlink_node::wire::manifest::{
    MANIFEST_VERSION, MAX_MANIFEST, MAX_PLAN, Manifest, ManifestError, ServingFiles, StageFiles, parse_cid,
};
use tensorlink_node::wire::{Malformed, decode, encode};
use tensorlink_types::B256;
use thiserror::Error;

use super::boundaries::{Boundaries, BoundaryError};
use super::prepare::Prepared;
use crate::publish::PublishError;

/// What the chain registers of a serving job's files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedServing {
    /// CID of the manifest.
    pub manifest: Cid,
    /// List roots of the stages' programs by length.
    pub programs: Vec<B256>,
    /// What the user keeps of the job.
    pub note: ServingNote,
}

/// What a user remembers of its serving job, to use it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ServingNote {
    /// Name of the model.
    pub name: String,
    /// CID of the manifest.
    pub manifest: String,
    /// In how many bits it is computed; notes of earlier versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<Setting>,
}

/// Why a job's stages could not be read back.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum NoteError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Boundaries(#[from] BoundaryError),
}

/// Publishes.
///
/// # Errors
/// [`PublishError`].
pub async fn publish_serving(
    store: &dyn Store,
    name: &str,
    prepared: &Prepared,
) -> Result<PublishedServing, PublishError> {
    let put = async |bytes: Bytes| Ok::<_, StoreError>(store.put(bytes).await?.to_string());
    let (mut stages, mut programs) = (Vec::new(), Vec::new());
    for stage in &prepared.stages {
        let mut constants = Vec::new();
        for constant in &stage.constants {
            constants.push(put(constant.to_bytes().into()).await?);
        }
        let plan = put(encode("plan", &stage.plan)?).await?;
        stages.push(StageFiles::Serving(ServingFiles { plan, constants }));
        programs.push(stage.programs);
    }
    let manifest = Manifest { version: MANIFEST_VERSION, name: name.to_owned(), stages, bounds: Bounds::default() };
    let manifest = store.put(serde_json::to_vec_pretty(&manifest)?.into()).await?;
    let setting = prepared.stages.first().map(|stage| stage.plan.setting());
    let note = ServingNote { name: name.to_owned(), manifest: manifest.to_string(), setting };
    Ok(PublishedServing { manifest, programs, note })
}

impl ServingNote {
    /// The boundaries of the job's pipeline, from its files in our own store.
    ///
    /// # Errors
    /// [`NoteError`].
    pub async fn boundaries(&self, store: &dyn Store) -> Result<Boundaries, NoteError> {
        Ok(Boundaries::new(&self.plans(store).await?)?)
    }

    /// The plans of the job's stages, from its files in our own store.
    ///
    /// # Errors
    /// [`NoteError`].
    pub async fn plans(&self, store: &dyn Store) -> Result<Vec<Plan>, NoteError> {
        let manifest = Manifest::parse(&store.get(&parse_cid(&self.manifest)?, &[], MAX_MANIFEST).await?)?;
        let mut plans: Vec<Plan> = Vec::new();
        for stage in 0..u16::try_from(manifest.stages.len()).unwrap_or(u16::MAX) {
            let plan = store.get(&parse_cid(&manifest.serving(stage)?.plan)?, &[], MAX_PLAN).await?;
            plans.push(decode("plan", &plan)?);
        }
        Ok(plans)
    }
}
