//! The files of a job, named by CID.

use cid::Cid;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bounds::{Bounds, BoundsError};

/// Version of the manifest's format.
pub const MANIFEST_VERSION: u32 = 1;
/// Largest manifest, bytes.
pub const MAX_MANIFEST: u64 = 1 << 20;
/// Largest program file, bytes.
pub const MAX_PROGRAM: u64 = 64 << 20;
/// Largest plan file, bytes: names, types and roots of the most constants that a program may have, and sites.
pub const MAX_PLAN: u64 = 4 << 20;

/// A job's files. Pinned by the user; `JobTerms.manifest` is its CID. JSON, so that anybody can read it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub version: u32,
    /// Name of the model, for people.
    pub name: String,
    /// One entry per stage.
    pub stages: Vec<StageFiles>,
    /// What its training may not exceed: its workers go no further. Left out where nothing is bounded.
    #[serde(default, skip_serializing_if = "Bounds::is_empty")]
    pub bounds: Bounds,
}

/// The files of one stage, by what its job does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged, try_from = "Fields")]
pub enum StageFiles {
    /// Of a training job.
    Training(TrainingFiles),
    /// Of a serving job.
    Serving(ServingFiles),
}

/// The files of a stage of a training job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TrainingFiles {
    /// The program: postcard of `tensorlink_types::Program`.
    pub program: String,
    /// Initial state: canonical bytes of the state tensors, one after another.
    pub state: String,
    /// Constants in the program's order: canonical bytes of each.
    pub constants: Vec<String>,
    /// Notes for the worker's progress report, postcard of the compiler's stage notes.
    pub notes: String,
}

/// The files of a stage of a serving job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ServingFiles {
    /// The plan of its programs: postcard of `tensorlink_model::Plan`.
    pub plan: String,
    /// Constants in the plan's order: canonical bytes of each.
    pub constants: Vec<String>,
}

/// What a stage's entry may hold. Read first, so that an error names the field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    program: Option<String>,
    state: Option<String>,
    plan: Option<String>,
    constants: Vec<String>,
    notes: Option<String>,
}

impl TryFrom<Fields> for StageFiles {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Self, String> {
        let Fields { program, state, plan, constants, notes } = fields;
        if let Some(plan) = plan {
            let stray =
                [("program", program), ("state", state), ("notes", notes)].into_iter().find(|(_, f)| f.is_some());
            return match stray {
                None => Ok(Self::Serving(ServingFiles { plan, constants })),
                Some((name, _)) => Err(format!("a stage has `plan`, so it serves, and `{name}`, so it trains")),
            };
        }
        let needed = |name: &str, field: Option<String>| {
            field.ok_or_else(|| format!("a stage has neither `plan` nor `{name}`: it can neither serve nor train"))
        };
        let (program, state) = (needed("program", program)?, needed("state", state)?);
        Ok(Self::Training(TrainingFiles { program, state, constants, notes: needed("notes", notes)? }))
    }
}

