//! What workers record of intervals: asked for, fetched, and made ready to be executed again.

use std::sync::Arc;

use tensorlink_node::interval::{Span, inputs_len, received_roots, state_root_of};
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::replay::Replay;
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_node::{Ports, blocking, files};
use tensorlink_proof::commit::io_root;
use tensorlink_types::Address;

use crate::ask::ask;
use crate::evidence::Evidence;
use crate::finding::{Failed, Gap};
use crate::target::Target;

/// Where a claim's worker keeps the interval.
pub(crate) async fn record(ports: &Ports, target: &Target, worker: Address) -> Result<IntervalRecord, Gap> {
    match ask(ports, worker, &Request::Interval(target.id)).await? {
        Response::Interval(record) if io_root(&record.logs) == target.claim.io => Ok(record),
        Response::Interval(_) => Err(Gap::Record("boundary logs")),
        _ => Err(Gap::OffTopic),
    }
}

/// The recorded interval, checked to start where the claimed one does, and from what that received.
pub(crate) async fn replay(
    evidence: Evidence<'_>,
    target: &Target,
    job: &JobView,
    (worker, record): (Address, &IntervalRecord),
    shard: Arc<Shard>,
) -> Result<Replay, Failed> {
    let program = shard.program.clone();
    let types = || program.state.iter().map(|slot| &slot.ty);
    let state = evidence.fetch(target, &record.state, (worker, files::file_len(types()))).await?;
    let state = files::split(&state, types())?;
    if state_root_of(&state) != target.claim.parentState {
        return Err(Gap::Record("state before the interval").into());
    }
    let steps = job.steps_per_interval;
    let inputs = evidence.fetch(target, &record.inputs, (worker, inputs_len(&program, steps))).await?;
    let span = Span { first_step: target.claim.interval.saturating_mul(steps), steps };
    // What follows from other inputs says nothing about the claim, and would lose us a challenge.
    let received = {
        let (program, inputs) = (program.clone(), inputs.clone());
        blocking(move || received_roots(&program, &inputs, span)).await
    };
    if received != Some((record.logs.fromPrevious, record.logs.fromNext)) {
        return Err(Gap::Record("input").into());
    }
    Ok(Replay { shard, lineage: job.lineage, span, state, inputs })
}
