//! Takes vouchers to the chain: that of every epoch that is over, in order, and the last when the job closes.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::ports::{Call, Chain, ChainError, Clock};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::book::{Book, Progress, Signed};
use crate::claims::close;
use crate::role::BACK_OFF;

/// Longest wait between two looks at the chain.
const PERIOD: Duration = Duration::from_secs(10);
/// Attempts to redeem a voucher that the contract refuses.
const ATTEMPTS: u32 = 5;

/// Why nothing was achieved this time. Tried again.
#[derive(Debug, Error)]
enum Failure {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the contract refuses the voucher of epoch {0}")]
    Refused(u32),
}

/// Runs until the job can be settled, or `stop`. Failures are retried for ever, refusals a few times.
pub async fn run((chain, clock): (Arc<dyn Chain>, Arc<dyn Clock>), book: Arc<Book>, stop: CancellationToken) {
    let lane = book.payer().lane;
    let mut changes = book.watch();
    // Refusals of an epoch's voucher.
    let mut refusals = (0, 0);
    loop {
        changes.mark_unchanged();
        let (wait, wakes) = match advance(chain.as_ref(), &book, &mut refusals).await {
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
async fn advance(chain: &dyn Chain, book: &Book, refusals: &mut (u32, u32)) -> Result<bool, Failure> {
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
    loop {
        let redeemed = chain.redeemed(lane).await?;
        let Some((epoch, signed)) = book.due(redeemed.0) else { break };
        if epoch <= redeemed.0 {
            // Mined, and the receipt never seen.
            book.mark(epoch, Progress::Sent)?;
        } else if signed.voucher.tokens <= redeemed.1 {
            tracing::info!(%lane, epoch, "an epoch that pays no more than the one before it is not redeemed");
            book.mark(epoch, Progress::Refused("it pays no more than the epoch before it".into()))?;
        } else {
            redeem(chain, book, (epoch, signed), refusals).await?;
        }
    }
    Ok(over(&job, now))
}

/// Whether anyone may settle the job.
fn over(job: &JobView, now: u64) -> bool {
    job.state == JobState::Closing && now >= job.deadline
}

async fn redeem(
    chain: &dyn Chain,
    book: &Book,
    (epoch, signed): (u32, Signed),
    refusals: &mut (u32, u32),
) -> Result<(), Failure> {
    let lane = book.payer().lane;
    let tokens = signed.voucher.tokens;
    match chain.send(Call::Redeem { voucher: signed.voucher, signature: signed.signature.into() }).await {
        Ok(receipt) => {
            tracing::info!(%lane, epoch, tokens, gas = receipt.gas, "voucher redeemed");
            Ok(book.mark(epoch, Progress::Sent)?)
        }
        Err(ChainError::Reverted { name, arguments }) => {
            *refusals = (epoch, if refusals.0 == epoch { refusals.1.saturating_add(1) } else { 1 });
            tracing::warn!(%lane, epoch, tokens, %name, %arguments, attempt = refusals.1, "the voucher is refused");
            if refusals.1 < ATTEMPTS {
                return Err(Failure::Refused(epoch));
            }
            Ok(book.mark(epoch, Progress::Refused(format!("{name}{arguments}")))?)
        }
        Err(error) => Err(error.into()),
    }
}
