//! What a job's workers have learned: fetched, tested, written to a folder.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tensorlink_folder::{Adapters, Classifier, ModelFolder, Trained, Tuned, vacant};
use tensorlink_model::{Architecture, Matrix, Parameter, Weights, parameters};
use tensorlink_node::ports::chain::JobView;
use tensorlink_training::data::labelled::SPECIAL;
use tensorlink_training::{Metrics, TrainingSet};
use tensorlink_types::B256;
use tensorlink_user::{Base, Claims, JobNote, TrainedStage, User, matrices, test};

use crate::device;

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

/// Takes the model that the stages have after so many intervals, tests it, and writes it to `out`; also the stages'
/// state roots.
pub(super) async fn take(
    user: &User,
    (view, note): (&JobView, &JobNote),
    intervals: u32,
    out: Option<&Path>,
) -> Result<(Metrics, Vec<B256>)> {
    let last = intervals.checked_sub(1).with_context(|| {
        format!("job {} has no interval that is final in every stage, and so no model to take", view.id)
    })?;
    let stages = user.trained(view, note, (last, Claims::Final)).await?;
    let rows = user.held_out(note).await?;
    if let (Some(architecture), Some(out)) = (&note.architecture, out) {
        let (base, tokens, classes) = (note.base.as_ref(), note.tokens.as_slice(), note.classes.as_slice());
        let matrices = |parameters| matrices(parameters, &stages);
        Learned { architecture, base, tokens, classes, rows: &rows, matrices: &matrices }.write(out)?;
    }
    let roots = stages.iter().map(|stage| stage.root).collect();
    Ok((tested(stages, rows).await?, roots))
}

/// What stages know of rows that no worker saw.
pub(super) async fn tested(stages: Vec<TrainedStage>, rows: TrainingSet) -> Result<Metrics> {
    let tested = move || Ok(test(&device::open(Some("cpu"))?, &stages, &rows)?);
    tokio::task::spawn_blocking(tested).await?
}

/// What was learned, whoever has computed it.
pub struct Learned<'a> {
    /// The model.
    pub architecture: &'a Architecture,
    /// What it goes on from, if anything.
    pub base: Option<&'a Base>,
    /// Of an encoder made from scratch: what its tokens are.
    pub tokens: &'a [String],
    /// Names of its classes, or the characters of its text.
    pub classes: &'a [String],
    /// What was held out.
    pub rows: &'a TrainingSet,
    /// Those of the parameters that there are.
    pub matrices: &'a dyn Fn(Vec<Parameter>) -> BTreeMap<String, Matrix>,
}

impl Learned<'_> {
    /// Writes a new folder `out`.
    ///
    /// # Errors
    /// If one of the parameters is missing, or the disk refuses.
    pub fn write(&self, out: &Path) -> Result<()> {
        let &Self { architecture, classes, matrices, .. } = self;
        let weights = || Weights::new(architecture, matrices(parameters(architecture)));
        match self.base {
            None if !self.tokens.is_empty() => {
                // Special ones are no part of a text.
                let spelled = |token: &String| if SPECIAL.contains(&token.as_str()) { "" } else { token }.to_owned();
                let texts = texts(&self.tokens.iter().map(spelled).collect::<Vec<String>>(), self.rows);
                Classifier { architecture, weights: &weights()?, tokens: self.tokens, classes, texts: &texts }
                    .write(out)?;
            }
            None => {
                let texts = texts(classes, self.rows);
                Trained { architecture, weights: &weights()?, characters: classes, texts: &texts }.write(out)?;
            }
            Some(Base { folder, lora: None }) => {
                Tuned { folder: &ModelFolder::open(folder)?, architecture, weights: &weights()?, classes }
                    .write(out)?;
            }
            Some(Base { folder, lora: Some(lora) }) => {
                let matrices = matrices(lora.parameters(architecture));
                Adapters { lora: lora.clone(), matrices }.write(architecture, folder, out)?;
            }
        }
        Ok(())
    }
}

/// The first sequences of a text that was cut into rows of characters.
fn texts(characters: &[String], rows: &TrainingSet) -> Vec<String> {
    let ids = rows.features.mantissas().to_vec();
    // INVARIANT: a feature is the number of one of the characters.
    let character = |id: &i64| usize::try_from(*id).ok().and_then(|id| characters.get(id)).map_or("", String::as_str);
    let row = rows.features.ty().row().max(1) as usize;
    ids.chunks(row).take(TEXTS).map(|row| row.iter().map(character).collect()).collect()
}
