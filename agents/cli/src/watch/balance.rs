//! What a job comes to, from the chain's events.

use std::time::Duration;

use anyhow::{Context, Result};
use tensorlink_node::ports::EventAt;
use tensorlink_types::JobId;
use tensorlink_user::User;
use tokio::sync::watch::Receiver;

use super::told::Told;
use crate::report::Report;

/// Longest wait for the settlement's confirmation.
const CONFIRMATION: Duration = Duration::from_secs(120);

/// A job's balance as far as the chain is confirmed.
pub(super) struct Balance {
    job: JobId,
    events: Receiver<Vec<EventAt>>,
    told: Told,
    pub(super) report: Report,
}

impl Balance {
    pub(super) fn new(job: JobId, user: &User) -> Self {
        Self { job, events: user.events(), told: Told::default(), report: Report::default() }
    }

    /// Waits for further events and takes them in.
    pub(super) async fn go_on(&mut self) -> Result<()> {
        self.events.changed().await.context("the node does not follow the chain any more; its log says why")?;
        let events = self.events.clone();
        self.take_in(&events.borrow());
        Ok(())
    }

    /// Takes in what is new; where a reorganisation has undone what was taken in, all of it anew.
    fn take_in(&mut self, events: &[EventAt]) {
        let (anew, fresh) = self.told.fresh(events);
        if anew {
            self.report = Report::default();
        }
        fresh.iter().for_each(|at| self.report.take_in(self.job, at));
    }

    /// The whole of it, once the settlement is confirmed.
    pub(super) async fn settled(mut self) -> Result<Report> {
        let job = self.job;
        let confirmed = async {
            while self.report.refund.is_none() {
                self.go_on().await?;
            }
            Ok::<(), anyhow::Error>(())
        };
        tokio::time::timeout(CONFIRMATION, confirmed).await.with_context(|| {
            format!("the settlement of job {job} is not confirmed yet; `tensorlink job watch {job}` reports later")
        })??;
        self.report.complete(job, &self.events.borrow());
        Ok(self.report)
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_node::ports::Event;
    use tensorlink_types::B256;
    use tensorlink_types::abi::Claim;

    use super::*;

    fn claimed(block: u64, salt: u8) -> EventAt {
        let claim = Claim { job: 1, interval: block as u32, ..Claim::default() };
        EventAt {
            block,
            block_hash: B256::repeat_byte(salt),
            timestamp: block,
            log_index: 0,
            transaction: B256::ZERO,
            event: Event::ClaimCommitted { id: Default::default(), claim, committed_at: block },
        }
    }

    #[test]
    fn what_was_undone_does_not_count() {
        let (_told, events) = tokio::sync::watch::channel(Vec::new());
        let mut balance = Balance { job: JobId(1), events, told: Told::default(), report: Report::default() };
        let all: Vec<EventAt> = (1..=70).map(|block| claimed(block, 1)).collect();
        for length in [1, 30, 70] {
            balance.take_in(&all[..length]);
            assert_eq!(balance.report.claims_committed as usize, length);
        }
        for depth in [1, 4, 64, 70] {
            let mut other = all[..70 - depth].to_vec();
            balance.take_in(&other);
            assert_eq!(balance.report.claims_committed as usize, 70 - depth, "undone");
            balance.take_in(&all);
            // As many others in their place, of which this one did not hear in between.
            other.extend((other.len() as u64 + 1..=70).map(|block| claimed(block, 2)));
            other.push(claimed(71, 2));
            balance.take_in(&other);
            assert_eq!(balance.report.claims_committed, 71, "{depth}");
            balance.take_in(&all);
            assert_eq!(balance.report.claims_committed, 70);
        }
    }
}
