//! The stage's output for the rows of a call; tokens are chosen only where somebody asks for one.

use tensorlink_num::Tensor;
use tensorlink_num::checked::CHOICE_BITS;
use tensorlink_types::{TensorType, TypeError};

use super::DecodeError;
use super::attention::Span;
use super::engine::CacheEngine;
use super::piece::{Frame, Piece};
use super::runner::{CachedRunner, Turn, moving};
use crate::executor::ExecuteError;
use crate::transformer::choice::CONTROLS;
use crate::transformer::plan::PlanError;

/// Controls of the rows of a call, one after another.
pub(super) struct Choices(Vec<i64>);

impl Choices {
    /// Rows that have a successor chosen, and their controls.
    fn chosen(&self) -> (Vec<u32>, Vec<i64>) {
        let rows = (0u32..).zip(self.0.chunks(CONTROLS));
        let chosen = rows.filter(|(_, controls)| controls.first() != Some(&0));
        let (rows, controls): (Vec<_>, Vec<_>) = chosen.unzip();
        (rows, controls.concat())
    }
}

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
            self.end(&head, x, None)?
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
        spans: &[Span],
        choices: &Choices,
    ) -> Result<Vec<Tensor>, DecodeError> {
        let (rows, controls) = choices.chosen();
        let all = spans.last().map_or(0, |span| span.range().end) as usize;
        let mut ids = vec![0; all];
        // SAFETY of the cast: fewer rows than the call has.
        let count = rows.len() as u32;
        if count > 0 {
            // A copy is spared where every row chooses.
            let x = if rows.len() == all { x.clone() } else { self.engine.pick(x, &rows).map_err(moving)? };
            let chosen = self.chosen(count, x, &controls)?;
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

    /// Successors of so many rows: by their logits alone if none has a temperature, else by the whole choice.
    fn chosen(&mut self, rows: u32, x: E::Tensor, controls: &[i64]) -> Result<Vec<i64>, DecodeError> {
        let head = if likeliest(controls) {
            self.likeliest.get(rows, || Piece::likeliest(&self.plan, rows))?
        } else {
            self.heads.get(rows, || Piece::head(&self.plan, rows))?
        };
        let ty = typed("controls", TensorType::new(32, 0, &[rows, CONTROLS as u32]))?;
        let controls = Tensor::from_wide(ty, controls).map_err(|error| moving(error.into()))?;
        let controls = self.engine.import(&controls).map_err(moving)?;
        let chosen = self.end(&head, x, Some(controls))?;
        Ok(self.engine.export(&chosen).map_err(moving)?.mantissas().to_vec())
    }

    /// What follows the last layer.
    fn end(&self, piece: &Piece, x: E::Tensor, controls: Option<E::Tensor>) -> Result<E::Tensor, DecodeError> {
        let mut frame = Frame::new(&self.constants, Some(x));
        frame.controls = controls;
        piece.run(&self.engine, &mut frame, 0..piece.len())?;
        Ok(piece.output(&frame)?)
    }
}

/// Whether no row of controls has a temperature.
fn likeliest(controls: &[i64]) -> bool {
    controls.chunks(CONTROLS).all(|row| matches!(row, [_, temperature, ..] if *temperature <= 0))
}

fn typed(name: &str, ty: Result<TensorType, TypeError>) -> Result<TensorType, PlanError> {
    ty.map_err(|source| PlanError::Type { name: name.to_owned(), source })
}
