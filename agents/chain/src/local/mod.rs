//! A local chain by anvil: the contracts created without forge, and money for whoever asks. For networks on one
//! machine; no account of a real chain can be used this way, as the node must hold its key.

mod parameters;

use std::time::Duration;

use alloy::network::{Ethereum, TransactionBuilder};
use alloy::providers::{Provider, RootProvider};
use alloy::rpc::types::TransactionRequest;
use alloy::sol_types::SolCall;
use alloy::transports::TransportError;
use serde_json::Value;
use tensorlink_bindings::creation::Parameters;
use tensorlink_bindings::{Creation, SNO};
use tensorlink_node::ports::chain::Deployment;
use tensorlink_types::{Address, B256, U256};
use thiserror::Error;

use crate::deployment::created;

/// Blocks that take up all transactions which are sent at once, at most.
const BLOCKS: u64 = 64;
/// Gas of one of them, at most.
const GAS: u64 = 10_000_000;
/// Between two looks for a receipt, and how many there are at least.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u64 = 300;

/// Why a local chain did not do what it was told.
#[derive(Debug, Error)]
pub enum LocalError {
    /// It does not answer, or refuses.
    #[error("the local chain does not do it: {0}")]
    Rpc(#[from] TransportError),
    /// The endpoint is no URL.
    #[error("{0:?} is not a URL")]
    Url(String),
    /// A transaction waits.
    #[error("transaction {0} is not mined")]
    NotMined(B256),
    /// A transaction failed.
    #[error("transaction {0} reverted")]
    Reverted(B256),
    /// The parameters that are part of the program cannot be read.
    #[error("deploy/local-parameters.toml: {0}")]
    Parameters(String),
}

/// A chain of anvil's, which mines a block every so many seconds and holds the keys of its first accounts.
#[derive(Clone, Debug)]
pub struct LocalChain {
    provider: RootProvider<Ethereum>,
    block_time: u64,
}

impl LocalChain {
    /// The chain behind an `http://` endpoint, with a block every `block_time` seconds.
    ///
    /// # Errors
    /// [`LocalError::Url`].
    pub fn at(url: &str, block_time: u64) -> Result<Self, LocalError> {
        let endpoint = url.parse().map_err(|_| LocalError::Url(url.to_owned()))?;
        Ok(Self { provider: RootProvider::new_http(endpoint), block_time })
    }

    /// The accounts whose keys anvil holds.
    ///
    /// # Errors
    /// [`LocalError::Rpc`].
    pub async fn accounts(&self) -> Result<Vec<Address>, LocalError> {
        Ok(self.provider.get_accounts().await?)
    }

    /// The number of the newest block.
    ///
    /// # Errors
    /// [`LocalError::Rpc`].
    pub async fn height(&self) -> Result<u64, LocalError> {
        Ok(self.provider.get_block_number().await?)
    }

    /// What an account has, wei of ETH.
    ///
    /// # Errors
    /// [`LocalError::Rpc`].
    pub async fn eth(&self, account: Address) -> Result<U256, LocalError> {
        Ok(self.provider.get_balance(account).await?)
    }

    /// The parameters of `deploy/local-parameters.toml`.
    ///
    /// # Errors
    /// [`LocalError::Parameters`].
    pub fn parameters() -> Result<Parameters, LocalError> {
        parameters::parameters()
    }

    /// Creates the contracts from an account that has sent nothing yet; `genesis` get the first SNO, an equal share for
    /// each entry.
    ///
    /// # Errors
    /// [`LocalError`].
    pub async fn deploy(
        &self,
        from: Address,
        genesis: &[Address],
        parameters: &Parameters,
    ) -> Result<Deployment, LocalError> {
        let creation = Creation::new(from, 0, parameters, genesis);
        let create = |(nonce, code): (u64, _)| TransactionRequest::default().with_deploy_code(code).with_nonce(nonce);
        self.send_all(from, (0..).zip(creation.code.iter().cloned()).map(create)).await?;
        Ok(created(&creation, self.provider.get_chain_id().await?))
    }

    /// Gives SNO of an account whose key anvil holds to others, by as few blocks as it takes, made at once.
    ///
    /// # Errors
    /// [`LocalError`].
    pub async fn give(&self, (sno, from): (Address, Address), to: &[(Address, U256)]) -> Result<(), LocalError> {
        self.send_all(from, to.iter().map(|(to, amount)| transfer(sno, *to, *amount))).await
    }

    /// Gives SNO while others use the chain: the transaction waits for its block as theirs do.
    ///
    /// # Errors
    /// [`LocalError`].
    pub async fn transfer(&self, (sno, from): (Address, Address), to: Address, amount: U256) -> Result<(), LocalError> {
        let request = transfer(sno, to, amount).with_from(from).with_gas_limit(GAS);
        let transaction = *self.provider.send_transaction(request).await?.tx_hash();
        // As many looks as three blocks take, where those are far apart.
        let looks = LOOKS.max(self.block_time.saturating_mul(30));
        for _ in 0..looks {
            if let Some(receipt) = self.provider.get_transaction_receipt(transaction).await? {
                return if receipt.status() { Ok(()) } else { Err(LocalError::Reverted(transaction)) };
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(LocalError::NotMined(transaction))
    }

    /// Adds ETH out of nothing, at once.
    ///
    /// # Errors
    /// [`LocalError::Rpc`].
    pub async fn add_eth(&self, to: Address, amount: U256) -> Result<(), LocalError> {
        let has = self.eth(to).await?;
        let () = self.provider.client().request("anvil_setBalance", (to, has.saturating_add(amount))).await?;
        Ok(())
    }

    /// Sends from an account that anvil has the key of, and has all of it mined.
    ///
    /// No block is made meanwhile: what follows a transaction that anvil is just mining can wait in its pool for ever.
    async fn send_all(
        &self,
        from: Address,
        requests: impl IntoIterator<Item = TransactionRequest>,
    ) -> Result<(), LocalError> {
        self.set_block_time(0).await?;
        let mined = self.mine_all(from, requests).await;
        self.set_block_time(self.block_time).await?;
        mined
    }

    async fn mine_all(
        &self,
        from: Address,
        requests: impl IntoIterator<Item = TransactionRequest>,
    ) -> Result<(), LocalError> {
        let mut sent: Vec<B256> = Vec::new();
        for request in requests {
            let request = request.with_from(from).with_gas_limit(GAS);
            sent.push(*self.provider.send_transaction(request).await?.tx_hash());
        }
        for transaction in sent {
            let mut blocks = 0;
            let receipt = loop {
                if let Some(receipt) = self.provider.get_transaction_receipt(transaction).await? {
                    break receipt;
                }
                if blocks == BLOCKS {
                    return Err(LocalError::NotMined(transaction));
                }
                blocks += 1;
                let _mined: Value = self.provider.client().request("evm_mine", ()).await?;
            };
            if !receipt.status() {
                return Err(LocalError::Reverted(transaction));
            }
        }
        Ok(())
    }

    /// Seconds between two blocks; at 0 none is made.
    async fn set_block_time(&self, seconds: u64) -> Result<(), LocalError> {
        let () = self.provider.client().request("evm_setIntervalMining", (seconds,)).await?;
        Ok(())
    }
}

fn transfer(sno: Address, to: Address, value: U256) -> TransactionRequest {
    let input = SNO::transferCall { to, value }.abi_encode();
    TransactionRequest::default().with_to(sno).with_input(input)
}
