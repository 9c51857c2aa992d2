//! Why the chain does not do or say what it is asked.

use tensorlink_types::{Address, B256, U256};
use thiserror::Error;

/// Why the chain did not do or say what we asked.
#[derive(Debug, Error)]
pub enum ChainError {
    /// The contract refused. Retrying the same call is pointless.
    #[error("the contract refuses: {name}{arguments}")]
    Reverted {
        /// Name of the custom error, e.g. `WindowOpen`; `Unknown` if none of ours.
        name: String,
        /// Its arguments for people, e.g. `(1700000000)`.
        arguments: String,
    },
    /// The endpoint is down, slow or talks nonsense. Retried with back-off inside the adapter before this is returned.
    #[error("the RPC endpoint does not answer usefully: {0}; check --rpc")]
    Unavailable(String),
    /// The endpoint serves another chain than the deployment file names.
    #[error("the endpoint is chain {actual}, the deployment is for chain {expected}: check --rpc and --deployment")]
    WrongChain {
        /// Of the deployment.
        expected: u64,
        /// Of the endpoint.
        actual: u64,
    },
    /// The account cannot pay.
    #[error("{account} has {balance} wei of {asset}, needs {needed}: send it more {asset} first")]
    InsufficientFunds {
        /// Who pays.
        account: Address,
        /// `ETH` or `SNO`.
        asset: &'static str,
        /// What it has.
        balance: U256,
        /// What it needs.
        needed: U256,
    },
    /// The call can wait, and the day's budget for gas has no room for it.
    #[error(
        "the budget for gas is {budget} wei a day, {spent} were paid in the last 24 hours and this costs up to {cost}: it waits for room; --gas-budget raises it"
    )]
    OverBudget {
        /// Most that is paid in 24 hours, wei.
        budget: U256,
        /// What was paid, wei.
        spent: U256,
        /// What the call costs at most, wei; 0 where it was not asked.
        cost: U256,
    },
    /// The transaction was not mined in time although its fee was raised. It may still be; its effect must be looked up
    /// before a retry.
    #[error("transaction {0} is not mined yet although its fee was raised")]
    Pending(B256),
    /// This node is shutting down, and has sent a transaction whose fate it did not learn.
    #[error("interrupted: transaction {0} is sent, and may still be mined")]
    Interrupted(B256),
    /// A reorganisation has undone what confirmed events told: whoever folds them begins anew.
    #[error("a reorganisation has undone block {from} and later ones: what events have told is folded anew")]
    Undone {
        /// The first block that was undone.
        from: u64,
    },
    /// Events end though this node goes on.
    #[error("the chain is not followed any more: what was logged last says why")]
    Ended,
    /// This node is shutting down.
    #[error("the node is shutting down")]
    Closed,
}
