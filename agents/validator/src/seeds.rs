//! Seeds of the beacon are recorded for those who were drawn by them, by whoever is first.

use tensorlink_node::Ports;
use tensorlink_node::ports::chain::Seed;
use tensorlink_node::ports::{AuditMove, Call, ChainError};
use tensorlink_proof::sortition::period_after;

use crate::answers::Answers;
use crate::ask::transact;

/// Records seeds.
#[derive(Clone, Copy)]
pub(crate) struct Seeds<'a> {
    ports: &'a Ports,
    answers: &'a Answers,
}

impl<'a> Seeds<'a> {
    /// For these answers.
    pub(crate) const fn new(ports: &'a Ports, answers: &'a Answers) -> Self {
        Self { ports, answers }
    }

    /// Records the seed that draws for what was fixed at this time, once more if need be: a transaction may have
    /// been undone.
    pub(crate) async fn record_for(&self, fixed_at: u64) -> Result<(), ChainError> {
        let period = period_after(fixed_at, self.answers.parameters.beacon_period);
        let Some(period) = period else { return Ok(()) };
        if let Some(seed) = self.ports.chain.seed(period).await? {
            self.record_if_new(period, seed).await;
        }
        Ok(())
    }

    /// Records a seed, if it is not, and we are not at it.
    pub(crate) async fn record_if_new(&self, period: u64, seed: Seed) {
        let Some((before, header)) = seed.headers else { return };
        if !self.answers.begins_recording(period) {
            return;
        }
        // Another validator may be faster. Where it fails, who seals an answer sees it.
        match transact(self.ports, Call::Audit(Box::new(AuditMove::Record { period, before, header }))).await {
            Ok(gas) => {
                tracing::info!(period, gas, "a seed is recorded");
                // An answer may wait for it.
                self.answers.wake();
            }
            Err(error) => tracing::debug!(period, %error, "a seed is not recorded by us"),
        }
        self.answers.ends_recording(period);
    }
}
