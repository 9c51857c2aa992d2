//! Which lanes of ours are left alone: those that have a past, by the chain, and no record here.

use tensorlink_model::CacheEngine;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::ports::{Chain, ChainError};
use tensorlink_types::Lane;
use tensorlink_types::abi::JobKind;

use crate::record::LaneLog;
use crate::role::{BACK_OFF, Worker};

/// What the chain knows of a lane that this node has no record of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Past {
    /// Nothing happened yet.
    None,
    /// It made claims or redeemed vouchers.
    Begun(JobKind),
    /// Its job is settled.
    Ended,
}

/// What the chain knows of a lane.
async fn past(chain: &dyn Chain, lane: Lane) -> Result<Past, ChainError> {
    let Some(job) = chain.job(lane.job).await? else { return Ok(Past::None) };
    let begun = match job.kind {
        _ if job.state == JobState::Settled => return Ok(Past::Ended),
        JobKind::Serving => chain.redeemed(lane).await?.epoch > 0,
        JobKind::Training => chain.is_committed(lane, 0).await? || !chain.seal(lane, 0).await?.is_zero(),
    };
    Ok(if begun { Past::Begun(job.kind) } else { Past::None })
}

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Whether a lane of ours is to be left alone: this node has no record of it, and its job has ended, or it has
    /// worked there already.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(crate) async fn leaves_alone(&self, lane: Lane) -> Result<bool, JournalError> {
        if LaneLog::is_kept(&self.context.ports.journal, lane)? {
            return Ok(false);
        }
        loop {
            match past(self.context.ports.chain.as_ref(), lane).await {
                Ok(Past::None) => return Ok(false),
                Ok(Past::Ended) => {
                    tracing::debug!(%lane, "there is no record of it, and its job has ended");
                    return Ok(true);
                }
                Ok(Past::Begun(kind)) => {
                    self.lost.add(kind, lane);
                    return Ok(true);
                }
                // A record made now would hide that there was another: nothing is decided before the chain answers.
                Err(error) => tracing::warn!(%lane, %error, "the chain does not tell yet what became of a lane"),
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return Ok(true),
                () = self.context.ports.clock.sleep(BACK_OFF) => {}
            }
        }
    }
}
