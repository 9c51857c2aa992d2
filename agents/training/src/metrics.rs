//! Loss and accuracy for people. Floats; never committed.

use std::ops::AddAssign;

use tensorlink_num::{Mantissas, Tensor};
use tensorlink_program::engine::Engine;
use tensorlink_program::executor::{ExecuteError, StageExecutor};
use tensorlink_types::{Segment, Source};

use crate::whole::StageInfo;

/// Sums over rows; see [`Metrics::loss`] and [`Metrics::accuracy`].
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Metrics {
    /// Rows.
    pub rows: u64,
    /// Rows whose most probable class is the label.
    pub correct: u64,
    /// Sum of the rows' cross entropies, in nats.
    pub total_loss: f64,
}

impl Metrics {
    /// Of the first `rows` rows of probabilities `[rows, classes]` and labels `[rows]`.
    pub fn of(probabilities: &Tensor, labels: &Tensor, rows: usize) -> Self {
        let classes = probabilities.ty().row() as usize;
        let values = probabilities.to_f64();
        let mut metrics = Self::default();
        for (row, label) in values.chunks_exact(classes.max(1)).zip(labels.mantissas().to_vec()).take(rows) {
            let label = usize::try_from(label).unwrap_or(usize::MAX);
            let p = row.get(label).copied().unwrap_or_default();
            // The least positive probability of 24 fraction bits, halved: what a zero stands for.
            metrics.total_loss -= p.max(libm::exp2(-25.0)).ln();
            metrics.correct = metrics.correct.saturating_add(u64::from(most_probable(row) == Some(label)));
            metrics.rows = metrics.rows.saturating_add(1);
        }
        metrics
    }

    /// Of the step in progress, on the last stage, once its forward passes have run. Zero rows on other stages.
    /// The executor must observe `info.labels` and `info.probabilities`.
    ///
    /// # Errors
    /// The device's, in moving the tensors.
    pub fn of_step<E: Engine>(executor: &StageExecutor<E>, info: &StageInfo) -> Result<Self, ExecuteError> {
        let mut metrics = Self::default();
        for (probabilities, labels) in info.probabilities.iter().zip(&info.labels) {
            if let (Some(p), Some(labels)) = (executor.observe(*probabilities)?, executor.observe(*labels)?) {
                metrics += Self::of(&p, &labels, usize::MAX);
            }
        }
        Ok(metrics)
    }

    /// Mean cross entropy in nats; zero without rows.
    pub fn loss(&self) -> f64 {
        self.total_loss / self.rows.max(1) as f64
    }

    /// Share of rows classified rightly; zero without rows.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.rows.max(1) as f64
    }
}

/// How many mantissas stand at the limit of their type: what calibration left too little room for. A few in a million
/// are harmless; many mean that the data or the learning rate changed since.
pub fn saturated(tensor: &Tensor) -> u64 {
    beyond(tensor, tensor.ty().limit())
}

/// How many mantissas have such a magnitude or a larger one.
fn beyond(tensor: &Tensor, limit: i64) -> u64 {
    fn count<T: Copy + Into<i64>>(mantissas: &[T], limit: i64) -> u64 {
        mantissas.iter().filter(|m| Into::<i64>::into(**m).abs() >= limit).count() as u64
    }
    match tensor.mantissas() {
        Mantissas::I8(m) => count(m, limit),
        Mantissas::I16(m) => count(m, limit),
        Mantissas::I32(m) => count(m, limit),
        Mantissas::I64(m) => count(m, limit),
    }
}

/// Of all weights, the largest share of elements that are too large for the types they are cast to before a step; none
/// for a program that casts none. There a training that leaves its calibrated range shows first: a step moves a weight
/// however large it is.
///
/// # Errors
/// The device's, in moving the weights.
pub fn saturation<E: Engine>(executor: &StageExecutor<E>) -> Result<Option<f64>, ExecuteError> {
    let program = executor.program();
    let mut worst = None;
    for index in program
        .segments
        .iter()
        .filter(|segment| matches!(segment, Segment::Prepare { .. }))
        .flat_map(|s| s.operators().clone())
    {
        let Some(cast) = program.operators.get(index as usize) else { continue };
        let Some(Source::State(slot)) = cast.operands.first().map(|operand| operand.source) else { continue };
        let Some(weight) = executor.state_tensor(slot)? else { continue };
        // The limit of the narrower type, in units of the wider.
        let shift = i32::from(weight.ty().exponent()) - i32::from(cast.output.exponent());
        let limit =
            u32::try_from(shift).ok().and_then(|shift| cast.output.limit().checked_mul(1i64.checked_shl(shift)?));
        let Some(limit) = limit else { continue };
        let share = beyond(&weight, limit) as f64 / weight.ty().elements().max(1) as f64;
        worst = Some(share.max(worst.unwrap_or_default()));
    }
    Ok(worst)
}

impl AddAssign for Metrics {
    fn add_assign(&mut self, other: Self) {
        self.rows = self.rows.saturating_add(other.rows);
        self.correct = self.correct.saturating_add(other.correct);
        self.total_loss += other.total_loss;
    }
}

/// Index of the first largest value.
fn most_probable(row: &[f64]) -> Option<usize> {
    let best = row.iter().enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map(|(index, _)| index)
}
