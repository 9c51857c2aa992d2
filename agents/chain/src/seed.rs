//! Seeds of the beacon: from the contract, or from the headers that prove them to it.

use alloy::consensus::BlockHeader;
use alloy::providers::Provider;
use alloy::rlp::encode;
use alloy::rpc::types::Header;
use tensorlink_node::ports::ChainError;
use tensorlink_node::ports::chain::Seed;
use tensorlink_types::{Bytes, keccak256};

use crate::chain::AlloyChain;
use crate::failure::Failure;

/// Blocks whose hashes a contract can know (EIP-2935), less some that may come before the seed is recorded.
const KNOWN: u64 = 8_000;

impl AlloyChain {
    /// As [`Chain::seed`](tensorlink_node::ports::Chain::seed).
    pub(crate) async fn seed_of(&self, period: u64) -> Result<Option<Seed>, ChainError> {
        let recorded = self.views().seed(period).await?;
        if !recorded.is_zero() {
            return Ok(Some(Seed { value: recorded, headers: None }));
        }
        let begins = period.saturating_mul(self.views().beacon_period().await?);
        let newest = self.confirmed().await?;
        if self.header(newest).await?.timestamp() < begins {
            return Ok(None);
        }
        // The first block of the period lies in (early, late].
        let (mut early, mut late) = (newest.saturating_sub(KNOWN), newest);
        if self.header(early).await?.timestamp() >= begins {
            return Ok(None);
        }
        while late.saturating_sub(early) > 1 {
            let middle = early.midpoint(late);
            if self.header(middle).await?.timestamp() < begins { early = middle } else { late = middle }
        }
        let (before, first) = (self.header(early).await?, self.header(late).await?);
        if first.parent_hash() != before.hash {
            return Err(Failure::Unavailable("its blocks change: ask again".into()).into());
        }
        let value = first.mix_hash().filter(|seed| !seed.is_zero());
        let value = value.ok_or_else(|| Failure::Unavailable("its blocks have no prevrandao (EIP-4399)".into()))?;
        Ok(Some(Seed { value, headers: Some((rlp(&before)?, rlp(&first)?)) }))
    }

    async fn header(&self, number: u64) -> Result<Header, Failure> {
        let find =
            |p: alloy::providers::RootProvider| async move { p.get_block_by_number(number.into()).hashes().await };
        let block = self.rpc().ask("block", find).await?;
        let block = block.ok_or_else(|| Failure::Unavailable(format!("it does not have block {number}")))?;
        Ok(block.header)
    }
}

/// A header as its hash is taken of it.
fn rlp(header: &Header) -> Result<Bytes, Failure> {
    let encoded = encode(&header.inner);
    if keccak256(&encoded) == header.hash {
        return Ok(encoded.into());
    }
    Err(Failure::Unavailable(format!(
        "the header of its block {} has fields that are unknown here: update this program",
        header.number()
    )))
}
