//! The ports of one node, as its roles get them.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_proof::commit::Contracts;
use tokio::sync::Mutex;

use super::{Call, Chain, ChainError, Clock, Net, Receipt, Store};
use crate::{Identity, Journal};

/// Wait between two tries of what the day's budget for gas holds back.
const HELD_BACK: Duration = Duration::from_secs(60);

/// The world of a node: every port, and what goes with them.
#[derive(Clone)]
pub struct Ports {
    /// The node's key.
    pub identity: Identity,
    /// The contracts.
    pub chain: Arc<dyn Chain>,
    /// Peers.
    pub net: Arc<dyn Net>,
    /// Files.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Domains of signatures.
    pub contracts: Contracts,
    /// Records.
    pub journal: Journal,
    /// Held while a file is stored and the record written that names it, and while an owner lets go of one: equal files
    /// of one owner are one file.
    pub pins: Arc<Mutex<()>>,
}

impl Ports {
    /// Sends a call that can wait: again and again while the day's budget for gas holds it back. Whoever has no time
    /// any more drops it.
    ///
    /// # Errors
    /// [`ChainError`], but not [`ChainError::OverBudget`].
    pub async fn send_within_budget(&self, call: Call) -> Result<Receipt, ChainError> {
        loop {
            match self.chain.send(call.clone()).await {
                Err(error @ ChainError::OverBudget { .. }) => tracing::debug!(%error, "a transaction waits"),
                done => return done,
            }
            self.clock.sleep(HELD_BACK).await;
        }
    }

    /// Collects what challenges have credited to this node, if there is anything; what cannot be collected now stays.
    pub async fn collect_gas(&self) {
        let collected = async {
            let credit = self.chain.gas_credit(self.identity.address()).await?;
            if !credit.is_zero() {
                let gas = self.chain.send(Call::CollectGas).await?.gas;
                tracing::info!(%credit, gas, "collected what challenges have credited");
            }
            Ok::<(), ChainError>(())
        };
        if let Err(error) = collected.await {
            tracing::warn!(%error, "what challenges have credited is not collected; `tensorlink withdraw` does it later");
        }
    }
}
