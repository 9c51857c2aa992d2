//! What an operator may draw on besides its operands.

use tensorlink_types::{JobKey, Lineage};

/// Job and step an operator runs in. Only Sample, AtStep, Dropout and Dither (rules N-24, N-44, N-46 and N-48) depend
/// on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StepContext {
    /// Keys every pseudo-random draw (rule N-4).
    pub job_key: JobKey,
    /// Step, counted from 0 over all jobs that continue each other.
    pub step: u32,
}

impl StepContext {
    /// Of a job's own step, counted from 0.
    pub const fn new(lineage: Lineage, step: u32) -> Self {
        // No job has so many steps (P-38).
        Self { job_key: lineage.key, step: lineage.first_step.saturating_add(step) }
    }
}
