//! Blocks by number or tag.

use alloy::consensus::BlockHeader;
use alloy::eips::BlockNumberOrTag;
use alloy::providers::Provider;
use tensorlink_node::ports::chain::Head;
use tensorlink_types::B256;

use crate::failure::Failure;
use crate::head::head_in;
use crate::rpc::Rpc;

/// A block, and the one that it follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) head: Head,
    pub(crate) parent: B256,
}

/// The block of this number or tag.
pub(crate) async fn block_of(rpc: &Rpc, tag: BlockNumberOrTag) -> Result<Option<Block>, Failure> {
    let block = rpc.ask("block", |provider| async move { provider.get_block_by_number(tag).hashes().await }).await?;
    Ok(block.map(|block| Block { head: head_in(&block.header), parent: block.header.parent_hash() }))
}

/// Head of the block of this number or tag.
pub(crate) async fn head_of(rpc: &Rpc, tag: BlockNumberOrTag) -> Result<Option<Head>, Failure> {
    Ok(block_of(rpc, tag).await?.map(|block| block.head))
}