/// A manifest that this version cannot use.
#[derive(Clone, PartialEq, Debug, Error)]
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
    /// The stage's files are those of a job of the other kind.
    #[error("the job's manifest has no files for {kind} stage {stage}: they belong to a job of another kind")]
    Kind {
        /// What the job does.
        kind: &'static str,
        /// The stage.
        stage: u16,
    },
    /// A bound of its training is out of its range.
    #[error("the job's manifest has bounds that it cannot have: {0}")]
    Bounds(#[from] BoundsError),
    /// A CID is malformed.
    #[error("{0:?} is not a CID")]
    Cid(String),
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ManifestError::Malformed`], [`ManifestError::Version`] or [`ManifestError::Bounds`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let manifest: Self = serde_json::from_slice(bytes).map_err(|e| ManifestError::Malformed(e.to_string()))?;
        if manifest.version != MANIFEST_VERSION {
            return Err(ManifestError::Version(manifest.version));
        }
        manifest.bounds.check()?;
        Ok(manifest)
    }

    /// Files of a stage.
    ///
    /// # Errors
    /// [`ManifestError::NoStage`].
    pub fn stage(&self, stage: u16) -> Result<&StageFiles, ManifestError> {
        self.stages.get(usize::from(stage)).ok_or(ManifestError::NoStage(stage))
    }

    /// Files of a stage of a training job.
    ///
    /// # Errors
    /// [`ManifestError::NoStage`] or [`ManifestError::Kind`].
    pub fn training(&self, stage: u16) -> Result<&TrainingFiles, ManifestError> {
        match self.stage(stage)? {
            StageFiles::Training(files) => Ok(files),
            StageFiles::Serving(_) => Err(ManifestError::Kind { kind: "training", stage }),
        }
    }

    /// Files of a stage of a serving job.
    ///
    /// # Errors
    /// [`ManifestError::NoStage`] or [`ManifestError::Kind`].
    pub fn serving(&self, stage: u16) -> Result<&ServingFiles, ManifestError> {
        match self.stage(stage)? {
            StageFiles::Serving(files) => Ok(files),
            StageFiles::Training(_) => Err(ManifestError::Kind { kind: "serving", stage }),
        }
    }
}

/// Parses a CID of a manifest.
///
/// # Errors
/// [`ManifestError::Cid`].
pub fn parse_cid(text: &str) -> Result<Cid, ManifestError> {
    text.parse().map_err(|_| ManifestError::Cid(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(stage: &str) -> Result<Manifest, ManifestError> {
        Manifest::parse(format!(r#"{{"version": 1, "name": "m", "stages": [{stage}]}}"#).as_bytes())
    }

    #[test]
    fn stages_of_both_kinds_round_trip_as_they_are_written() {
        let training = r#"{"program":"p","state":"s","constants":["a","b"],"notes":"n"}"#;
        let serving = r#"{"plan":"p","constants":["a"]}"#;
        for text in [training, serving] {
            let manifest = parse(text).unwrap();
            assert_eq!(serde_json::to_string(&manifest.stages[0]).unwrap(), text);
        }
        assert_eq!(parse(training).unwrap().training(0).unwrap().constants, ["a", "b"]);
        assert_eq!(parse(serving).unwrap().serving(0).unwrap().plan, "p");
        assert_eq!(parse(serving).unwrap().training(0), Err(ManifestError::Kind { kind: "training", stage: 0 }));
        assert_eq!(parse(training).unwrap().serving(1), Err(ManifestError::NoStage(1)));
    }

    #[test]
    fn bounds_are_left_out_where_there_are_none_and_refused_where_they_make_no_sense() {
        let with = |bounds: &str| {
            let text = format!(r#"{{"version":1,"name":"m","stages":[]{bounds}}}"#);
            (Manifest::parse(text.as_bytes()), text)
        };
        for (text, bounds) in [
            ("", Bounds::default()),
            (r#","bounds":{"max_saturation":0.05}"#, Bounds { max_saturation: Some(0.05), max_loss: None }),
            (
                r#","bounds":{"max_saturation":0.1,"max_loss":1.5}"#,
                Bounds { max_saturation: Some(0.1), max_loss: Some(1.5) },
            ),
        ] {
            let (manifest, text) = with(text);
            let manifest = manifest.unwrap();
            assert_eq!(manifest.bounds, bounds);
            assert_eq!(serde_json::to_string(&manifest).unwrap(), text);
        }
        for (bounds, named) in [
            (r#"{"max_saturation":0}"#, "max_saturation is 0"),
            (r#"{"max_saturation":1.5}"#, "max_saturation is 1.5"),
            (r#"{"max_loss":1}"#, "max_loss is 1"),
            (r#"{"max_loss":1e39}"#, "max_loss is inf"),
            (r#"{"max_losses":2}"#, "`max_losses`"),
        ] {
            let error = with(&format!(r#","bounds":{bounds}"#)).0.unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn errors_name_the_field() {
        for (stage, named) in [
            (r#"{"plan":"p","constants":[],"notes":"n"}"#, "`notes`"),
            (r#"{"program":"p","constants":[],"notes":"n"}"#, "`state`"),
            (r#"{"constants":[]}"#, "`program`"),
            (r#"{"plan":"p"}"#, "`constants`"),
            (r#"{"plan":"p","constants":[],"weights":"w"}"#, "`weights`"),
        ] {
            let error = parse(stage).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
