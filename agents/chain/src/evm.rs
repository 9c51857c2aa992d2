//! The EVM in our process: calls on the state of a block, of which only what they touch is fetched.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use alloy::eips::BlockId;
use alloy::providers::Provider;
use revm::context::result::{EVMError, ExecutionResult, HaltReason};
use revm::context::{BlockEnv, CfgEnv, Context, Journal, TxEnv};
use revm::database::CacheDB;
use revm::database_interface::{DBErrorMarker, Database, DatabaseRef};
use revm::handler::MainnetContext;
use revm::primitives::{B256, TxKind, U256, hardfork::SpecId};
use revm::state::{AccountInfo, Bytecode};
use revm::{ExecuteCommitEvm, MainBuilder};
use tensorlink_node::ports::ChainError;
use tensorlink_node::ports::chain::Head;
use tensorlink_types::Address;
use tokio::runtime::Handle;

use crate::calls::Action;
use crate::failure::Failure;
use crate::revert::Revert;
use crate::rpc::Rpc;

/// Gas a simulated call may use: what a block of any chain we know can hold.
pub(crate) const GAS_LIMIT: u64 = 60_000_000;

/// A context for `db` in which fees, nonces and balances of the sender are nobody's concern.
pub(crate) fn context<DB: Database>(db: DB, chain_id: u64) -> MainnetContext<DB> {
    let mut context: Context<BlockEnv, TxEnv, CfgEnv, DB, Journal<DB>, ()> = Context::new(db, SpecId::PRAGUE);
    context.cfg.chain_id = chain_id;
    context.cfg.disable_nonce_check = true;
    context.cfg.disable_balance_check = true;
    context.cfg.disable_base_fee = true;
    context.cfg.disable_block_gas_limit = true;
    context.cfg.disable_eip3607 = true;
    context
}

/// A transaction of `from` that calls a contract.
pub(crate) fn transaction(from: Address, action: &Action, chain_id: u64) -> TxEnv {
    TxEnv {
        caller: from,
        kind: TxKind::Call(action.to),
        value: action.value,
        data: action.data.clone(),
        gas_limit: GAS_LIMIT,
        chain_id: Some(chain_id),
        ..TxEnv::default()
    }
}

/// Gas of a call that succeeded, or its revert.
pub(crate) fn outcome(result: &ExecutionResult<HaltReason>) -> Result<u64, Revert> {
    match result {
        ExecutionResult::Success { gas, .. } => Ok(gas.tx_gas_used()),
        ExecutionResult::Revert { output, .. } => Err(Revert::decode(output)),
        ExecutionResult::Halt { reason, .. } => Err(Revert { name: "Halt".into(), arguments: format!("({reason:?})") }),
    }
}

/// The state after a block, fetched piece by piece.
#[derive(Clone, Debug)]
struct Fork {
    rpc: Arc<Rpc>,
    block: B256,
    runtime: Handle,
}

/// A piece of state that did not come.
#[derive(Debug)]
struct ForkError(Failure);

impl fmt::Display for ForkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for ForkError {}
impl DBErrorMarker for ForkError {}

impl Fork {
    fn wait<T>(&self, answer: impl Future<Output = Result<T, Failure>>) -> Result<T, ForkError> {
        self.runtime.block_on(answer).map_err(ForkError)
    }
}

impl DatabaseRef for Fork {
    type Error = ForkError;

    fn basic_ref(&self, address: Address) -> Result<Option<AccountInfo>, ForkError> {
        let at = BlockId::hash(self.block);
        let (balance, nonce, code) = self.wait(async {
            tokio::try_join!(
                self.rpc.ask("balance", |p| async move { p.get_balance(address).block_id(at).await }),
                self.rpc.ask("nonce", |p| async move { p.get_transaction_count(address).block_id(at).await }),
                self.rpc.ask("code", |p| async move { p.get_code_at(address).block_id(at).await }),
            )
        })?;
        let code = Bytecode::new_raw(code);
        Ok(Some(AccountInfo::new(balance, nonce, code.hash_slow(), code)))
    }

    fn code_by_hash_ref(&self, _: B256) -> Result<Bytecode, ForkError> {
        // Accounts come with their code.
        Ok(Bytecode::default())
    }

    fn storage_ref(&self, address: Address, index: U256) -> Result<U256, ForkError> {
        let at = BlockId::hash(self.block);
        self.wait(self.rpc.ask("storage", |p| async move { p.get_storage_at(address, index).block_id(at).await }))
    }

    fn block_hash_ref(&self, number: u64) -> Result<B256, ForkError> {
        let block = self.rpc.ask("block", |p| async move { p.get_block_by_number(number.into()).await });
        Ok(self.wait(block)?.map_or(B256::ZERO, |block| block.header.hash))
    }
}

/// The block that a simulated call would be in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// The one before.
    pub(crate) head: Head,
    /// Its time at the earliest, seconds.
    pub(crate) now: u64,
    /// Its base fee, wei for a unit of gas.
    pub(crate) base_fee: u64,
}

/// Executes actions one after the other in a block; returns the gas of the last.
pub(crate) async fn simulate(
    rpc: Arc<Rpc>,
    block: Block,
    chain_id: u64,
    from: Address,
    actions: Vec<Action>,
) -> Result<u64, ChainError> {
    let Block { head, now, base_fee } = block;
    let fork = Fork { rpc, block: head.hash, runtime: Handle::current() };
    let run = move || {
        let mut context = context(CacheDB::new(fork), chain_id);
        context.block.number = U256::from(head.number.saturating_add(1));
        context.block.timestamp = U256::from(head.timestamp.saturating_add(1).max(now));
        context.block.gas_limit = GAS_LIMIT;
        context.block.basefee = base_fee;
        let mut evm = context.build_mainnet();
        let mut gas = 0;
        for action in actions {
            let result = evm.transact_commit(transaction(from, &action, chain_id)).map_err(|error| match error {
                EVMError::Database(ForkError(failure)) => failure.into(),
                other => ChainError::Unavailable(format!("the state it gives cannot be executed on: {other}")),
            })?;
            gas = outcome(&result)?;
        }
        Ok(gas)
    };
    match tokio::task::spawn_blocking(run).await {
        Ok(outcome) => outcome,
        Err(_) => Err(ChainError::Closed),
    }
}
