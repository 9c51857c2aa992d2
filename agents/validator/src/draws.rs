//! Claims that wait for the seed that draws who answers for them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tensorlink_graph::engine::Engine;
use tensorlink_node::ports::chain::Parameters;
use tensorlink_node::ports::{AuditMove, Call, ChainError};
use tensorlink_proof::sortition::{is_drawn, period_after};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::audit::{Auditor, Target};

/// Claims that wait at once. A chain holds fewer in two periods.
const WAITING: usize = 65_536;
/// Longest wait between two looks at the beacon.
const PERIOD: Duration = Duration::from_secs(1);

/// By the period whose seed draws for them.
#[derive(Debug, Default)]
pub(crate) struct Draws(Mutex<BTreeMap<u64, Vec<Target>>>);

impl Draws {
    /// Takes in a claim that is on chain.
    pub(crate) fn add(&self, target: Target, parameters: &Parameters) {
        let Some(at) = target.fixed_at() else { return };
        let Some(period) = period_after(at, parameters.beacon_period) else { return };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.values().map(Vec::len).sum::<usize>() >= WAITING {
            tracing::error!(claim = %target.id, "more claims wait for their seeds than this node keeps: it is not answered for");
            return;
        }
        waiting.entry(period).or_default().push(target);
    }

    fn first(&self) -> Option<u64> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.first_key_value().map(|(period, _)| *period)
    }

    fn take(&self, period: u64) -> Vec<Target> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&period).unwrap_or_default()
    }

    /// Draws until `shutdown`; what this validator is to answer for goes to `drawn`.
    pub(crate) async fn run<E: Engine + Send + 'static>(
        &self,
        auditor: &Auditor<E>,
        drawn: mpsc::Sender<Target>,
        shutdown: CancellationToken,
    ) {
        let drawing = async {
            loop {
                match self.draw(auditor).await {
                    Ok(targets) => {
                        for target in targets {
                            if drawn.send(target).await.is_err() {
                                return;
                            }
                        }
                    }
                    Err(error) => tracing::warn!(%error, "the beacon cannot be asked"),
                }
                auditor.ports.clock.sleep(PERIOD).await;
            }
        };
        shutdown.run_until_cancelled(drawing).await;
    }

    /// Draws for the claims of the first period, if its seed is there.
    async fn draw<E: Engine + Send + 'static>(&self, auditor: &Auditor<E>) -> Result<Vec<Target>, ChainError> {
        let (chain, own) = (&auditor.ports.chain, auditor.ports.identity.address());
        let Some(period) = self.first() else { return Ok(Vec::new()) };
        let begins = period.saturating_mul(auditor.answers.parameters.beacon_period);
        let now = chain.head().await?.timestamp;
        if now < begins {
            return Ok(Vec::new());
        }
        let Some(seed) = chain.seed(period).await? else {
            // Without one until every window is over, there will be none.
            if now > begins.saturating_add(auditor.answers.parameters.max_challenge_window) {
                self.take(period);
            }
            return Ok(Vec::new());
        };
        let (since, validators) = chain.validators(own).await?;
        let bps = auditor.answers.parameters.audits_per_claim_bps;
        let mut targets = self.take(period);
        targets.retain(|target| {
            let Some(at) = target.fixed_at() else { return false };
            since > 0 && since < at && is_drawn(seed.value, target.id, own, validators, bps)
        });
        if let Some((before, header)) = seed.headers.filter(|_| !targets.is_empty()) {
            let record = Call::Audit(Box::new(AuditMove::Record { period, before, header }));
            // Another validator may be faster.
            if let Ok(gas) = chain.simulate(&record).await {
                match chain.send(record).await {
                    Ok(receipt) => tracing::info!(period, gas = receipt.gas, "a seed is recorded"),
                    Err(error) => tracing::warn!(period, %error, gas, "a seed is not recorded"),
                }
            }
        }
        Ok(targets)
    }
}

#[cfg(test)]
mod tests {
    use cid::Cid;
    use tensorlink_types::abi::Claim;
    use tensorlink_types::{B256, ClaimId};

    use super::*;
    use crate::audit::{Listed, Standing};

    fn target(at: u64) -> Target {
        let zero = B256::ZERO;
        let claim = Claim { job: 1, stage: 0, replica: 0, interval: 0, parentState: zero, newState: zero, io: zero };
        Target {
            id: ClaimId(zero),
            claim,
            standing: Standing::Committed { at },
            manifest: Cid::default(),
            listed: None,
        }
    }

    #[test]
    fn claims_wait_by_their_periods() {
        let (draws, parameters) = (Draws::default(), Parameters { beacon_period: 300, ..Parameters::default() });
        draws.add(target(1_000), &parameters);
        draws.add(target(700), &parameters);
        draws.add(target(1_100), &parameters);
        assert_eq!(draws.first(), Some(4));
        assert_eq!((draws.take(4).len(), draws.first(), draws.take(5).len()), (1, Some(5), 2));
        assert_eq!(draws.first(), None);
        let receipt = Target { standing: Standing::Receipt, ..target(0) };
        draws.add(receipt.clone(), &parameters);
        assert_eq!(draws.first(), None, "a receipt is drawn for once its epoch is redeemed");
        let (receipts, siblings) = (B256::ZERO, Vec::new());
        let listed = Some(Listed { epoch: 1, redeemed_at: 700, receipts, index: 0, siblings });
        draws.add(Target { listed, ..receipt }, &parameters);
        assert_eq!(draws.first(), Some(4));
    }
}
