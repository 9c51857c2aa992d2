//! Model files: networks that are trained from a table of data.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use tensorlink_training::start::Layer;

use crate::commands::post::{compile, read_draft};
use crate::config::Config;
use crate::output;

#[derive(Serialize)]
struct Shown {
    name: String,
    classes: usize,
    training_rows: u64,
    held_out_rows: u64,
    parameters: u64,
    layers: Vec<Layer>,
    stages: Vec<Stage>,
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
    let ranges = draft.cut(&vec![u64::MAX / 64; usize::from(stages)])?;
    let prepared = compile(&draft, &ranges)?;
    let cut = prepared.stages.iter().zip(&ranges).map(|(stage, layers)| Stage {
        layers: layers.clone(),
        operators: stage.program.operators.len(),
        state_bytes: stage.program.state.iter().map(|slot| slot.ty.byte_len()).sum(),
    });
    let shown = Shown {
        name: draft.name.clone(),
        classes: draft.data.classes.len(),
        training_rows: draft.data.training.labels.ty().elements(),
        held_out_rows: draft.data.held_out.labels.ty().elements(),
        parameters: draft.training.parameters(),
        layers: draft.training.layers.clone(),
        stages: cut.collect(),
    };
    output::print(config.json, &shown, || {
        let mut rows = vec![
            ("model", shown.name.clone()),
            ("data", format!("{} rows to train on, {} held out", shown.training_rows, shown.held_out_rows)),
            ("parameters", shown.parameters.to_string()),
        ];
        for layer in &shown.layers {
            let Layer { name, parameters, bytes } = layer;
            rows.push(("layer", format!("{name}, {parameters} parameters, {} KiB", bytes.div_ceil(1024))));
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
