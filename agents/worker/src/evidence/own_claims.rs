//! Claims of ours by their ids, with what it takes to repeat them: of lanes that train, and receipts of those that
//! serve.

use std::sync::Arc;

use cid::Cid;
use tensorlink_model::CacheEngine;
use tensorlink_node::interval::Span;
use tensorlink_node::wire::rpc::Response;
use tensorlink_types::ClaimId;

use super::repeatable::Repeatable;
use crate::context::Context;
use crate::keeping::Shards;
use crate::record::Interval;
use crate::serving::{Receipted, Serving};
use crate::state::Lanes;

/// Finds claims of ours.
pub(crate) struct OwnClaims<E> {
    context: Arc<Context<E>>,
    lanes: Arc<Lanes>,
    shards: Arc<Shards<E>>,
    serving: Arc<Serving<E>>,
}

impl<E> OwnClaims<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    pub(crate) fn new(
        context: Arc<Context<E>>,
        lanes: Arc<Lanes>,
        shards: Arc<Shards<E>>,
        serving: Arc<Serving<E>>,
    ) -> Self {
        Self { context, lanes, shards, serving }
    }

    /// CID of the state that a claim of ours ends in; none if it is no claim of ours.
    pub(crate) fn end_state(&self, claim: ClaimId) -> Option<Response> {
        let (interval, record) = self.lanes.find(claim, &self.context.ports.contracts)?;
        // Another replica might ask, to claim the same.
        if !interval.confirmed {
            return Some(Response::Declined("the claim is not confirmed on chain yet: ask again".into()));
        }
        let file = record.state_after(interval.claim.interval).and_then(|cid| cid.parse::<Cid>().ok());
        let declined = || Response::Declined("the state that the claim ends in is not kept any more".into());
        Some(file.map_or_else(declined, |cid| Response::EndState(cid.to_bytes())))
    }

    /// Finds a claim of ours by its id, with its shard.
    ///
    /// # Errors
    /// The answer to who asks about it.
    pub(crate) async fn repeatable(&self, id: ClaimId) -> Result<Repeatable, Response> {
        if let Some(receipted) = self.serving.receipt(id).await? {
            return Ok(self.of_receipt(id, receipted));
        }
        let found = self.lanes.find(id, &self.context.ports.contracts);
        let (interval, record) =
            found.ok_or_else(|| Response::Declined("no such claim of this worker, or it is long final".into()))?;
        let decline = |reason: String| Response::Declined(reason);
        let job = self.context.ports.chain.job(record.lane.job).await.map_err(|e| decline(e.to_string()))?;
        let job = job.ok_or_else(|| decline("no such job".into()))?;
        let shard = self.shards.of(&record, &job).await.map_err(decline)?;
        let lineage = record.lineage.ok_or_else(|| decline("the job has not started".into()))?;
        let steps = job.steps_per_interval;
        let span = Span { first_step: interval.claim.interval.saturating_mul(steps), steps };
        Ok(Repeatable { id, interval, shard, lineage, span })
    }

    fn of_receipt(&self, id: ClaimId, Receipted { lane, entry, shard }: Receipted) -> Repeatable {
        let tokens = entry.receipt.tokens;
        let lineage = self.lanes.log(lane).and_then(|log| log.get().lineage).unwrap_or_default();
        // The job's start was confirmed before anything was served.
        let interval = Interval {
            confirmed: true,
            ..Interval::new(entry.receipt.claim, entry.receipt.logs, String::new(), entry.inputs)
        };
        Repeatable { id, interval, shard: Arc::new(shard), lineage, span: Span { first_step: tokens, steps: 1 } }
    }
}

/// Why a claim of ours cannot be repeated, as who asks is told.
pub(crate) fn reason(declined: Response) -> String {
    match declined {
        Response::Declined(reason) => reason,
        _ => "no claim of this worker".to_owned(),
    }
}
