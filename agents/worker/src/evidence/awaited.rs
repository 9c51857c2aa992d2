//! For whom a lane waits, and how long in vain: what tells a neighbour that keeps something from us from one that is
//! only slow. And what a neighbour has said on chain only.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tensorlink_node::wire::frame::SignedLog;
use tensorlink_proof::commit::Boundary;
use tensorlink_types::Lane;
use tensorlink_types::abi::EdgeLog;
use tokio::sync::watch;

/// Attestations from the chain that are remembered: those of both neighbours, for the interval that is worked on and
/// the one before.
const ATTESTATIONS: usize = 4;

/// A neighbour's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The stage before.
    Previous,
    /// The stage after.
    Next,
}

impl Side {
    /// In the order of stages.
    pub const BOTH: [Self; 2] = [Self::Previous, Self::Next];

    /// At which end of a boundary the neighbour is.
    pub const fn of(boundary: Boundary) -> Self {
        match boundary {
            Boundary::FromPrevious | Boundary::ToPrevious => Self::Previous,
            Boundary::FromNext | Boundary::ToNext => Self::Next,
        }
    }

    /// The neighbour's lane; none beyond the ends of a job of so many stages.
    pub fn lane(self, own: Lane, stages: u16) -> Option<Lane> {
        let stage = match self {
            Self::Previous => own.stage.checked_sub(1),
            Self::Next => own.stage.checked_add(1).filter(|stage| *stage < stages),
        };
        stage.map(|stage| Lane { stage, ..own })
    }
}

/// What came from one side.
#[derive(Clone, Copy, Default, Debug)]
struct Got {
    /// Step and micro-batch of the last tensor; what comes again after a neighbour has begun anew is none.
    last: Option<(u32, u32)>,
    /// How long we have waited since, by now.
    waited: Duration,
}

#[derive(Clone, Copy, Default, Debug)]
struct Known {
    waiting: Option<(Side, Instant)>,
    previous: Got,
    next: Got,
}

impl Known {
    const fn got(&mut self, side: Side) -> &mut Got {
        match side {
            Side::Previous => &mut self.previous,
            Side::Next => &mut self.next,
        }
    }

    fn pause(&mut self, now: Instant) {
        if let Some((side, since)) = self.waiting.take() {
            let waited = now.saturating_duration_since(since);
            let got = self.got(side);
            got.waited = got.waited.saturating_add(waited);
        }
    }
}

/// Counts the time that a lane waits for each of its neighbours, through however many streams, until something new
/// comes from it.
#[derive(Debug, Default)]
pub struct Awaited {
    known: Mutex<Known>,
    attestations: watch::Sender<Vec<SignedLog>>,
}

impl Awaited {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on we wait for this side, be it for a stream, a tensor or an attestation, or for it to take what
    /// we send.
    pub fn begin(&self, side: Side, now: Instant) {
        let mut known = self.known();
        if known.waiting.is_none_or(|(of, _)| of != side) {
            known.pause(now);
            known.waiting = Some((side, now));
        }
    }

    /// From now on we wait for nobody.
    pub fn pause(&self, now: Instant) {
        self.known().pause(now);
    }

    /// The tensor of a step (absolute) and micro-batch came.
    pub fn tensor(&self, side: Side, place: (u32, u32), now: Instant) {
        let mut known = self.known();
        known.pause(now);
        let got = known.got(side);
        if got.last.is_none_or(|last| last < place) {
            *got = Got { last: Some(place), waited: Duration::ZERO };
        }
    }

    /// The neighbour's attestation of all that it sent in an interval came.
    pub fn attestation(&self, side: Side, now: Instant) {
        let mut known = self.known();
        known.pause(now);
        known.got(side).waited = Duration::ZERO;
    }

    /// A neighbour's attestation of what it sent us was shown on chain.
    pub fn shown(&self, attestation: SignedLog) {
        self.attestations.send_modify(|attestations| {
            let old = attestations.len().saturating_add(1).saturating_sub(ATTESTATIONS);
            attestations.drain(..old);
            attestations.push(attestation);
        });
    }

