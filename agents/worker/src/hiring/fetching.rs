//! Fetches what a lane computes with, once there is room for it: for an offer, or because the lane is ours.

use std::sync::Arc;

use cid::Cid;
use tensorlink_node::ports::Owner;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::serving::ServingShard;
use tensorlink_node::shard::{Room, Shard, ShardError, ShardSource};
use tensorlink_program::engine::Engine;

use crate::context::Context;

/// Fetches the shard of a stage for an owner, once there is room for it.
///
/// # Errors
/// [`ShardError`].
pub(crate) async fn fetch<E: Engine>(
    context: &Context<E>,
    job: &JobView,
    (stage, manifest): (u16, Cid),
    (owner, room): (Owner, &dyn Room),
) -> Result<Arc<Shard>, ShardError> {
    let source = ShardSource { job: job.id, stage, manifest, holders: vec![job.user] };
    let (chain, store) = (context.ports.chain.as_ref(), context.ports.store.of(owner));
    Ok(Arc::new(Shard::fetch(chain, store.as_ref(), &source, (job.steps_per_interval, room)).await?))
}

/// Fetches a stage of a serving job for an owner, once there is room for it.
///
/// # Errors
/// [`ShardError`].
pub(crate) async fn fetch_serving<E>(
    context: &Context<E>,
    job: &JobView,
    (stage, manifest): (u16, Cid),
    (owner, room): (Owner, &dyn Room),
) -> Result<Arc<ServingShard>, ShardError> {
    let source = ShardSource { job: job.id, stage, manifest, holders: vec![job.user] };
    let (chain, store) = (context.ports.chain.as_ref(), context.ports.store.of(owner));
    let longest = job.steps_per_interval;
    Ok(Arc::new(ServingShard::fetch(chain, store.as_ref(), &source, (longest, room)).await?))
}
