//! The stage's output for the rows of a call; tokens are chosen only where somebody asks for one.

use tensorlink_num::bounds::CHOICE_BITS;
use tensorlink_num::{Mantissas, Tensor, TensorError};
use tensorlink_program::executor::ExecuteError;
use tensorlink_types::{TensorType, TypeError};

use super::attention::Span;
use super::choices::{Choices, need};
use super::engine::CacheEngine;
use super::piece::{Frame, Need, Piece};
use super::runner::{CachedRunner, Turn};
use super::{DecodeError, moving};
use crate::choice::CONTROLS;
use crate::emit::FLAG_BITS;
use crate::plan::PlanError;

impl<E: CacheEngine> CachedRunner<E> {
    /// Controls of all rows, on a stage that chooses tokens.
    pub(super) fn choices(&self, turns: &[Turn<'_, E>]) -> Result<Option<Choices>, DecodeError> {
        let chooses = self.plan.chooses();
        let mut all = Vec::new();
        for turn in turns {
            let problem = match (turn.controls, chooses) {
                (Some(_), false) => "not used by this stage",
                (None, true) => "missing",
                (None, false) => continue,
                (Some(controls), true) => {
                    let rows = turn.rows.ty().dims().first().copied().unwrap_or_default();
                    let expected = typed("controls", TensorType::new(32, 0, &[rows, CONTROLS as u32]))?;
                    if *controls.ty() != expected {
                        let actual = controls.ty().clone();
                        return Err(ExecuteError::Type { what: "controls".to_owned(), expected, actual }.into());
                    }
                    all.extend(controls.mantissas().to_vec());
                    continue;
                }
            };
            return Err(ExecuteError::Boundary { micro_batch: 0, neighbour: "next", problem }.into());
        }
        Ok(chooses.then_some(Choices(all)))
    }

    /// The stage's output for the rows of each session.
    pub(super) fn head(&mut self, x: E::Tensor, spans: &[Span]) -> Result<Vec<Tensor>, DecodeError> {
        let y = if self.plan.layers().end == self.plan.architecture().layers {
            let rows = spans.iter().fold(0, |rows: u32, span| rows.saturating_add(span.rows));
            let head = self.heads.get(rows, || Piece::head(&self.plan, rows))?;
            self.end(&head, &mut Frame::new(&self.constants, Some(x)))?
        } else {
            x
        };
        let own = |span: &Span| self.engine.export(&self.engine.part(&y, span.range())?);
        Ok(spans.iter().map(own).collect::<Result<_, _>>().map_err(moving)?)
    }

    /// Successors of the tokens of each session; 0 where none is chosen.
    pub(super) fn choose(
        &mut self,
        x: &E::Tensor,
        turns: &[Turn<'_, E>],
        spans: &[Span],
        choices: &Choices,
    ) -> Result<Vec<Tensor>, DecodeError> {
        let (rows, controls) = choices.chosen();
        let all = spans.last().map_or(0, |span| span.range().end) as usize;
        let mut ids = vec![0; all];
        if !rows.is_empty() {
            // A copy is spared where every row chooses.
            let x = if rows.len() == all { x.clone() } else { self.engine.pick(x, &rows).map_err(moving)? };
            let need = need(&controls);
            let sessions = spans.iter().zip(turns).map(|(span, turn)| (span, turn.session.before(span)));
            let vocabulary = self.plan.architecture().vocabulary;
            let seen = need.penalty.then(|| choices.seen(sessions, vocabulary));
            let chosen = self.chosen(x, &controls, need, seen)?;
            for (row, id) in rows.iter().zip(chosen) {
                if let Some(place) = ids.get_mut(*row as usize) {
                    *place = id;
                }
            }
        }
        let own = |span: &Span| {
            let range = span.range();
            let own = ids.get(range.start as usize..range.end as usize).unwrap_or_default();
            let ty = typed("choice", TensorType::new(CHOICE_BITS, 0, &[span.rows]))?;
            Ok(Tensor::from_wide(ty, own).map_err(|error| moving(error.into()))?)
        };
        spans.iter().map(own).collect()
    }

    /// Successors of rows by their controls, and by what their texts have already if that counts.
    fn chosen(
        &mut self,
        x: E::Tensor,
        controls: &[i64],
        need: Need,
        seen: Option<Mantissas>,
    ) -> Result<Vec<i64>, DecodeError> {
        // SAFETY of the cast: no more rows than the call has.
        let rows = (controls.len() / CONTROLS) as u32;
        let plan = &self.plan;
        let head = self.choosers.get((rows, need), || Piece::chooser(plan, rows, need))?;
        let mut frame = Frame::new(&self.constants, Some(x));
        let ty = typed("controls", TensorType::new(32, 0, &[rows, CONTROLS as u32]))?;
        let import = |tensor: Result<Tensor, TensorError>| -> Result<E::Tensor, DecodeError> {
            let tensor = tensor.map_err(|error| moving(error.into()))?;
            Ok(self.engine.import(&tensor).map_err(moving)?)
        };
        frame.controls = Some(import(Tensor::from_wide(ty, controls))?);
        if let Some(seen) = seen {
            let ty = typed("seen", TensorType::new(FLAG_BITS, 0, &[rows, self.plan.architecture().vocabulary]))?;
            frame.states.insert(0, import(Tensor::new(ty, seen))?);
        }
        let chosen = self.end(&head, &mut frame)?;
        Ok(self.engine.export(&chosen).map_err(moving)?.mantissas().to_vec())
    }

    /// What follows the last layer.
    fn end(&self, piece: &Piece, frame: &mut Frame<'_, E::Tensor>) -> Result<E::Tensor, DecodeError> {
        piece.run(&self.engine, frame, 0..piece.len())?;
        Ok(piece.output(frame)?)
    }
}

fn typed(name: &str, ty: Result<TensorType, TypeError>) -> Result<TensorType, PlanError> {
    ty.map_err(|source| PlanError::Type { name: name.to_owned(), source })
}
