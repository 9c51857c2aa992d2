//! What was lost and is not said yet: it is said once a kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_types::Lane;
use tensorlink_types::abi::JobKind;

/// Lanes that are named in one line.
const NAMED: usize = 8;

/// Lanes that this worker holds on chain, and has no record of.
#[derive(Debug, Default)]
pub(super) struct Unsaid(Mutex<BTreeMap<u8, BTreeSet<Lane>>>);

impl Unsaid {
    fn lanes(&self) -> MutexGuard<'_, BTreeMap<u8, BTreeSet<Lane>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, kind: JobKind, lane: Lane) {
        self.lanes().entry(kind as u8).or_default().insert(lane);
    }

    /// Whether there is something that was not said yet.
    pub(super) fn waits(&self) -> bool {
        !self.lanes().is_empty()
    }

    /// What was lost, one text a kind; it is not told again.
    fn take(&self) -> Vec<String> {
        let told = |(kind, lanes): (u8, BTreeSet<Lane>)| {
            let what = match JobKind::from_number(kind) {
                Some(JobKind::Serving) => "receipts and vouchers",
                _ => "claims and states",
            };
            let named: Vec<String> = lanes.iter().take(NAMED).map(Lane::to_string).collect();
            let more = match lanes.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "the data folder lacks the {what} of {} lanes that this worker holds in jobs that go on ({}{more}): it \
                 does nothing more there, and cannot answer for them. If they are in another folder, stop this worker \
                 now and start it with --data-dir naming that",
                lanes.len(),
                named.join("; ")
            )
        };
        std::mem::take(&mut *self.lanes()).into_iter().map(told).collect()
    }

    /// Says what was lost.
    pub(super) fn tell(&self) {
        for text in self.take() {
            tracing::error!("{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::JobId;

    use super::*;

    #[test]
    fn what_is_lost_is_said_once_a_kind() {
        let lost = Unsaid::default();
        assert!(!lost.waits());
        for job in 1..=20 {
            lost.add(JobKind::Training, Lane { job: JobId(job), stage: 0, replica: 0 });
        }
        lost.add(JobKind::Serving, Lane { job: JobId(99), stage: 1, replica: 0 });
        assert!(lost.waits());
        let told = lost.take();
        assert_eq!(told.len(), 2, "{told:?}");
        let (training, serving) = (&told[0], &told[1]);
        assert!(training.contains("claims and states of 20 lanes") && training.contains("and 12 more"), "{training}");
        assert!(serving.contains("receipts and vouchers of 1 lanes") && serving.contains("--data-dir"), "{serving}");
        assert!(!lost.waits() && lost.take().is_empty(), "once");
    }
}
