//! A quantised model in its folder: what `tensorlink model quantize` writes, and whatever takes a model's folder reads.
//!
//! | file | what it holds |
//! |---|---|
//! | `plan.bin` | the plan of all layers, as serving jobs publish it (postcard): architecture, calibrated sites, every constant's name, type and root |
//! | `constants.bin` | the constants in the plan's order, canonical bytes of one after another |
//! | `loss.json` | how far the model was from its floats when it was made; `null` if nobody knows |
//! | `config.json`, `tokenizer.json`, … | as the model's publisher wrote them |
//! | `quantized.json` | a version; SHA-256 of every file but the constants, whose roots are in the plan; a root over these |
//!
//! Stages share the constants, so one folder serves any cut of the model.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tensorlink_model::plan::Head;
use tensorlink_model::{Architecture, Plan, PlanError, Quantized, Setting};
use tensorlink_node::files::file_len;
use tensorlink_node::wire::manifest::MAX_PLAN;
use tensorlink_node::wire::{decode_plan, encode};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;

use super::small::{Small, optional};
use super::unfinished::Unfinished;
use super::{Distance, FolderError, MAX_JSON, ModelFolder, map, modules};

/// The file by which a quantised folder is known.
pub(super) const MANIFEST: &str = "quantized.json";
const PLAN: &str = "plan.bin";
const CONSTANTS: &str = "constants.bin";
const LOSS: &str = "loss.json";
/// Version of the format, and of what programs make of it.
const VERSION: u32 = 3;

/// What `quantized.json` says.
#[derive(PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    version: u32,
    /// SHA-256 of every file but the constants, in hexadecimal, by name.
    files: BTreeMap<String, String>,
    /// SHA-256 of the lines `<digest>  <name>`, as `sha256sum` prints them, by name.
    root: String,
}

impl Manifest {
    fn new(files: BTreeMap<String, String>) -> Self {
        let lines: String = files.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
        Self { version: VERSION, files, root: digest(lines.as_bytes()) }
    }

    fn parse(json: &[u8]) -> Result<Self, FolderError> {
        let read: Self = serde_json::from_slice(json).map_err(|error| FolderError::Manifest(error.to_string()))?;
        let refused = |reason: String| Err(FolderError::Manifest(reason));
        match read.version {
            VERSION if Self::new(read.files.clone()) == read => Ok(read),
            VERSION => refused("its root is not that of the files it names".into()),
            other => refused(format!("version {other}, this program reads {VERSION}")),
        }
    }

    /// Checks the files that a model folder's commands read: none is damaged, changed, absent or new.
    fn check(&self, folder: &Path, small: &Small) -> Result<(), FolderError> {
        for (name, most) in modules::files(&modules::dense(small)?) {
            let found = optional(folder, &name, most)?.map(|bytes| digest(&bytes));
            if found.as_ref() != self.files.get(&name) {
                return Err(FolderError::Changed(folder.join(name)));
            }
        }
        Ok(())
    }

    /// A file that every quantised folder has, as it was written.
    fn whole(&self, folder: &Path, name: &str, most: u64) -> Result<Vec<u8>, FolderError> {
        let found = optional(folder, name, most)?.filter(|bytes| self.files.get(name) == Some(&digest(bytes)));
        found.ok_or_else(|| FolderError::Changed(folder.join(name)))
    }
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A quantised model whose constants are mapped into memory, not read.
#[derive(Debug)]
pub struct Integers {
    file: PathBuf,
    root: String,
    plan: Plan,
    distance: Option<Distance>,
    constants: Arc<Mmap>,
}

impl Integers {
    /// Opens a quantised folder and checks all of it but the values of its constants; none if it is not one.
    ///
    /// # Errors
    /// A [`FolderError`] that names the file.
    pub(super) fn open(folder: &Path, small: &Small) -> Result<Option<Self>, FolderError> {
        let Some(manifest) = optional(folder, MANIFEST, MAX_JSON)? else { return Ok(None) };
        let manifest = Manifest::parse(&manifest)?;
        manifest.check(folder, small)?;
        let plan = manifest.whole(folder, PLAN, MAX_PLAN)?;
        let plan = decode_plan(&plan).map_err(|error| FolderError::Version(error.to_string()))?;
        let distance = manifest.whole(folder, LOSS, MAX_JSON)?;
        let distance: Result<Option<Distance>, _> = serde_json::from_slice(&distance);
        let distance = distance
            .map(|told| told.map(Distance::of_any_version))
            .map_err(|error| FolderError::Manifest(format!("{LOSS}: {error}")))?;
        let constants = map(folder, CONSTANTS.into())?.bytes;
        let integers = Self { file: folder.join(CONSTANTS), root: manifest.root, plan, distance, constants };
        if integers.constants.len() as u64 != integers.bytes() {
            return Err(FolderError::Changed(integers.file));
        }
        Ok(Some(integers))
    }

