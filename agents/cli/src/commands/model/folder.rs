//! Folders of pretrained transformers.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use tensorlink_folder::ModelFolder;
use tensorlink_model::{Architecture, ContextLimit, Output, Parameter, Setting, memory, parameters};

use crate::config::Config;
use crate::output;

/// What is shown of a folder.
#[derive(Serialize)]
pub(super) struct Shown {
    folder: PathBuf,
    architecture: Architecture,
    stated_context: u32,
    context_limit: Option<ContextLimit>,
    parameters: u64,
    file_bytes: u64,
    dtypes: Vec<String>,
    idle_tensors: Vec<String>,
    tokenizer_tokens: usize,
    /// Tokens of its file that the model has no rows for.
    tokens_beyond: Vec<String>,
    /// In which its integers are, or would be unless another is asked for.
    setting: Setting,
    integer_bytes: u64,
    quantised: Option<Integers>,
    stages: Vec<Stage>,
}

/// What a quantised folder holds.
#[derive(Serialize)]
struct Integers {
    constants: usize,
    root: String,
}

#[derive(Serialize)]
struct Stage {
    layers: Range<u32>,
    integer_bytes: u64,
}

/// Shows a model folder, with floats or quantised. Looks at everything but the values of its weights.
pub(super) fn inspect(config: &Config, path: &Path, stages: u16) -> Result<()> {
    let shown = show(&ModelFolder::open(path)?, stages)?;
    output::print(config.json, &shown, || output::table(&rows(&shown)))
}

/// Number of a model's weights.
pub(super) fn count(a: &Architecture) -> u64 {
    parameters(a).iter().map(|Parameter { rows, columns, .. }| u64::from(*rows) * u64::from(*columns)).sum()
}

/// Layers, parameters, memory of each stage.
pub(super) fn show(folder: &ModelFolder, stages: u16) -> Result<Shown> {
    let (description, a) = (folder.description(), folder.architecture());
    let (dtypes, idle_tensors, quantised, setting) = match folder.integers() {
        Some(integers) => {
            let of = Integers { constants: integers.constants(), root: integers.root().to_owned() };
            (vec!["integers".to_owned()], vec![], Some(of), integers.setting())
        }
        None => {
            let checkpoint = folder.checkpoint()?;
            (checkpoint.dtypes().into_iter().collect(), checkpoint.idle().to_vec(), None, Setting::default())
        }
    };
    let stage = |layers: Range<u32>| Stage { integer_bytes: memory::stage_bytes(a, setting, &layers), layers };
    Ok(Shown {
        folder: folder.path().to_owned(),
        architecture: a.clone(),
        stated_context: description.stated_context,
        context_limit: description.limit,
        parameters: count(a),
        file_bytes: folder.file_bytes(),
        dtypes,
        idle_tensors,
        quantised,
        tokenizer_tokens: folder.tokenizer().len(),
        tokens_beyond: folder.tokenizer().beyond().to_vec(),
        setting,
        integer_bytes: memory::stage_bytes(a, setting, &(0..a.layers)),
        stages: memory::cut(a, stages)?.into_iter().map(stage).collect(),
    })
}

/// The same for people: rows of a table.
pub(super) fn rows(shown: &Shown) -> Vec<(&'static str, String)> {
    let a = &shown.architecture;
    let gives = match a.output {
        Output::Embedding(pooling) => {
            let kind = if a.causal { "decoder" } else { "encoder" };
            let dense = if a.dense.is_empty() { String::new() } else { format!(", dense to {}", a.vector_width()) };
            format!("{kind}, one vector a text ({pooling:?} pooling{dense})").to_lowercase()
        }
        Output::Logits { tied: true } => "decoder, output tied to the embedding".into(),
        Output::Logits { tied: false } => "decoder".into(),
        Output::Classes(1) => "encoder, a score of each pair of texts".into(),
        Output::Classes(classes) => format!("encoder, a logit for each of {classes} classes"),
    };
    let limit = match shown.context_limit {
        None => String::new(),
        Some(ContextLimit::Reduction) => {
            format!(" of {}: a contract recomputes attention over no more", shown.stated_context)
        }
        Some(ContextLimit::Window) => {
            format!(" of {}: beyond its sliding window the model would forget", shown.stated_context)
        }
    };
    let mut rows = vec![
        ("model", shown.folder.display().to_string()),
        ("family", format!("{}, {gives}", format!("{:?}", a.family).to_lowercase())),
        ("layers", format!("{} of width {}, MLP {}", a.layers, a.width, a.hidden)),
        ("heads", format!("{} of width {}, {} of keys and values", a.heads, a.head_width, a.kv_heads)),
        ("context", format!("{} tokens{limit}", a.context)),
        ("tokenizer", format!("{} tokens, the model has {}", shown.tokenizer_tokens, a.vocabulary)),
        (
            "parameters",
            format!("{} ({}, files of {})", shown.parameters, shown.dtypes.join(", "), mib(shown.file_bytes)),
        ),
        ("in integers", format!("{} in the setting {}", mib(shown.integer_bytes), shown.setting)),
    ];
    if !shown.tokens_beyond.is_empty() {
        rows.push(("no rows for", format!("{}: neither read nor written", shown.tokens_beyond.join(", "))));
    }
    if let Some(local) = &a.local {
        rows.push(("window", format!("{} tokens in all but every {}th layer", local.window, local.period)));
    }
    if let Some(Integers { constants, root }) = &shown.quantised {
        rows.push(("quantised", format!("{constants} constants, root {root}")));
    }
    if !shown.idle_tensors.is_empty() {
        rows.push(("not used", shown.idle_tensors.join(", ")));
    }
    for stage in &shown.stages {
        rows.push(("stage", format!("layers {:?}, {} of weights", stage.layers, mib(stage.integer_bytes))));
    }
    rows
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minilm_is_shown_with_its_stages() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.toolchain/models/all-MiniLM-L6-v2");
        let folder = ModelFolder::open(&path).expect("run script/setup, which fetches the model");
        let shown = show(&folder, 2).unwrap();
        assert_eq!((shown.parameters, shown.tokenizer_tokens, shown.context_limit), (22_564_992, 30_522, None));
        let stages: Vec<Range<u32>> = shown.stages.iter().map(|stage| stage.layers.clone()).collect();
        assert_eq!(stages, [0..3, 3..6]);
        assert_eq!(shown.stages.iter().map(|stage| stage.integer_bytes).sum::<u64>(), shown.integer_bytes);
        // A byte for each parameter, another for those of the embedding, and a few for scales and vectors.
        let embedded = u64::from(shown.architecture.vocabulary) * u64::from(shown.architecture.width);
        let least = shown.parameters + embedded;
        assert!((least..least * 103 / 100).contains(&shown.integer_bytes), "{}", shown.integer_bytes);
        let text = output::table(&rows(&shown));
        for expected in ["bert, encoder", "6 of width 384", "22564992 (F32", "30522 tokens", "layers 3..6"] {
            assert!(text.contains(expected), "{text}");
        }
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!((&json["architecture"]["family"], &json["stages"][1]["layers"]["end"]), (&"bert".into(), &6.into()));
        assert!(show(&folder, 7).is_err_and(|error| error.to_string().contains("at most 6 stages")));
    }
}
