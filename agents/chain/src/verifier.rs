//! The compiled `StepVerifier` in our process: what the contract will say, without a chain.

use alloy::hex;
use alloy::primitives::{Address, I256, TxKind};
use alloy::sol_types::SolCall;
use revm::context::TxEnv;
use revm::context::result::ExecutionResult;
use revm::database::{CacheDB, EmptyDB};
use revm::{DatabaseCommit, ExecuteEvm, MainBuilder};
use tensorlink_bindings::StepVerifier;
use tensorlink_types::abi;

use crate::calls::plain;
use crate::convert::recode;
use crate::evm::{GAS_LIMIT, context, transaction};
use crate::revert::Revert;

const CHAIN: u64 = 1;

/// `StepVerifier` and what it makes for itself, ready to be called.
#[derive(Clone, Debug)]
pub struct StepVerifierVm {
    state: CacheDB<EmptyDB>,
    address: Address,
}

impl Default for StepVerifierVm {
    fn default() -> Self {
        Self::new()
    }
}

impl StepVerifierVm {
    /// The contract as the bindings hold it, created. Were that to fail, every call would find no code, and say so.
    pub fn new() -> Self {
        let (caller, nonce) = (Address::ZERO, 0);
        let mut state = CacheDB::new(EmptyDB::new());
        let creation = TxEnv {
            caller,
            nonce,
            kind: TxKind::Create,
            data: StepVerifier::BYTECODE.clone(),
            gas_limit: GAS_LIMIT,
            chain_id: Some(CHAIN),
            ..TxEnv::default()
        };
        if let Ok(created) = context(state.clone(), CHAIN).build_mainnet().transact(creation) {
            state.commit(created.state);
        }
        Self { state, address: caller.create(nonce) }
    }

    /// The mantissa of one output element, as the contract computes it from the opened bytes of each operand, and
    /// the gas.
    ///
    /// # Errors
    /// The contract's revert; `Unencodable`, `Halt` or `Invalid` where it is not even asked or does not end.
    pub fn recompute(
        &self,
        operator: &abi::Operator,
        element: u64,
        context: &abi::StepContext,
        windows: &[Vec<abi::Window>],
    ) -> Result<(I256, u64), Revert> {
        let failed = |name: &str, reason: String| Revert { name: name.to_owned(), arguments: format!("({reason})") };
        let unencodable = |error: alloy::sol_types::Error| failed("Unencodable", error.to_string());
        let call = StepVerifier::recomputeCall {
            operator: recode(operator).map_err(unencodable)?,
            element,
            context: recode(context).map_err(unencodable)?,
            windows: recode(&windows.to_vec()).map_err(unencodable)?,
        };
        let mut evm = self::context(self.state.clone(), CHAIN).build_mainnet();
        let asked = evm.transact(transaction(Address::ZERO, &plain(self.address, &call), CHAIN));
        let result = asked.map_err(|error| failed("Invalid", error.to_string()))?.result;
        let gas = crate::evm::outcome(&result)?;
        let output = match &result {
            ExecutionResult::Success { output, .. } => output.data().as_ref(),
            _ => &[],
        };
        let mantissa = StepVerifier::recomputeCall::abi_decode_returns(output)
            .map_err(|error| failed("Invalid", format!("{error}: {}", hex::encode(output))))?;
        Ok((mantissa, gas))
    }
}
