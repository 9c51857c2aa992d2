//! Executes intervals, and signs what came of them.

use std::sync::Arc;

use tensorlink_node::interval::{self, IntervalError, Outcome, Span, Work};
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::shard::Shard;
use tensorlink_node::{Ports, blocking};
use tensorlink_program::engine::Engine;
use tensorlink_program::executor::StageExecutor;
use tensorlink_proof::commit::SenderSignatures;
use tensorlink_training::StageInfo;
use tensorlink_types::abi::BoundaryLogs;

use super::error::{Interruption, LaneError, Stop};
use crate::record::LaneLog;
use crate::training::boundary::{ExchangeError, Neighbours};
use crate::training::link::LinkError;
use crate::training::metrics::Measured;
use crate::training::schedule;

/// Executes an interval of a stage, on a thread of its own.
pub(super) async fn compute<E>(
    (job, stage, shard): (&JobView, u16, &Shard),
    mut executor: StageExecutor<E>,
    mut neighbours: Neighbours,
    interval: u32,
) -> (StageExecutor<E>, Neighbours, Result<Outcome, Stop>, Measured)
where
    E: Engine + Send + 'static,
    E::Tensor: Send + 'static,
{
    let steps = job.steps_per_interval;
    let span = Span { first_step: interval * steps, steps };
    let schedule = schedule::of_program(&shard.program, stage, job.stages);
    let info = shard.info.clone();
    let computing = move || {
        let mut measured = Measured::default();
        let result = work(&mut executor, span, &schedule, &mut neighbours, &info, &mut measured);
        let result = result.and_then(|outcome| {
            measured.end(&executor).map_err(|error| Stop::Fatal(error.into()))?;
            Ok(outcome)
        });
        (executor, neighbours, result, measured)
    };
    blocking(computing).await
}

/// Writes down what is signed about an interval, and exchanges it with the neighbours, on a thread of its own. The one
/// before is on disk.
pub(super) async fn exchange(
    (log, ports): (Arc<LaneLog>, &Ports),
    mut neighbours: Neighbours,
    (interval, outcome): (u32, Outcome),
    measured: &mut Measured,
) -> Result<(Neighbours, Outcome, SenderSignatures), Stop> {
    let (identity, contracts) = (ports.identity.clone(), ports.contracts);
    let exchanging = move || {
        let lane = log.get().lane;
        promise(&log, interval, outcome.logs.roots())?;
        let exchanged = neighbours.exchange_logs(lane, interval, &outcome.logs, &identity, &contracts)?;
        Ok::<_, Stop>((neighbours, outcome, exchanged))
    };
    let (neighbours, outcome, (signatures, signing)) = blocking(exchanging).await?;
    measured.signing = signing;
    Ok((neighbours, outcome, signatures))
}

/// Writes down what is about to be signed about an interval, so that nothing else ever is, whatever is repeated: what a
/// neighbour holds of ours and what we claim must be the same.
fn promise(log: &LaneLog, interval: u32, logs: BoundaryLogs) -> Result<(), Stop> {
    let record = log.get();
    match record.signed(interval) {
        Some(signed) if *signed == logs => Ok(()),
        Some(signed) if (signed.fromPrevious, signed.fromNext) != (logs.fromPrevious, logs.fromNext) => {
            Err(ExchangeError::Changed(interval).into())
        }
        Some(_) => Err(LaneError::Unsteady(interval).into()),
        // Final and forgotten while it was repeated: what was signed then is not known any more.
        None if interval != record.next => Err(Interruption::LongDone(interval).into()),
        None => Ok(log.update(|record| record.promised = Some((interval, logs))).map_err(LaneError::from)?),
    }
}

fn work<E: Engine>(
    executor: &mut StageExecutor<E>,
    span: Span,
    schedule: &[Work],
    neighbours: &mut Neighbours,
    info: &StageInfo,
    measured: &mut Measured,
) -> Result<Outcome, Stop> {
    let after_step = |_, executor: &mut StageExecutor<E>| measured.take(executor, info);
    interval::run(executor, span, schedule, neighbours, after_step).map_err(|error| match error {
        IntervalError::Boundary(link) => link.into(),
        IntervalError::Execute(error) => Stop::Fatal(error.into()),
        IntervalError::Log(error) => Stop::Fatal(error.into()),
        // The neighbour sent something that is no tensor of the type: drop it and meet again.
        error @ IntervalError::Tensor { .. } => {
            let (expected, got) = ("a boundary tensor".to_owned(), error.to_string());
            LinkError::Unexpected { expected, got }.into()
        }
    })
}

#[cfg(test)]
mod tests {
    use tensorlink_node::Journal;
    use tensorlink_types::{Address, B256, JobId, Lane};

    use super::*;
    use crate::record::LaneRecord;

    fn logs(received: u8, sent: u8) -> BoundaryLogs {
        let zero = B256::ZERO;
        let (from, to) = (B256::repeat_byte(received), B256::repeat_byte(sent));
        BoundaryLogs { fromPrevious: from, toPrevious: zero, fromNext: zero, toNext: to }
    }

    /// A neighbour that has an old interval repeated until it is final and forgotten must not get a new promise in
    /// place of the last one.
    #[test]
    fn what_is_forgotten_is_not_signed_again_and_displaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let lane = Lane { job: JobId(1), stage: 1, replica: 0 };
        let log = LaneLog::open(journal, LaneRecord::new(lane, Address::ZERO, String::new())).unwrap();
        log.update(|record| record.next = 5).unwrap();
        assert!(promise(&log, 5, logs(1, 1)).is_ok());
        assert!(matches!(promise(&log, 2, logs(2, 2)), Err(Stop::Again(Interruption::LongDone(2)))));
        assert_eq!(log.get().promised, Some((5, logs(1, 1))));
        let changed = promise(&log, 5, logs(2, 2));
        assert!(matches!(changed, Err(Stop::Again(Interruption::Exchange(ExchangeError::Changed(5))))));
        assert!(matches!(promise(&log, 5, logs(1, 2)), Err(Stop::Fatal(LaneError::Unsteady(5)))));
        assert!(promise(&log, 5, logs(1, 1)).is_ok());
    }
}
