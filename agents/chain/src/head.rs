//! The heads of blocks.

use alloy::consensus::BlockHeader;
use alloy::rpc::types::Header;
use tensorlink_node::ports::chain::Head;

/// What is kept of a block's header.
pub(crate) fn head_in(header: &Header) -> Head {
    Head { number: header.number(), hash: header.hash, timestamp: header.timestamp() }
}
