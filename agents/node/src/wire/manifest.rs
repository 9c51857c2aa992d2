//! The files of a job, named by CID.

use cid::Cid;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Version of the manifest's format.
pub const MANIFEST_VERSION: u32 = 1;
/// Largest manifest, bytes.
pub const MAX_MANIFEST: u64 = 1 << 20;
/// Largest program file, bytes.
pub const MAX_PROGRAM: u64 = 64 << 20;

/// A job's files. Pinned by the user; `JobTerms.manifest` is its CID. JSON, so that anybody can read it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub version: u32,
    /// Name of the model, for people.
    pub name: String,
    /// One entry per stage.
    pub stages: Vec<StageFiles>,
}

/// The files of one stage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageFiles {
    /// The program: postcard of `tensorlink_types::Program`.
    pub program: String,
    /// Initial state: canonical bytes of the state tensors, one after another.
    pub state: String,
    /// Constants in the program's order: canonical bytes of each.
    pub constants: Vec<String>,
    /// Notes for the worker's progress report, postcard of the compiler's stage notes.
    pub notes: String,
}

/// A manifest that this version cannot use.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ManifestError {
    /// Not JSON of the right form.
    #[error("the job's manifest is malformed: {0}")]
    Malformed(String),
    /// Of another version.
    #[error("the job's manifest is of version {0}, this node speaks {MANIFEST_VERSION}: update one of them")]
    Version(u32),
    /// The stage is not there.
    #[error("the job's manifest has no stage {0}")]
    NoStage(u16),
    /// A CID is malformed.
    #[error("{0:?} is not a CID")]
    Cid(String),
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ManifestError::Malformed`] or [`ManifestError::Version`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let manifest: Self = serde_json::from_slice(bytes).map_err(|e| ManifestError::Malformed(e.to_string()))?;
        if manifest.version == MANIFEST_VERSION { Ok(manifest) } else { Err(ManifestError::Version(manifest.version)) }
    }

    /// Files of a stage.
    ///
    /// # Errors
    /// [`ManifestError::NoStage`].
    pub fn stage(&self, stage: u16) -> Result<&StageFiles, ManifestError> {
        self.stages.get(usize::from(stage)).ok_or(ManifestError::NoStage(stage))
    }
}

/// Parses a CID of a manifest.
///
/// # Errors
/// [`ManifestError::Cid`].
pub fn parse_cid(text: &str) -> Result<Cid, ManifestError> {
    text.parse().map_err(|_| ManifestError::Cid(text.to_owned()))
}
