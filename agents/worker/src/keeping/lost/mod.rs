//! A worker that starts without its data folder: lanes that have a past, by the chain, and no record here are left
//! alone, and it is said what is lost.

mod unsaid;

use std::time::Duration;

use tensorlink_node::Ports;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::ports::{Chain, ChainError};
use tensorlink_types::Lane;
use tensorlink_types::abi::JobKind;
use tokio_util::sync::CancellationToken;

use self::unsaid::Unsaid;
use crate::context::BACK_OFF;
use crate::record::LaneLog;

/// The past is told without a pause; after so long it is over.
const QUIET: Duration = Duration::from_secs(2);

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

/// What a data folder that is gone no longer tells.
pub(crate) struct Lost {
    ports: Ports,
    unsaid: Unsaid,
}

impl Lost {
    pub(crate) fn new(ports: Ports) -> Self {
        Self { ports, unsaid: Unsaid::default() }
    }

    /// Says what was lost, if something was and nothing was told for a while. Who is interrupted begins anew.
    pub(crate) async fn tell(&self) {
        if !self.unsaid.waits() {
            return std::future::pending().await;
        }
        self.ports.clock.sleep(QUIET).await;
        self.unsaid.tell();
    }

    /// Whether a lane of ours is to be left alone: this node has no record of it, and its job has ended, or it has
    /// worked there already. It is left alone, too, where `end` comes before the chain answers.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(crate) async fn leaves_alone(&self, lane: Lane, end: &CancellationToken) -> Result<bool, JournalError> {
        if LaneLog::is_kept(&self.ports.journal, lane)? {
            return Ok(false);
        }
        loop {
            match past(self.ports.chain.as_ref(), lane).await {
                Ok(Past::None) => return Ok(false),
                Ok(Past::Ended) => {
                    tracing::debug!(%lane, "there is no record of it, and its job has ended");
                    return Ok(true);
                }
                Ok(Past::Begun(kind)) => {
                    self.unsaid.add(kind, lane);
                    return Ok(true);
                }
                // A record made now would hide that there was another: nothing is decided before the chain answers.
                Err(error) => tracing::warn!(%lane, %error, "the chain does not tell yet what became of a lane"),
            }
            tokio::select! {
                () = end.cancelled() => return Ok(true),
                () = self.ports.clock.sleep(BACK_OFF) => {}
            }
        }
    }
}
