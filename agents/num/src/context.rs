//! What an operator may draw on besides its operands.

use tensorlink_types::JobKey;

/// Job and step an operator runs in. Only Sample, AtStep, Dropout and Dither (rules N-24, N-44, N-46 and N-48) depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StepContext {
    /// Keys every pseudo-random draw (rule N-4).
    pub job_key: JobKey,
    /// Absolute step of the job, from 0.
    pub step: u32,
}
