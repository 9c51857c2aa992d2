//! What a training came to.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tensorlink_types::Address;

use super::Order;
use super::journal::{Entry, Progress};
use crate::NOTICE;
use crate::class::Precision;

/// What a training came to, for people and programs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Always false: nothing of it can be proven to anybody.
    pub provable: bool,
    /// What that means.
    pub notice: &'static str,
    /// In which precision.
    pub precision: Precision,
    /// Steps taken.
    pub steps: u32,
    /// Intervals that were taken on, those among them that were undone later.
    pub intervals: u32,
    /// Intervals whose result two machines agreed on, or that the user's own machine decided.
    pub checked: u32,
    /// Intervals of each worker.
    pub by: BTreeMap<Address, u32>,
    /// Workers that are not asked again.
    pub left_out: BTreeSet<Address>,
    /// Why, of those that were off: by how much, and what is allowed. Nobody is slashed for it.
    pub off: Vec<Entry>,
    /// CID of the last state, which the user's store has.
    pub state: String,
    /// Loss of the first step, in nats.
    pub first_loss: Option<f64>,
    /// Mean loss of the last tenth of the steps, in nats.
    pub last_loss: Option<f64>,
}

impl Report {
    pub(super) fn new(order: &Order, progress: &Progress) -> Self {
        let losses = &progress.losses;
        let tail = losses.len().div_ceil(10);
        let last = losses.iter().rev().take(tail).sum::<f64>() / tail as f64;
        Self {
            provable: false,
            notice: NOTICE,
            precision: order.precision,
            steps: progress.now.0,
            intervals: progress.counts.0,
            checked: progress.counts.1,
            by: progress.by.clone(),
            left_out: progress.out.clone(),
            off: progress.faults.clone(),
            state: progress.now.1.to_string(),
            first_loss: losses.first().copied(),
            last_loss: (tail > 0).then_some(last),
        }
    }
}
