//! What everybody has, before a job and after it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tensorlink_node::ports::Chain;
use tensorlink_node::ports::chain::{Event, Role};
use tensorlink_types::{Address, U256};

use super::eventually;
use super::job::Report;
use super::network::{Network, OBSERVER, TREASURY, USER, VALIDATOR, address, worker_address};

/// Bonds of challenges come back within, once a job is settled.
const SETTLED: Duration = Duration::from_secs(60);

/// SNO of everybody, wei: what they have, can collect, and have at stake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Purses(BTreeMap<Address, U256>);

impl Purses {
    /// As the chain has them now, with those of so many workers.
    pub(crate) async fn of(network: &Network, workers: usize) -> Self {
        let others = [USER, VALIDATOR, TREASURY, OBSERVER].map(address);
        let mut purses = BTreeMap::new();
        for account in others.into_iter().chain((0..workers).map(worker_address)) {
            let mut has = network.owned(account).await;
            for role in [Role::Worker, Role::Validator] {
                let stake = network.chain().stake(account, role).await.unwrap();
                has += U256::from(stake.bonded) + U256::from(stake.unbonding);
            }
            purses.insert(account, has);
        }
        Self(purses)
    }

    /// Nobody lost anything through the last job but the convicted their stakes, of which nobody but the auditors and
    /// the user got anything.
    ///
    /// To the wei, with what was paid for right claims and for audits: whoever paid for somebody else's lie would be
    /// found here.
    pub(crate) async fn assert_only_stakes_paid(mut self, network: &Network, report: &Report) {
        let workers = self.0.len() - 4;
        let mut gained: Vec<(Address, U256)> = Vec::new();
        let mut lost = gained.clone();
        for at in report.of_last_job() {
            match &at.event {
                Event::Paid { worker, amount, .. } => {
                    gained.push((*worker, *amount));
                    lost.push((address(USER), *amount));
                }
                Event::AuditRevealed { auditor, fee, .. } => {
                    gained.push((*auditor, *fee));
                    lost.push((address(USER), *fee));
                }
                _ => {}
            }
        }
        let jobs: BTreeSet<_> = report.of_last_job().iter().filter_map(|at| at.event.job()).collect();
        for verdict in report.verdicts(network).await {
            verdict.assert_split();
            gained.push((verdict.auditor, verdict.slash.bounty));
            gained.push((address(USER), verdict.slash.harm));
            lost.push((verdict.worker, verdict.slash.amount));
        }
        for (account, amount) in gained {
            *self.0.entry(account).or_default() += amount;
        }
        for (account, amount) in lost {
            let purse = self.0.entry(account).or_default();
            assert!(*purse >= amount, "{account} lost {amount} of {purse}");
            *purse -= amount;
        }
        // What is collected between two looks is seen in neither.
        let mut last = None;
        let settled = eventually("everybody has what is theirs", SETTLED, async || {
            let now = Self::of(network, workers).await;
            // A share of a bounty is paid once the answer is shown, which may be after the job's end.
            let mut want = Self(self.0.clone());
            for at in network.events().await {
                if let Event::AuditorShared { auditor, job, amount, .. } = at.event
                    && jobs.contains(&job)
                {
                    *want.0.entry(auditor).or_default() += amount;
                }
            }
            let equal = now == want;
            if !equal && last.as_ref() != Some(&now) {
                eprintln!("have {now:?}\nwant {want:?}");
            }
            last = Some(now);
            equal.then_some(())
        });
        settled.await;
    }
}
