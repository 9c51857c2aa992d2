//! How a job's lanes get on, as they report it, and the line that shows it.

use std::collections::BTreeMap;

use tensorlink_node::ports::chain::JobView;
use tensorlink_node::wire::gossip::Progress;
use tensorlink_types::Lane;

use super::evaluation::Tested;
use super::token;
use crate::output::duration;
use crate::report::Report;

/// What changes when a job comes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct News {
    step: u32,
    /// Sealed, committed, final.
    claims: (u32, u32, u32),
    /// Steps before the last test on held-out rows.
    tested: Option<u32>,
    differences: usize,
    silent: bool,
}

/// What is known besides the lanes' reports: the balance, the last test on held-out rows, and who is silent.
pub(super) type Told<'a> = (&'a Report, Option<&'a Tested>, Option<&'a str>);

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

    /// Steps of all lanes together.
    pub(super) fn done(&self) -> u64 {
        self.0.values().map(|progress| u64::from(progress.step)).sum()
    }

    /// The lanes that have done the fewest steps, if others have done more.
    pub(super) fn behind(&self) -> Vec<Lane> {
        let least = self.step();
        let behind: Vec<Lane> =
            self.0.iter().filter(|(_, progress)| progress.step == least).map(|(lane, _)| *lane).collect();
        if behind.len() < self.0.len() { behind } else { Vec::new() }
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

    /// What a new line is worth: not speeds and times alone, which are others in every report.
    pub(super) fn news(&self, (report, tested, silent): Told<'_>) -> News {
        News {
            step: self.step(),
            claims: (report.seals, report.claims_committed, report.claims_final),
            tested: tested.map(|tested| tested.steps),
            differences: report.differences.len(),
            silent: silent.is_some(),
        }
    }

    /// One line for people, with the last test on held-out rows; a step learns from so many labels of a kind.
    pub(super) fn line(
        &self,
        view: &JobView,
        (labels_per_step, label): (u64, &str),
        (report, tested, silent): Told<'_>,
    ) -> String {
        let last = self.0.values().rev().find(|progress| progress.loss.is_some());
        let (loss, accuracy) = last.map_or((None, None), |progress| (progress.loss, progress.accuracy));
        let speed = self.steps_per_second();
        let steps = view.intervals.saturating_mul(view.steps_per_interval);
        // Where somebody is silent nobody knows.
        let going = speed.filter(|_| silent.is_none());
        let left = going.map(|speed| f64::from(steps.saturating_sub(self.step())) / f64::from(speed));
        let (cost, projected) = report.cost(view.intervals);
        let shown = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        format!(
            "loss {} acc {} | {}{}{} steps/s, {} {label}s/s, {} left | {cost} of {projected} {} earned | {} MiB moved | claims {}{} \
             committed, {} final{}{}",
            shown(loss.map(|loss| format!("{loss:.4}"))),
            shown(accuracy.map(|accuracy| format!("{:.1} %", accuracy * 100.0))),
            tested.map_or(String::new(), |tested| format!("held out {:.4} at {} | ", tested.loss, tested.steps)),
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
            report.differences.last().map_or(String::new(), |place| format!(" | REPLICAS DIFFER at {place}")),
            silent.map_or(String::new(), |silent| format!(" | {silent}"))
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tensorlink_node::ports::chain::JobState;
    use tensorlink_types::abi::JobKind;
    use tensorlink_types::{Address, B256, JobId, JobKey, U256};

    use super::*;
    use crate::report::Earned;

    pub(in crate::watch) const JOB: JobId = JobId(1);

    pub(in crate::watch) fn view() -> JobView {
        JobView {
            id: JOB,
            kind: JobKind::Training,
            user: Address::ZERO,
            state: JobState::Running,
            escrow: 0,
            audit_budget: 0,
            token: Address::repeat_byte(1),
            stages: 2,
            replicas: 1,
            intervals: 4,
            steps_per_interval: 50,
            accept_by: 0,
            duration: 0,
            started_at: 0,
            deadline: 0,
            challenge_window: 0,
            worker_stake: 0,
            lineage: JobKey(B256::ZERO).into(),
            terms: B256::ZERO,
        }
    }

    fn progress(stage: u16, step: u32, steps_per_second: f32) -> Progress {
        Progress {
            lane: Lane { job: JOB, stage, replica: 0 },
            step,
            loss: None,
            accuracy: None,
            saturation: None,
            steps_per_second,
            bytes_moved: 3 << 20,
            commitment_share: 0.0,
            halted: None,
        }
    }

    #[test]
    fn before_anybody_tells_there_is_nothing_to_see() {
        let line = Lanes::default().line(&view(), (512, "token"), (&Report::default(), None, None));
        let nothing = "loss - acc - | - steps/s, - tokens/s, - left | 0 of 0 SNO earned | 0 MiB moved | claims 0 committed, 0 final";
        assert_eq!(line, nothing);
    }

    #[test]
    fn the_slowest_lane_tells_when_it_is_done_and_the_last_stage_what_is_learned() {
        let mut lanes = Lanes::default();
        lanes.hear(progress(0, 100, 2.5));
        lanes.hear(Progress { loss: Some(2.25), accuracy: Some(0.5), ..progress(1, 50, 2.0) });
        let lane = |stage| Lane { job: JOB, stage, replica: 0 };
        let price = U256::from(10u64.pow(18));
        let report = Report {
            claims_committed: 3,
            claims_final: 1,
            lanes: [(lane(0), Earned { claims: 2, price }), (lane(1), Earned { claims: 1, price })].into(),
            ..Report::default()
        };
        assert_eq!(
            lanes.line(
                &view(),
                (512, "token"),
                (&report, Some(&Tested { steps: 50, loss: 2.125, percent: 51.0 }), None)
            ),
            "loss 2.2500 acc 50.0 % | held out 2.1250 at 50 | 2.0 steps/s, 1024 tokens/s, 75 s left | 3 of 8 SNO earned | 6 MiB moved | claims 3 committed, 1 final"
        );
        assert_eq!(lanes.step(), 50);
    }

    #[test]
    fn where_somebody_is_silent_no_end_is_promised() {
        let mut lanes = Lanes::default();
        lanes.hear(progress(0, 100, 2.5));
        let report = Report::default();
        let silent = Some("SILENT: stage 1 replica 0");
        let line = lanes.line(&view(), (512, "token"), (&report, None, silent));
        assert!(line.contains(", - left |"), "{line}");
        assert!(line.ends_with("| SILENT: stage 1 replica 0"), "{line}");
        assert_ne!(lanes.news((&report, None, silent)), lanes.news((&report, None, None)));
    }

    #[test]
    fn another_speed_is_no_news() {
        let mut lanes = Lanes::default();
        let mut report = Report::default();
        lanes.hear(progress(0, 50, 2.0));
        let before = lanes.news((&report, None, None));
        lanes.hear(progress(0, 50, 3.0));
        assert_eq!(lanes.news((&report, None, None)), before);
        report.claims_final = 1;
        assert_ne!(lanes.news((&report, None, None)), before);
    }

    #[test]
    fn saturation_seals_and_differences_are_told_where_there_are_any() {
        let mut lanes = Lanes::default();
        lanes.hear(Progress { saturation: Some(0.0005), ..progress(0, 50, 0.0) });
        assert!(!lanes.line(&view(), (64, "label"), (&Report::default(), None, None)).contains("saturated"));
        lanes.hear(Progress { saturation: Some(0.25), ..progress(1, 50, 0.0) });
        let report = Report { seals: 2, differences: ["stage 0, interval 1".to_owned()].into(), ..Report::default() };
        let line = lanes.line(&view(), (64, "label"), (&report, None, None));
        assert!(line.contains("| 25.0 % of a weight saturated | - steps/s, - labels/s"), "{line}");
        assert!(
            line.contains("claims 2 sealed, 0 committed") && line.ends_with("REPLICAS DIFFER at stage 0, interval 1"),
            "{line}"
        );
    }
}
