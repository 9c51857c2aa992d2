//! A training whose stages are cut anew when it goes on in another job: the same operators on the same constants and
//! states, so that the result is the same bits.

use std::collections::BTreeMap;
use std::ops::Range;

use tensorlink_node::wire::decode;
use tensorlink_node::wire::manifest::{MAX_MANIFEST, MAX_PROGRAM, Manifest, StageFiles};
use tensorlink_node::{Ports, files};
use tensorlink_num::Tensor;
use tensorlink_program::CheckedProgram;
use tensorlink_training::StageInfo;
use tensorlink_training::whole::{Cut, CutError, Layout, Origin, Origins, Whole};
use tensorlink_types::Program;

use crate::fetching::Fetching;
use crate::publish::{JobNote, Published, publish_layouts, publish_manifest, publish_stage};
use crate::result::ResultError;
use crate::resume::{ResumeError, Resumption};

/// What is left of a training, not cut into stages.
#[derive(Clone, Debug)]
pub struct Uncut {
    whole: Whole,
    origins: Origins,
    manifest: Manifest,
    /// Layers of the stages that it was cut into.
    former: Vec<Range<usize>>,
}

impl Uncut {
    /// Of stages whose places in a step were written down.
    pub(crate) async fn of(fetching: &Fetching, rest: &Resumption) -> Result<Option<Self>, ResumeError> {
        let note = &rest.published.note;
        let Some(layouts) = &note.layouts else { return Ok(None) };
        let layouts: Vec<Layout> =
            decode("layouts", &fetching.own(layouts, MAX_PROGRAM).await?).map_err(ResultError::from)?;
        let manifest = fetching.manifest(note).await?;
        let mut infos: Vec<StageInfo> = Vec::new();
        for stage in 0..manifest.stages.len() {
            let files = manifest.training(stage as u16).map_err(ResultError::from)?;
            let notes = fetching.own(&files.notes, MAX_MANIFEST).await?;
            infos.push(decode("stage notes", &notes).map_err(ResultError::from)?);
        }
        let stages = rest.programs.iter().map(|program| &**program).zip(&infos).zip(&layouts);
        let stages: Vec<(&Program, &StageInfo, &Layout)> = stages.map(|((p, i), l)| (p, i, l)).collect();
        let (whole, origins) = Whole::merged(&stages)?;
        let former = infos.into_iter().map(|info| info.layers).collect();
        Ok(Some(Self { whole, origins, manifest, former }))
    }

    /// Layers of the stages that it was cut into.
    pub fn former(&self) -> &[Range<usize>] {
        &self.former
    }

    /// Shares of a step's sequences.
    pub fn shares(&self) -> usize {
        self.whole.shares()
    }

    /// The program of each layer alone.
    ///
    /// # Errors
    /// [`CutError`].
    pub fn layers(&self) -> Result<Vec<Program>, CutError> {
        let each: Vec<Range<usize>> = (0..self.whole.layers()).map(|layer| layer..layer.saturating_add(1)).collect();
        Ok(self.whole.cut(&each)?.into_iter().map(|cut| cut.program).collect())
    }

    /// Publishes it in one stage for each range of layers.
    pub(crate) async fn cut(
        &self,
        (ports, fetching): (&Ports, &Fetching),
        rest: &Resumption,
        ranges: &[Range<usize>],
    ) -> Result<Resumption, ResumeError> {
        let store = ports.store.as_ref();
        let cuts = self.whole.cut(ranges)?;
        // Before anything is fetched.
        let checked = cuts.iter().map(|cut| CheckedProgram::new(cut.program.clone()).map_err(ResumeError::Large));
        let checked = checked.collect::<Result<_, _>>()?;
        let mut states = States { uncut: self, fetching, rest, fetched: BTreeMap::new() };
        let (mut stages, mut programs, mut initial_states) = (Vec::new(), Vec::new(), Vec::new());
        for Cut { program, constants, info, layout } in &cuts {
            let constants = constants.iter().map(|constant| self.constant(*constant)).collect::<Result<_, _>>()?;
            let mut state = Vec::new();
            for at in &layout.state {
                state.push(states.take(at.number).await?);
            }
            let stage = publish_stage(store, (program, info, &state), constants).await?;
            stages.push(StageFiles::Training(stage.files));
            programs.push(stage.program);
            initial_states.push(stage.state);
        }
        let manifest = publish_manifest(store, &Manifest { stages, ..self.manifest.clone() }).await?;
        let layouts = Some(publish_layouts(store, cuts.iter().map(|cut| &cut.layout)).await?);
        let note = JobNote { manifest: manifest.to_string(), layouts, ..rest.published.note.clone() };
        let published = Published { manifest, programs, initial_states, note };
        Ok(Resumption { programs: checked, published, bounds: rest.bounds })
    }

    /// CID of one of the step's constants.
    fn constant(&self, number: u32) -> Result<String, ResumeError> {
        let origin = self.origins.constants.get(number as usize).ok_or(MISSING)?;
        let files = self.manifest.training(origin.stage as u16).map_err(ResultError::from)?;
        Ok(files.constants.get(origin.index).cloned().ok_or(MISSING)?)
    }
}

const MISSING: CutError = CutError::Apart("a constant or a state is missing");

/// States of the former stages, each fetched when the first of it is needed, and dropped with the last.
struct States<'a> {
    uncut: &'a Uncut,
    fetching: &'a Fetching,
    rest: &'a Resumption,
    fetched: BTreeMap<usize, BTreeMap<usize, Tensor>>,
}

impl States<'_> {
    /// A tensor of the step's state.
    async fn take(&mut self, number: u32) -> Result<Tensor, ResumeError> {
        let Origin { stage, index } = *self.uncut.origins.state.get(number as usize).ok_or(MISSING)?;
        if !self.fetched.contains_key(&stage) {
            let state = self.fetch(stage).await?;
            self.fetched.insert(stage, state.into_iter().enumerate().collect());
        }
        let of_stage = self.fetched.get_mut(&stage).ok_or(MISSING)?;
        let tensor = of_stage.remove(&index).ok_or(MISSING)?;
        if of_stage.is_empty() {
            self.fetched.remove(&stage);
        }
        Ok(tensor)
    }

    async fn fetch(&self, stage: usize) -> Result<Vec<Tensor>, ResumeError> {
        let files = self.uncut.manifest.training(stage as u16).map_err(ResultError::from)?;
        let program = self.rest.programs.get(stage).ok_or(MISSING)?;
        let types = || program.state.iter().map(|slot| &slot.ty);
        let bytes = self.fetching.own(&files.state, files::file_len(types())).await?;
        Ok(files::split(&bytes, types()).map_err(ResultError::from)?)
    }
}
