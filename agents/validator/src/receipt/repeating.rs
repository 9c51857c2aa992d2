//! A serving stage is fetched, and a recorded text made ready to be executed again.

use std::sync::Arc;

use tensorlink_node::interval::Span;
use tensorlink_node::ports::Owner;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::replay::Replay;
use tensorlink_node::serving::ServingShard;
use tensorlink_node::shard::{ShardError, ShardSource};
use tensorlink_node::wire::rpc::IntervalRecord;
use tensorlink_program::engine::Engine;

use crate::auditor::Auditor;
use crate::finding::{Failed, Gap};
use crate::target::Target;

impl<E> Auditor<E>
where
    E: Engine + Send + 'static,
{
    /// A serving stage, checked against the chain when it was fetched.
    pub(crate) async fn stage(&self, source: &ShardSource, longest: u32) -> Result<Arc<ServingShard>, ShardError> {
        let mut last = self.stages.0.lock().await;
        if let Some((job, stage, shard)) = last.as_ref()
            && (*job, *stage) == (source.job, source.stage)
        {
            return Ok(Arc::clone(shard));
        }
        // Two do not lie in memory here.
        *last = None;
        let (chain, store) = (self.ports.chain.as_ref(), self.ports.store.of(Owner::Nobody));
        let shard = Arc::new(ServingShard::fetch(chain, store.as_ref(), source, (longest, self)).await?);
        *last = Some((source.job, source.stage, Arc::clone(&shard)));
        Ok(shard)
    }

    /// The recorded text. Its length follows from that of the record; whether the claim is about that one, its
    /// logs tell.
    pub(crate) async fn repeat(
        &self,
        target: &Target,
        (stage, job): (&ServingShard, &JobView),
        (worker, record): (tensorlink_types::Address, &IntervalRecord),
    ) -> Result<Replay, Failed> {
        let recorded = || Gap::Record("tensor received");
        let longest = stage.recorded(stage.longest).map_err(|_| recorded())?;
        let inputs = self.fetch_for(target, &record.inputs, (worker, longest)).await?;
        let row = stage.recorded(1).map_err(|_| recorded())?;
        let bytes = inputs.len() as u64;
        let tokens = bytes.checked_div(row).filter(|tokens| tokens.checked_mul(row) == Some(bytes));
        let tokens = tokens.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0);
        let tokens = tokens.ok_or_else(recorded)?;
        let shard = Arc::new(stage.shard(tokens).map_err(|_| recorded())?);
        let span = Span { first_step: tokens, steps: 1 };
        Ok(Replay { shard, lineage: job.lineage, span, state: Vec::new(), inputs })
    }
}
