//! Model files: networks that are trained from a table of data.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use tensorlink_graph::partition;

use crate::commands::post::read_draft;
use crate::config::Config;
use crate::output;

#[derive(Serialize)]
struct Shown {
    name: String,
    features: u32,
    classes: usize,
    training_rows: u64,
    held_out_rows: u64,
    parameters: u64,
    operand_bits: u8,
    layers: Vec<Layer>,
    stages: Vec<Stage>,
}

#[derive(Serialize)]
struct Layer {
    input: u32,
    output: u32,
    activation: Option<tensorlink_graph::model::Activation>,
    bytes: u64,
}

#[derive(Serialize)]
struct Stage {
    layers: std::ops::Range<usize>,
    operators: usize,
    state_bytes: u64,
}

/// Shows a model file.
pub(super) fn inspect(config: &Config, model: &Path, data: &Path, stages: u16) -> Result<()> {
    let draft = read_draft(model, data)?;
    let bytes = partition::layer_bytes(&draft.network);
    let ranges = draft.cut(&vec![u64::MAX / 64; usize::from(stages)])?;
    let prepared = draft.compile(&ranges)?;
    let layers = draft.network.layers.iter().zip(&bytes).map(|(layer, bytes)| Layer {
        input: layer.input,
        output: layer.output,
        activation: layer.activation,
        bytes: *bytes,
    });
    let cut = prepared.stages.iter().zip(&ranges).map(|(stage, layers)| Stage {
        layers: layers.clone(),
        operators: stage.program.operators.len(),
        state_bytes: stage.program.state.iter().map(|slot| slot.ty.byte_len()).sum(),
    });
    let shown = Shown {
        name: draft.model.name().to_owned(),
        features: draft.network.features(),
        classes: draft.data.classes.len(),
        training_rows: draft.data.training.labels.ty().elements(),
        held_out_rows: draft.data.held_out.labels.ty().elements(),
        parameters: draft.parameters(),
        operand_bits: draft.network.operand_bits,
        layers: layers.collect(),
        stages: cut.collect(),
    };
    output::print(config.json, &shown, || {
        let mut rows = vec![
            ("model", shown.name.clone()),
            ("data", format!("{} rows to train on, {} held out", shown.training_rows, shown.held_out_rows)),
            ("parameters", format!("{} ({}-bit operands)", shown.parameters, shown.operand_bits)),
        ];
        for layer in &shown.layers {
            let activation = layer.activation.map_or(String::new(), |a| format!(" {a:?}").to_lowercase());
            rows.push((
                "layer",
                format!("linear {} -> {}{activation}, {} KiB", layer.input, layer.output, layer.bytes.div_ceil(1024)),
            ));
        }
        for stage in &shown.stages {
            rows.push((
                "stage",
                format!(
                    "layers {:?}, {} operators, {} KiB of state",
                    stage.layers,
                    stage.operators,
                    stage.state_bytes.div_ceil(1024)
                ),
            ));
        }
        output::table(&rows)
    })
}
