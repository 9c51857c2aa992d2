//! Takes vouchers to the chain: that of every epoch that is over, in order, and the last when the job closes.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::{JobState, JobView, RedeemedView};
use tensorlink_node::ports::{Call, Chain, ChainError, Clock};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::book::{Book, Progress, Signed};
use crate::context::BACK_OFF;
use crate::keeping::close;

/// Longest wait between two looks at the chain.
const PERIOD: Duration = Duration::from_secs(10);

/// Why nothing was achieved this time. Tried again.
#[derive(Debug, Error)]
enum Failure {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Runs until the job can be settled as far as this lane goes, or `stop`. Failures and refusals are retried until then:
/// no later epoch can be redeemed without the one that is due.
pub async fn run((chain, clock): (Arc<dyn Chain>, Arc<dyn Clock>), book: Arc<Book>, stop: CancellationToken) {
    let lane = book.payer().lane;
    let mut changes = book.watch();
    // The last epoch whose voucher was refused.
    let mut refused = 0;
    loop {
        changes.mark_unchanged();
        let (wait, wakes) = match advance(chain.as_ref(), &book, &mut refused).await {
            Ok(true) => return,
            Ok(false) => (PERIOD, true),
            Err(failure) => {
                tracing::warn!(%lane, %failure, "vouchers wait for the chain");
                (BACK_OFF, false)
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            Ok(()) = changes.changed(), if wakes => {}
            () = clock.sleep(wait) => {}
        }
    }
}

/// Redeems what is due; whether the job is over.
async fn advance(chain: &dyn Chain, book: &Book, refused: &mut u32) -> Result<bool, Failure> {
    let lane = book.payer().lane;
    let Some(job) = chain.job(lane.job).await? else { return Ok(false) };
    let now = chain.head().await?.timestamp;
    match job.state {
        JobState::Posted | JobState::Accepted => return Ok(false),
        JobState::Running if job.deadline < now => close(chain, &job).await?,
        JobState::Running => {}
        JobState::Closing => book.end_epoch(now)?,
        JobState::Settled => return Ok(true),
    }
    let open = job.state == JobState::Running || now < job.deadline;
    loop {
        let redeemed = chain.redeemed(lane).await?;
        let Some((epoch, signed)) = book.due(redeemed.epoch).filter(|_| open) else {
            return Ok(over(&job, redeemed, now));
        };
        if epoch <= redeemed.epoch {
            // Mined, and the receipt never seen.
            book.mark(epoch, Progress::Sent)?;
        } else if !redeem(chain, book, (epoch, signed), refused).await? {
            return Ok(false);
        }
    }
}

/// Whether anyone may settle the job, for all that this lane has redeemed (rule P-20).
fn over(job: &JobView, last: RedeemedView, now: u64) -> bool {
    job.state == JobState::Closing && now >= job.deadline.max(last.at.saturating_add(job.challenge_window))
}

/// Whether the voucher is redeemed; if not, the contract refuses it.
async fn redeem(
    chain: &dyn Chain,
    book: &Book,
    (epoch, signed): (u32, Signed),
    refused: &mut u32,
) -> Result<bool, Failure> {
    let lane = book.payer().lane;
    let tokens = signed.voucher.tokens;
    match chain.send(Call::Redeem { voucher: signed.voucher, signature: signed.signature.into() }).await {
        Ok(receipt) => {
            tracing::info!(%lane, epoch, tokens, gas = receipt.gas, "voucher redeemed");
            book.mark(epoch, Progress::Sent)?;
            Ok(true)
        }
        Err(ChainError::Reverted { name, arguments }) => {
            // Said once: it may be refused as long as the job lasts.
            if *refused != epoch {
                tracing::warn!(%lane, epoch, tokens, %name, %arguments, "the voucher is refused; it is tried until the job ends");
            }
            *refused = epoch;
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
