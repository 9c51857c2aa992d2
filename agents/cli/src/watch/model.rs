//! What a job's workers have learned: fetched, tested, written to a folder.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use tensorlink_graph::transformer::Architecture;
use tensorlink_graph::{Metrics, TrainingSet};
use tensorlink_node::ports::chain::JobView;
use tensorlink_types::B256;
use tensorlink_user::{Base, JobNote, TrainedStage, User, matrices, test, weights};

use crate::device;
use crate::folder::{Adapters, Classifier, ModelFolder, Trained, Tuned, vacant};

/// Sequences of the held-out text that a folder's integers are calibrated on.
const TEXTS: usize = 48;

/// Whether what a job learns can be written to a new folder `out`: asked before anything is paid for.
pub fn exportable(name: &str, (architecture, base): (Option<&Architecture>, Option<&Base>), out: &Path) -> Result<()> {
    ensure!(architecture.is_some(), "{name} is no language model: leave out the folder, only those are written to one");
    if let Some(Base { folder, lora: None }) = base {
        ModelFolder::open(folder).with_context(|| {
            format!("{} was trained on from, and the rest of its folder is needed", folder.display())
        })?;
    }
    Ok(vacant(out)?)
}

/// Takes the model that the stages have after so many intervals, tests it, and writes it to `out`; also the stages' state roots.
pub(super) async fn take(
    user: &User,
    (view, note): (&JobView, &JobNote),
    intervals: u32,
    out: Option<&Path>,
) -> Result<(Metrics, Vec<B256>)> {
    let last = intervals.checked_sub(1).with_context(|| {
        format!("job {} has no interval that is final in every stage, and so no model to take", view.id)
    })?;
    let stages = user.trained(view, note, last).await?;
    let rows = user.held_out(note).await?;
    if let (Some(architecture), Some(out)) = (&note.architecture, out) {
        write(note, architecture, (&stages, &rows), out)?;
    }
    let metrics = test(&device::open(Some("cpu"))?, &stages, &rows)?;
    Ok((metrics, stages.iter().map(|stage| stage.root).collect()))
}

fn write(
    note: &JobNote,
    architecture: &Architecture,
    (stages, rows): (&[TrainedStage], &TrainingSet),
    out: &Path,
) -> Result<()> {
    match &note.base {
        None if !note.tokens.is_empty() => {
            let (weights, classes) = (weights(architecture, stages)?, note.classes.as_slice());
            Classifier { architecture, weights: &weights, tokens: &note.tokens, classes }.write(out)?;
        }
        None => {
            let (weights, texts) = (weights(architecture, stages)?, texts(&note.classes, rows));
            Trained { architecture, weights: &weights, characters: &note.classes, texts: &texts }.write(out)?;
        }
        Some(Base { folder, lora: None }) => {
            let (weights, classes) = (weights(architecture, stages)?, note.classes.as_slice());
            Tuned { folder: &ModelFolder::open(folder)?, architecture, weights: &weights, classes }.write(out)?;
        }
        Some(Base { folder, lora: Some(lora) }) => {
            let matrices = matrices(lora.parameters(architecture), stages);
            Adapters { lora: lora.clone(), matrices }.write(architecture, folder, out)?;
        }
    }
    Ok(())
}

/// The first sequences of a text that was cut into rows of characters.
fn texts(characters: &[String], rows: &TrainingSet) -> Vec<String> {
    let ids = rows.features.mantissas().to_vec();
    // INVARIANT: a feature is the number of one of the characters.
    let character = |id: &i64| usize::try_from(*id).ok().and_then(|id| characters.get(id)).map_or("", String::as_str);
    let row = rows.features.ty().row().max(1) as usize;
    ids.chunks(row).take(TEXTS).map(|row| row.iter().map(character).collect()).collect()
}