    /// The same, if it is of the model that the folder's configuration describes.
    pub(super) fn of(self, architecture: &Architecture) -> Result<Self, FolderError> {
        if self.plan.architecture() == architecture {
            return Ok(self);
        }
        Err(FolderError::Version("config.json is read otherwise now".into()))
    }

    /// What commits to the whole folder, in hexadecimal.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// How far the model was from its floats when it was made, on texts that calibration never saw; none if there were
    /// no such texts.
    pub const fn distance(&self) -> Option<&Distance> {
        self.distance.as_ref()
    }

    /// In how many bits it is computed.
    pub const fn setting(&self) -> Setting {
        self.plan.setting()
    }

    /// Bytes of all constants.
    pub fn bytes(&self) -> u64 {
        file_len(self.plan.constants().iter().map(|slot| &slot.ty))
    }

    /// Number of constants.
    pub fn constants(&self) -> usize {
        self.plan.constants().len()
    }

    /// Reads the model: one copy in memory. Every constant is checked against its root.
    ///
    /// # Errors
    /// [`FolderError::Constant`] for one that was damaged, [`FolderError::Plan`] for a plan of another version.
    pub fn read(&self) -> Result<Quantized, FolderError> {
        let mut rest: &[u8] = &self.constants;
        let mut tensors = Vec::with_capacity(self.constants());
        for slot in self.plan.constants() {
            // INVARIANT: the file is as long as all constants together; that was checked when it was opened.
            let (bytes, after) = rest.split_at_checked(slot.ty.byte_len() as usize).unwrap_or((rest, &[]));
            rest = after;
            let damaged =
                |reason: String| FolderError::Constant { file: self.file.clone(), name: slot.name.clone(), reason };
            let tensor = Tensor::from_bytes(slot.ty.clone(), bytes).map_err(|error| damaged(error.to_string()))?;
            let root = tensor_root(&tensor);
            if root != slot.root {
                return Err(damaged(format!("its root is {}, not {}", root.0, slot.root.0)));
            }
            tensors.push(tensor);
        }
        Ok(Quantized::restore(self.plan.clone(), tensors)?)
    }
}

/// Writes the model of `source` in integers, and how far it is from its floats if that is known, to a new folder `out`;
/// gives the root of all. Whoever reads it gets the same plans and the same constants.
///
/// # Errors
/// [`FolderError::Exists`], [`FolderError::Write`]; then there is no `out`.
pub fn write(
    source: &ModelFolder,
    exact: &Quantized,
    distance: Option<&Distance>,
    out: &Path,
) -> Result<String, FolderError> {
    let new = Unfinished::begin(out)?;
    let layers = 0..exact.architecture().layers;
    let plan = exact.plan(layers, Head::served(exact.architecture().output), tensor_root)?;
    let mut files = BTreeMap::new();
    let mut keep = |name: &str, bytes: &[u8]| {
        files.insert(name.to_owned(), digest(bytes));
        new.write(name, |file| file.write_all(bytes))
    };
    for (name, most) in modules::files(&modules::dense(&source.small)?) {
        if let Some(bytes) = source.small.optional(&name, most)? {
            keep(&name, &bytes)?;
        }
    }
    let encoded = encode("plan", &plan).map_err(|error| FolderError::Version(error.to_string()))?;
    keep(PLAN, &encoded)?;
    let told = serde_json::to_vec_pretty(&distance).map_err(|error| FolderError::Manifest(error.to_string()))?;
    keep(LOSS, &told)?;
    let missing = |name: &str| PlanError::Constant(name.to_owned());
    let tensors = plan.constants().iter().map(|slot| exact.constant(&slot.name).ok_or_else(|| missing(&slot.name)));
    let tensors = tensors.collect::<Result<Vec<&Tensor>, _>>()?;
    new.write(CONSTANTS, |file| tensors.iter().try_for_each(|tensor| file.write_all(&tensor.to_bytes())))?;
    let manifest = Manifest::new(files);
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| FolderError::Manifest(error.to_string()))?;
    new.write(MANIFEST, |file| file.write_all(&text))?;
    new.finish()?;
    Ok(manifest.root)
}

#[cfg(test)]
mod tests;
