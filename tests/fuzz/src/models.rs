//! Models and data of others.

use std::sync::Arc;

use tensorlink_model::import::{File, indexed_files};
use tensorlink_model::{Architecture, Checkpoint, Gguf, Plan, describe, gguf, parameters};
use tensorlink_node::serving::ServingShard;
use tensorlink_program::check::{MAX_BYTES, memory};
use tensorlink_training::model::weights::{MAX_WEIGHT, import};
use tensorlink_training::{Model, Table};

use crate::feed::Feed;
use crate::wire::message;

/// Texts of a plan's programs here.
const LONGEST: u32 = 2;
/// Most weights of a model that is read here.
const MAX_COUNT: u64 = 1 << 16;

/// The plan of a stage that serves, and its programs.
///
/// # Panics
/// Where a rule is broken.
pub fn plan(bytes: &[u8]) {
    let Some(plan) = message::<Plan>(bytes) else { return };
    let programs = [1, LONGEST, plan.architecture().context].map(|tokens| plan.program(tokens));
    for program in programs.iter().flatten() {
        assert!(memory(program) <= MAX_BYTES && program.constants == plan.constants());
        assert_eq!(program.to_next.len(), 1);
    }
    let longest = if plan.architecture().context < LONGEST { 1 } else { LONGEST };
    if let Ok(shard) = ServingShard::new(plan, Arc::from([]), longest) {
        assert_eq!(shard.programs.longest(), longest as usize);
        assert!(programs.iter().take(longest as usize).all(Result::is_ok));
    }
}

/// A configuration, and the weights of the model that it describes: its length in two bytes, it, a safetensors file.
///
/// # Panics
/// Where a rule is broken.
pub fn weights(bytes: &[u8]) {
    let mut feed = Feed::new(bytes);
    let length = u16::from_le_bytes([feed.byte(), feed.byte()]);
    let config = feed.take(length.into());
    let file = feed.rest();
    linear_layers(file);
    let Ok(description) = describe(config, None) else { return };
    read(&description.architecture, File::new("model.safetensors", file));
}

/// A GGUF file: its metadata, and the weights of the model that they describe.
///
/// # Panics
/// Where a rule is broken.
pub fn gguf(bytes: &[u8]) {
    let Ok(parsed) = Gguf::parse(bytes) else { return };
    let pooling = gguf::pooling(&parsed).ok().flatten().map(|pooling| pooling.to_string().into_bytes());
    let Ok(config) = gguf::config(&parsed) else { return };
    let config = serde_json::Value::Object(config).to_string();
    let Ok(description) = describe(config.as_bytes(), pooling.as_deref()) else { return };
    read(&description.architecture, File::new("model.gguf", bytes));
}

/// Reads the weights of a small architecture: all of them, or what is wrong with them.
fn read(architecture: &Architecture, file: File<'_>) {
    if architecture.layers > 4 || count(architecture) > MAX_COUNT {
        return;
    }
    let Ok((checkpoint, problems)) = Checkpoint::examine(architecture, &[file], None) else { return };
    let faults = checkpoint.faults();
    if !problems.is_empty() {
        return;
    }
    let weights = checkpoint.weights();
    assert_eq!(weights.is_ok(), faults.is_empty(), "{faults:?}");
    if let Ok(weights) = weights {
        assert_eq!(weights.count(), count(architecture));
        assert!(weights.iter().all(|(_, matrix)| matrix.values().iter().all(|value| value.is_finite())));
    }
}

fn count(architecture: &Architecture) -> u64 {
    parameters(architecture).iter().map(|p| u64::from(p.rows) * u64::from(p.columns)).sum()
}

/// The file as weights of one linear layer, two by two.
fn linear_layers(file: &[u8]) {
    let model = br#"{"name":"m","layers":[],"optimizer":{"learning_rate":0.1,"momentum":0},"batch_size":1,
        "micro_batches":1,"steps":1,"operand_bits":8,"seed":1}"#;
    let network = Model::parse("m", model).and_then(|model| model.network(2, 2)).expect("a model file");
    for layer in import("w", file, &network).into_iter().flatten() {
        assert_eq!((layer.weight.len(), layer.bias.len()), (4, 2));
        assert!(layer.weight.iter().chain(&layer.bias).all(|value| value.abs() <= MAX_WEIGHT));
    }
}

/// A configuration, a model file, an index of weights.
///
/// # Panics
/// Where a rule is broken.
pub fn config(bytes: &[u8]) {
    if let Ok(description) = describe(bytes, None) {
        let a = &description.architecture;
        assert!(a.context >= 1 && a.context <= description.stated_context);
        assert!(a.layers >= 1 && a.heads >= 1 && a.kv_heads >= 1 && a.head_width >= 1 && a.vocabulary >= 1);
        assert!(a.heads.is_multiple_of(a.kv_heads), "{} heads share {} of keys and values", a.heads, a.kv_heads);
        assert!(description.ends.iter().chain(&description.beginning).all(|token| *token < a.vocabulary));
    }
    if let Ok(model) = Model::parse("model.json", bytes) {
        assert!(model.batch_size().is_multiple_of(model.micro_batches()) && model.steps() >= 1);
        assert!(model.network(64, 10).is_ok());
    }
    for file in indexed_files(bytes).into_iter().flatten() {
        assert!(file.ends_with(".safetensors") && !file.contains(['/', '\\']), "{file}");
    }
}

/// Tabular data.
///
/// # Panics
/// Where a rule is broken.
pub fn table(bytes: &[u8]) {
    let Ok(table) = Table::parse(bytes) else { return };
    let data = table.split(8, bytes.len() as u64).expect("a parsed table is split");
    let rows = [&data.training, &data.held_out].map(|set| set.labels.ty().elements());
    assert_eq!(rows.iter().sum::<u64>(), table.rows() as u64);
    let labels = data.training.labels.mantissas().to_vec();
    assert!(labels.iter().all(|label| usize::try_from(*label).is_ok_and(|label| label < data.classes.len())));
}
