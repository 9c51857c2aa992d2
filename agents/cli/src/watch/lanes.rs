//! How a job's lanes get on, as they report it, and the line that shows it.

use std::collections::BTreeMap;

use tensorlink_node::ports::chain::JobView;
use tensorlink_node::wire::gossip::Progress;
use tensorlink_types::Lane;

use super::token;
use crate::output::duration;
use crate::report::Report;

/// The newest report of each lane.
#[derive(Default)]
pub(super) struct Lanes(BTreeMap<Lane, Progress>);

impl Lanes {
    pub(super) fn hear(&mut self, progress: Progress) {
        self.0.insert(progress.lane, progress);
    }

    pub(super) fn step(&self) -> u32 {
        self.0.values().map(|progress| progress.step).min().unwrap_or(0)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.values().map(|progress| progress.bytes_moved).sum()
    }

    pub(super) fn commitment_share(&self) -> f32 {
        self.0.values().map(|progress| progress.commitment_share).fold(0.0, f32::max)
    }

    /// Of the worst lane that tells.
    pub(super) fn saturation(&self) -> Option<f32> {
        self.0.values().filter_map(|progress| progress.saturation).reduce(f32::max)
    }

    /// Of the slowest lane.
    fn steps_per_second(&self) -> Option<f32> {
        self.0.values().map(|progress| progress.steps_per_second).min_by(f32::total_cmp).filter(|speed| *speed > 0.0)
    }

    /// One line for people; a step learns from so many labels.
    pub(super) fn line(&self, view: &JobView, labels_per_step: u64, report: &Report) -> String {
        let last = self.0.values().rev().find(|progress| progress.loss.is_some());
        let (loss, accuracy) = last.map_or((None, None), |progress| (progress.loss, progress.accuracy));
        let speed = self.steps_per_second();
        let steps = view.intervals.saturating_mul(view.steps_per_interval);
        let left = speed.map(|speed| f64::from(steps.saturating_sub(self.step())) / f64::from(speed));
        let (cost, projected) = report.cost(view.intervals);
        let shown = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        format!(
            "loss {} acc {} | {}{} steps/s, {} labels/s, {} left | {cost} of {projected} {} earned | {} MiB moved | claims {}{} \
             committed, {} final{}",
            shown(loss.map(|loss| format!("{loss:.4}"))),
            shown(accuracy.map(|accuracy| format!("{:.1} %", accuracy * 100.0))),
            // A few in a million are harmless: nothing to see.
            self.saturation()
                .filter(|share| *share >= 0.001)
                .map_or(String::new(), |share| format!("{:.1} % of a weight saturated | ", share * 100.0)),
            shown(speed.map(|speed| format!("{speed:.1}"))),
            shown(speed.map(|speed| format!("{:.0}", f64::from(speed) * labels_per_step as f64))),
            shown(left.map(duration)),
            token(view),
            self.bytes() >> 20,
            if report.seals > 0 { format!("{} sealed, ", report.seals) } else { String::new() },
            report.claims_committed,
            report.claims_final,
            report.differences.last().map_or(String::new(), |place| format!(" | REPLICAS DIFFER at {place}"))
        )
    }
}