    /// Waits until a neighbour's attestation of just this log is shown on chain.
    pub async fn on_chain(&self, log: &EdgeLog) -> SignedLog {
        let mut attestations = self.attestations.subscribe();
        loop {
            if let Some(attestation) =
                attestations.borrow_and_update().iter().find(|attestation| attestation.log == *log)
            {
                return attestation.clone();
            }
            if attestations.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// How long we have waited for this side, and wait for it now; nothing while it is not this side that we wait for.
    pub fn in_vain(&self, side: Side, now: Instant) -> Duration {
        let mut known = *self.known();
        match known.waiting {
            Some((of, since)) if of == side => {
                known.got(side).waited.saturating_add(now.saturating_duration_since(since))
            }
            _ => Duration::ZERO,
        }
    }

    /// Entry in the log (C-8) of an interval of `steps` steps, from `first_step` on, of the first tensor that has not
    /// come; none if all have.
    pub fn missing(&self, side: Side, (first_step, steps): (u32, u32), micro_batches: u32) -> Option<u32> {
        let last = self.known().got(side).last.filter(|(step, _)| *step >= first_step);
        let Some((step, micro_batch)) = last else { return Some(0) };
        let entry =
            step.checked_sub(first_step)?.checked_mul(micro_batches)?.checked_add(micro_batch)?.checked_add(1)?;
        (entry < steps.checked_mul(micro_batches)?).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::{B256, JobId};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn time_counts_for_whom_we_wait_until_something_new_comes() {
        let (awaited, start) = (Awaited::default(), Instant::now());
        let at = |seconds: u32| start + SECOND * seconds;
        assert_eq!(awaited.in_vain(Side::Next, at(9)), Duration::ZERO);
        awaited.begin(Side::Next, at(0));
        // Asked anew: we still wait.
        awaited.begin(Side::Next, at(3));
        assert_eq!(awaited.in_vain(Side::Next, at(5)), SECOND * 5);
        assert_eq!(awaited.in_vain(Side::Previous, at(5)), Duration::ZERO);
        awaited.tensor(Side::Next, (7, 1), at(5));
        assert_eq!(awaited.in_vain(Side::Next, at(50)), Duration::ZERO, "we compute");

        awaited.begin(Side::Next, at(50));
        awaited.begin(Side::Previous, at(52));
        assert_eq!(awaited.in_vain(Side::Next, at(60)), Duration::ZERO, "it is another that we wait for");
        awaited.begin(Side::Next, at(60));
        assert_eq!(awaited.in_vain(Side::Next, at(61)), SECOND * 3);
        // What came before comes again: nothing new.
        awaited.tensor(Side::Next, (7, 0), at(61));
        awaited.begin(Side::Next, at(61));
        assert_eq!(awaited.in_vain(Side::Next, at(62)), SECOND * 4);
        awaited.pause(at(62));
        assert_eq!(awaited.in_vain(Side::Next, at(70)), Duration::ZERO);
        awaited.begin(Side::Next, at(70));
        awaited.attestation(Side::Next, at(71));
        awaited.begin(Side::Next, at(71));
        assert_eq!(awaited.in_vain(Side::Next, at(72)), SECOND);
        assert_eq!(awaited.in_vain(Side::Previous, at(72)), Duration::ZERO);
    }

    #[test]
    fn the_first_missing_tensor_of_an_interval() {
        let (awaited, now) = (Awaited::default(), Instant::now());
        let missing = |first_step| awaited.missing(Side::Previous, (first_step, 4), 3);
        assert_eq!(missing(8), Some(0));
        awaited.tensor(Side::Previous, (7, 2), now);
        assert_eq!(missing(8), Some(0), "that was of the interval before");
        awaited.tensor(Side::Previous, (8, 0), now);
        assert_eq!(missing(8), Some(1));
        awaited.tensor(Side::Previous, (10, 2), now);
        awaited.tensor(Side::Previous, (8, 0), now);
        assert_eq!(missing(8), Some(9), "what came is not asked for again");
        awaited.tensor(Side::Previous, (11, 2), now);
        assert_eq!((missing(8), missing(12)), (None, Some(0)));
        assert_eq!(awaited.missing(Side::Next, (8, 4), 3), Some(0));
    }

    #[tokio::test]
    async fn an_attestation_on_chain_reaches_who_waits_for_just_that() {
        let log = |root: u8| EdgeLog {
            job: 1,
            replica: 0,
            fromStage: 1,
            toStage: 0,
            interval: 2,
            root: B256::repeat_byte(root),
        };
        let attestation = |root: u8| SignedLog { log: log(root), signature: vec![root] };
        let awaited = Awaited::default();
        let say = async {
            awaited.shown(attestation(1));
            tokio::task::yield_now().await;
            awaited.shown(attestation(2));
        };
        let right = log(2);
        let (heard, ()) = tokio::join!(awaited.on_chain(&right), say);
        assert_eq!(heard, attestation(2));
        for root in 3..9 {
            awaited.shown(attestation(root));
        }
        assert_eq!(awaited.on_chain(&log(5)).await, attestation(5));
        assert_eq!(awaited.attestations.borrow().len(), ATTESTATIONS);
    }

    #[test]
    fn neighbours_are_within_the_job() {
        let lane = |stage| Lane { job: JobId(1), stage, replica: 2 };
        assert_eq!((Side::Previous.lane(lane(0), 2), Side::Next.lane(lane(0), 2)), (None, Some(lane(1))));
        assert_eq!((Side::Previous.lane(lane(1), 2), Side::Next.lane(lane(1), 2)), (Some(lane(0)), None));
    }
}
