//! How a lane gets on, for people.

use std::time::Duration;

use tensorlink_node::bounds::Readings;
use tensorlink_node::wire::gossip::Progress;
use tensorlink_program::engine::Engine;
use tensorlink_program::executor::{ExecuteError, StageExecutor};
use tensorlink_training::StageInfo;
use tensorlink_training::metrics::{Metrics, saturation};
use tensorlink_types::Lane;

/// Operators whose outputs the report is made of.
pub fn observed(info: &StageInfo) -> Vec<u32> {
    info.probabilities.iter().chain(&info.labels).copied().collect()
}

/// What an interval told besides its outcome.
#[derive(Debug, Default)]
pub struct Measured {
    /// Steps done.
    pub steps: u32,
    /// Sums over the training rows of the steps; no rows except on the last stage.
    pub metrics: Metrics,
    /// Largest share of elements of a weight that are too large for the types of its operands, at the end.
    pub saturation: Option<f64>,
    /// Time spent on signatures.
    pub signing: Duration,
}

impl Measured {
    /// Takes in a step that has just run.
    ///
    /// # Errors
    /// When the device fails.
    pub fn take<E: Engine>(&mut self, executor: &StageExecutor<E>, info: &StageInfo) -> Result<(), ExecuteError> {
        self.steps += 1;
        self.metrics += Metrics::of_step(executor, info)?;
        Ok(())
    }

    /// Takes in the end of an interval.
    ///
    /// # Errors
    /// When the device fails.
    pub fn end<E: Engine>(&mut self, executor: &StageExecutor<E>) -> Result<(), ExecuteError> {
        self.saturation = saturation(executor)?;
        Ok(())
    }

    /// What of it is bounded.
    pub fn readings(&self) -> Readings {
        Readings {
            saturation: self.saturation.map(|share| share as f32),
            loss: (self.metrics.rows > 0).then_some(self.metrics.loss() as f32),
        }
    }
}

/// Sums up intervals for the next report.
#[derive(Debug)]
pub struct Meter {
    lane: Lane,
    period: Measured,
    elapsed: Duration,
    commitments: Duration,
    total: Duration,
}

impl Meter {
    /// An empty meter.
    pub fn new(lane: Lane) -> Self {
        let (elapsed, commitments, total) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        Self { lane, period: Measured::default(), elapsed, commitments, total }
    }

    /// Adds an interval: what it told, the time its commitments took, the time it took in all.
    pub fn add(&mut self, measured: &Measured, commitments: Duration, elapsed: Duration) {
        self.period.steps += measured.steps;
        self.period.metrics += measured.metrics;
        self.period.saturation = measured.saturation;
        self.elapsed += elapsed;
        self.commitments += commitments;
        self.total += elapsed;
    }

    /// Reports and starts the next period.
    pub fn report(&mut self, step: u32, bytes_moved: u64) -> Progress {
        let period = std::mem::take(&mut self.period);
        let (Measured { steps, metrics, .. }, Readings { saturation, loss }) = (&period, period.readings());
        let elapsed = std::mem::take(&mut self.elapsed);
        Progress {
            lane: self.lane,
            step,
            loss,
            accuracy: loss.map(|_| metrics.accuracy() as f32),
            saturation,
            steps_per_second: (f64::from(*steps) / elapsed.as_secs_f64().max(1e-9)) as f32,
            bytes_moved,
            commitment_share: (self.commitments.as_secs_f64() / self.total.as_secs_f64().max(1e-9)) as f32,
            halted: None,
        }
    }
}
