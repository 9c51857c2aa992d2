//! Adapters as Hugging Face's PEFT writes and reads them: `adapter_config.json` and `adapter_model.safetensors`.

use std::collections::{BTreeMap, BTreeSet};

use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::super::architecture::Architecture;
use super::super::export::{self, ExportError, Gathered};
use super::super::import::decode;
use super::super::layout::Layout;
use super::super::names;
use super::super::parameters::{Matrix, Parameter, WeightsError};
use super::{Lora, LoraError, Target};

/// Names of the two files.
pub const FILES: [&str; 2] = ["adapter_config.json", "adapter_model.safetensors"];
/// What PEFT puts before the names of a model's own.
const PREFIX: &str = "base_model.model.";

/// Why adapters cannot be read.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum PeftError {
    #[error("adapter_config.json: {0}")]
    Config(String),
    #[error("adapter_config.json: `{0}` is no projection of this model that adapters stand beside")]
    Module(String),
    #[error("adapter_config.json: {field} is {value}; choose {allowed}")]
    OutOfRange { field: &'static str, value: u32, allowed: &'static str },
    #[error("adapter_config.json: {0} is set, which changes more than the adapters' products; only plain LoRA is read")]
    Variant(&'static str),
    #[error("adapter_model.safetensors: {0}")]
    File(String),
    #[error(transparent)]
    Lora(#[from] LoraError),
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

/// What of `adapter_config.json` is written, and understood; other fields are left to PEFT.
#[derive(Serialize, Deserialize)]
struct Config {
    peft_type: String,
    #[serde(default)]
    task_type: Option<String>,
    #[serde(default)]
    base_model_name_or_path: Option<String>,
    r: u32,
    lora_alpha: u32,
    target_modules: Vec<String>,
    #[serde(default)]
    lora_dropout: f64,
    #[serde(default = "none")]
    bias: String,
    #[serde(default)]
    fan_in_fan_out: bool,
    #[serde(default)]
    inference_mode: bool,
    #[serde(default)]
    use_rslora: bool,
    #[serde(default)]
    use_dora: bool,
    #[serde(default)]
    modules_to_save: Option<Vec<String>>,
    #[serde(default)]
    rank_pattern: BTreeMap<String, u32>,
    #[serde(default)]
    alpha_pattern: BTreeMap<String, u32>,
}

fn none() -> String {
    "none".to_owned()
}

/// `adapter_config.json` for adapters of a model that is found at `base`.
///
/// # Errors
/// [`ExportError::Unsaid`] for a model whose modules have no names, [`ExportError::Format`].
pub fn config(lora: &Lora, architecture: &Architecture, base: &str) -> Result<Vec<u8>, ExportError> {
    let module = |target: &Target| {
        module(architecture, *target).ok_or_else(|| ExportError::Unsaid(format!("{:?}", architecture.family)))
    };
    let config = Config {
        peft_type: "LORA".to_owned(),
        task_type: Some("CAUSAL_LM".to_owned()),
        base_model_name_or_path: Some(base.to_owned()),
        r: lora.rank,
        lora_alpha: lora.alpha,
        target_modules: lora.targets.iter().map(module).collect::<Result<_, _>>()?,
        lora_dropout: 0.0,
        bias: none(),
        // GPT-2's matrices stand transposed in their files.
        fan_in_fan_out: architecture.family.manner().conv1d,
        inference_mode: true,
        use_rslora: false,
        use_dora: false,
        modules_to_save: None,
        rank_pattern: BTreeMap::new(),
        alpha_pattern: BTreeMap::new(),
    };
    export::json(&config)
}

/// `adapter_model.safetensors` of adapters by the names of [`Lora::parameters`], 32-bit floats.
///
/// # Errors
/// [`ExportError::Weights`] for those of another architecture, [`ExportError::Format`].
pub fn safetensors(
    lora: &Lora,
    architecture: &Architecture,
    adapters: &BTreeMap<String, Matrix>,
) -> Result<Vec<u8>, ExportError> {
    let mut tensors = BTreeMap::new();
    for Parameter { name, rows, columns } in lora.parameters(architecture) {
        let theirs = tensor(architecture, &name).ok_or_else(|| WeightsError::Missing(name.clone()))?;
        let Some(matrix) = adapters.get(&name) else { return Err(WeightsError::Missing(name).into()) };
        let bytes = matrix.values().iter().flat_map(|value| value.to_le_bytes()).collect();
        tensors.insert(theirs, Gathered { shape: vec![rows as usize, columns as usize], bytes });
    }
    export::file(&tensors)
}

/// Reads adapters of a model out of the two files.
///
/// # Errors
/// [`PeftError`] for another model's, or of another kind.
pub fn read(
    architecture: &Architecture,
    config: &[u8],
    model: &[u8],
) -> Result<(Lora, BTreeMap<String, Matrix>), PeftError> {
    let config: Config = serde_json::from_slice(config).map_err(|error| PeftError::Config(error.to_string()))?;
    let lora = lora(architecture, &config)?;
    let file = SafeTensors::deserialize(model).map_err(|error| PeftError::File(error.to_string()))?;
    let mut adapters = BTreeMap::new();
    for Parameter { name, rows, columns } in lora.parameters(architecture) {
        let theirs = tensor(architecture, &name).ok_or_else(|| WeightsError::Missing(name.clone()))?;
        let view = file.tensor(&theirs).map_err(|_| WeightsError::Missing(theirs.clone()))?;
        let shape = [rows as usize, columns as usize];
        if view.shape() != shape {
            let actual = view.shape();
            return Err(PeftError::File(format!("{theirs} is {actual:?}, the configuration needs {shape:?}")));
        }
        let (_, window) = Layout::Matrix.place(rows, columns);
        let values = decode::floats(view.dtype().into(), view.data(), &window);
        if let Some(element) = values.iter().position(|value| !value.is_finite()) {
            return Err(WeightsError::NotFinite { name: theirs, element }.into());
        }
        let matrix = Matrix::new(rows, columns, values);
        let unread =
            || PeftError::File(format!("{theirs} is of type {:?}; 32- or 16-bit floats are read", view.dtype()));
        adapters.insert(name, matrix.ok_or_else(unread)?);
    }
    Ok((lora, adapters))
}

fn lora(architecture: &Architecture, config: &Config) -> Result<Lora, PeftError> {
    if config.peft_type != "LORA" {
        return Err(PeftError::Config(format!("peft_type is {}; only LORA is read", config.peft_type)));
    }
    let variants = [
        (config.use_rslora, "use_rslora"),
        (config.use_dora, "use_dora"),
        (config.bias != none(), "bias"),
        (config.modules_to_save.as_ref().is_some_and(|modules| !modules.is_empty()), "modules_to_save"),
        (!config.rank_pattern.is_empty(), "rank_pattern"),
        (!config.alpha_pattern.is_empty(), "alpha_pattern"),
    ];
    if let Some((_, field)) = variants.into_iter().find(|(is_set, _)| *is_set) {
        return Err(PeftError::Variant(field));
    }
    let mut targets = BTreeSet::new();
    for theirs in &config.target_modules {
        let meant = |target: &Target| {
            let module = path(architecture, *target);
            module.is_some_and(|module| module == *theirs || module.ends_with(&format!(".{theirs}")))
        };
        let before = targets.len();
        targets.extend(Target::ALL.into_iter().filter(meant));
        if targets.len() == before {
            return Err(PeftError::Module(theirs.clone()));
        }
    }
    let lora = Lora { rank: config.r, alpha: config.lora_alpha, targets };
    if let Some((field, value, allowed)) = lora.problem() {
        return Err(PeftError::OutOfRange { field, value, allowed });
    }
    lora.check(architecture)?;
    Ok(lora)
}

/// Where a projection lies in a block of the model's own, e.g. `self_attn.q_proj`.
fn path(architecture: &Architecture, target: Target) -> Option<String> {
    let parameter = Parameter { name: format!("layers.0.{}.weight", target.part()), rows: 1, columns: 1 };
    let name = names::source(architecture.family, &parameter)?.names.into_iter().next()?;
    let inner = name.strip_suffix(".weight")?.split_once(".0.")?.1;
    Some(inner.to_owned())
}

/// As in `target_modules`: the last name of the path, where it tells projections apart.
fn module(architecture: &Architecture, target: Target) -> Option<String> {
    let path = path(architecture, target)?;
    let last = path.rsplit('.').next()?;
    let is_last =
        |other: &Target| self::path(architecture, *other).is_some_and(|path| path.rsplit('.').next() == Some(last));
    let alone = Target::ALL.iter().filter(|other| is_last(other)).count() == 1;
    Some(if alone { last.to_owned() } else { path.clone() })
}

/// A tensor's name, by that of one of [`Lora::parameters`].
fn tensor(architecture: &Architecture, parameter: &str) -> Option<String> {
    let (projection, part) = parameter.strip_suffix(".weight")?.rsplit_once('.')?;
    let whole = Parameter { name: format!("{projection}.weight"), rows: 1, columns: 1 };
    let theirs = names::source(architecture.family, &whole)?.names.into_iter().next()?;
    let prefix = names::prefix(architecture.family);
    Some(format!("{PREFIX}{prefix}{}.{part}.weight", theirs.strip_suffix(".weight")?))
}
