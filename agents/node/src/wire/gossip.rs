//! Messages that are published to everybody and may be lost.

use serde::{Deserialize, Serialize};
use tensorlink_types::{JobId, Lane};

use crate::bounds::Excess;

/// Topic of [`WorkerAdvert`].
pub const WORKERS: &str = "tensorlink/workers/1";
/// Topic of [`Progress`].
pub const PROGRESS: &str = "tensorlink/progress/1";

/// What a worker offers. Its address is the publisher's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerAdvert {
    /// Memory for shards, bytes.
    pub memory: u64,
    /// Lanes it can take now.
    pub free_lanes: u16,
    /// Asking price in wei per billion multiply-adds.
    pub price_per_gmac: u128,
    /// Engine, for people.
    pub engine: String,
}

/// How a lane gets on. For people; nothing is paid or proven by it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// The lane.
    pub lane: Lane,
    /// Steps done.
    pub step: u32,
    /// Mean cross-entropy over the steps since the last message, nats; last stage only.
    pub loss: Option<f32>,
    /// Share of training rows predicted right since the last message; last stage only.
    pub accuracy: Option<f32>,
    /// Largest share of elements of a weight that are too large for the types of its operands, after the last step.
    pub saturation: Option<f32>,
    /// Steps per second since the last message.
    pub steps_per_second: f32,
    /// Bytes of tensors sent and received since the job began.
    pub bytes_moved: u64,
    /// Share of time spent on commitments and signatures since the job began.
    pub commitment_share: f32,
    /// Which of the job's bounds the last interval exceeded: the lane computes no further one. It says so until the job
    /// is closed.
    pub halted: Option<Excess>,
}

impl Progress {
    /// The job.
    pub const fn job(&self) -> JobId {
        self.lane.job
    }
}
