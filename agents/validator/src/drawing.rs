//! Draws for claims as their seeds come: whom a seed draws, answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tensorlink_node::Ports;
use tensorlink_node::ports::chain::Seed;
use tensorlink_node::ports::{Chain, ChainError};
use tensorlink_proof::sortition::is_drawn;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::answers::Answers;
use crate::draws::Draws;
use crate::seeds::Seeds;
use crate::target::Target;

/// Longest wait between two looks at the beacon.
const PERIOD: Duration = Duration::from_secs(1);

/// What a period's seed draws us for.
struct Draw {
    period: u64,
    seed: Seed,
    targets: Vec<Target>,
}

/// Draws for claims that wait.
pub(crate) struct Drawing<'a> {
    ports: &'a Ports,
    answers: &'a Answers,
    draws: &'a Draws,
    seeds: Seeds<'a>,
}

impl<'a> Drawing<'a> {
    /// For these claims.
    pub(crate) const fn new(ports: &'a Ports, answers: &'a Answers, draws: &'a Draws) -> Self {
        Self { ports, answers, draws, seeds: Seeds::new(ports, answers) }
    }

    /// Draws until `shutdown`; what this validator is to answer for goes to `drawn`.
    pub(crate) async fn run(&self, drawn: mpsc::Sender<Target>, shutdown: CancellationToken) {
        let drawing = async {
            loop {
                match self.draw().await {
                    // Answers have little time: they are computed while the seeds are recorded that they need later.
                    Ok(draws) => {
                        for target in draws.iter().flat_map(|draw| &draw.targets) {
                            if drawn.send(target.clone()).await.is_err() {
                                return;
                            }
                        }
                        let records = draws.into_iter().map(|draw| self.seeds.record_if_new(draw.period, draw.seed));
                        futures::future::join_all(records).await;
                    }
                    Err(error) => tracing::warn!(%error, "the beacon cannot be asked"),
                }
                self.ports.clock.sleep(PERIOD).await;
            }
        };
        shutdown.run_until_cancelled(drawing).await;
    }

    /// Draws for the claims of all periods whose seeds are there; those periods that draw us.
    async fn draw(&self) -> Result<Vec<Draw>, ChainError> {
        let length = self.answers.parameters.beacon_period;
        if self.draws.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.ports.chain.head().await?.timestamp;
        let mut drawn = Vec::new();
        for period in self.draws.begun(now, length) {
            // Nobody can answer any more.
            if now > period.saturating_mul(length).saturating_add(self.answers.longest_quarter()) {
                self.draws.take(period);
                continue;
            }
            // None while its first block is not confirmed.
            if let Some(seed) = self.ports.chain.seed(period).await? {
                let targets = self.draw_by(period, &seed).await?;
                if !targets.is_empty() {
                    drawn.push(Draw { period, seed, targets });
                }
            }
        }
        Ok(drawn)
    }

    /// Those of a period's claims that we are to answer for.
    async fn draw_by(&self, period: u64, seed: &Seed) -> Result<Vec<Target>, ChainError> {
        let (chain, own) = (&self.ports.chain, self.ports.identity.address());
        let since = chain.validator_since(own).await?;
        let bps = self.answers.parameters.audits_per_claim_bps;
        let counts = counts(chain.as_ref(), self.draws.times(period)).await?;
        let mut targets = self.draws.take_fixed(period, &counts);
        targets.retain(|target| {
            let Some(at) = target.fixed_at() else { return false };
            let validators = counts.get(&at).copied().unwrap_or_default();
            since > 0 && since < at && is_drawn(seed.value, target.id, own, validators, bps)
        });
        Ok(targets)
    }
}

/// How many validators there were before each of these times, which are those of one period's claims.
async fn counts(chain: &dyn Chain, times: BTreeSet<u64>) -> Result<BTreeMap<u64, u64>, ChainError> {
    let mut counts = BTreeMap::new();
    for time in times {
        counts.insert(time, chain.validators_before(time).await?);
    }
    Ok(counts)
}
