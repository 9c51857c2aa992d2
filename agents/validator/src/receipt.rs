//! What is different about receipts (rules C-12, C-13): the program is one of many, and a text starts from no state.

use std::future::Future;
use std::sync::Arc;

use tensorlink_node::interval::Span;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::replay::Replay;
use tensorlink_node::serving::ServingShard;
use tensorlink_node::shard::ShardError;
use tensorlink_node::wire::rpc::IntervalRecord;
use tensorlink_types::{Address, JobId};
use tokio::sync::Mutex;

use crate::evidence::Evidence;
use crate::finding::{Failed, Gap};
use crate::target::Target;

/// The serving stage that was audited last: hashing the programs of every length again for each receipt would cost more
/// than most texts do. It keeps its memory until somebody else needs that.
#[derive(Debug, Default)]
pub(crate) struct LastStage(Mutex<Option<(JobId, u16, Arc<ServingShard>)>>);

impl LastStage {
    /// Forgets it, unless another is being fetched in its place: who is auditing with it has it for as long.
    pub(crate) fn forget(&self) {
        if let Ok(mut last) = self.0.try_lock() {
            *last = None;
        }
    }

    /// A job's stage: the last one, or else what is fetched in its place.
    pub(crate) async fn of(
        &self,
        (job, stage): (JobId, u16),
        fetched: impl Future<Output = Result<ServingShard, ShardError>>,
    ) -> Result<Arc<ServingShard>, ShardError> {
        let mut last = self.0.lock().await;
        if let Some((of, at, shard)) = last.as_ref()
            && (*of, *at) == (job, stage)
        {
            return Ok(Arc::clone(shard));
        }
        // Two do not lie in memory here.
        *last = None;
        let shard = Arc::new(fetched.await?);
        *last = Some((job, stage, Arc::clone(&shard)));
        Ok(shard)
    }
}

/// A recorded text, made ready to be executed again. Its length follows from that of the record; whether the claim is
/// about that one, its logs tell.
pub(crate) async fn repeat(
    evidence: Evidence<'_>,
    target: &Target,
    (stage, job): (&ServingShard, &JobView),
    (worker, record): (Address, &IntervalRecord),
) -> Result<Replay, Failed> {
    let recorded = || Gap::Record("tensor received");
    let longest = stage.recorded(stage.longest).map_err(|_| recorded())?;
    let inputs = evidence.fetch(target, &record.inputs, (worker, longest)).await?;
    let row = stage.recorded(1).map_err(|_| recorded())?;
    let bytes = inputs.len() as u64;
    let tokens = bytes.checked_div(row).filter(|tokens| tokens.checked_mul(row) == Some(bytes));
    let tokens = tokens.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0);
    let tokens = tokens.ok_or_else(recorded)?;
    let shard = Arc::new(stage.shard(tokens).map_err(|_| recorded())?);
    let span = Span { first_step: tokens, steps: 1 };
    Ok(Replay { shard, lineage: job.lineage, span, state: Vec::new(), inputs })
}
