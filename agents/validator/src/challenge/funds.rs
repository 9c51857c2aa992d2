//! What a challenger puts up for the worker's gas.

use tensorlink_node::ports::{Call, Chain, ChainError};
use tensorlink_proof::challenge::{Move, cost};
use tensorlink_types::U256;

/// Puts up more for the worker's gas, if it has become so dear that what is left might not cover the next answer.
/// Where that fails the game goes on: what is left may do.
pub(super) async fn top_up(chain: &dyn Chain, challenge: U256, bytes: u64) {
    match try_top_up(chain, challenge, bytes).await {
        Ok(None) => {}
        Ok(Some(amount)) => tracing::info!(%challenge, %amount, "gas is dearer: more is put up for the worker's"),
        Err(error) => tracing::warn!(%challenge, %error, "no more is put up for the worker's gas"),
    }
}

async fn try_top_up(chain: &dyn Chain, challenge: U256, bytes: u64) -> Result<Option<U256>, ChainError> {
    // By the newest block: events may wait for confirmation, and nothing is to be put up twice.
    let (left, base_fee) = (chain.deposit_left(challenge).await?, chain.base_fee().await?);
    let Some(amount) = cost::top_up(left, bytes, base_fee) else { return Ok(None) };
    chain.send(Call::Challenge { challenge, step: Box::new(Move::Fund { amount }) }).await?;
    Ok(Some(amount))
}
