//! What a job comes to, from the chain's events.

use std::time::Duration;

use anyhow::{Context, Result};
use tensorlink_node::ports::EventAt;
use tensorlink_types::JobId;
use tensorlink_user::User;
use tokio::sync::watch::Receiver;

use crate::report::Report;

/// Longest wait for the settlement's confirmation.
const CONFIRMATION: Duration = Duration::from_secs(120);

/// A job's balance as far as the chain is confirmed.
pub(super) struct Balance {
    job: JobId,
    events: Receiver<Vec<EventAt>>,
    /// Events taken in.
    told: usize,
    pub(super) report: Report,
}

impl Balance {
    pub(super) fn new(job: JobId, user: &User) -> Self {
        Self { job, events: user.events(), told: 0, report: Report::default() }
    }

    /// Waits for further events and takes them in.
    pub(super) async fn go_on(&mut self) -> Result<()> {
        self.events.changed().await.context("the node does not follow the chain any more; its log says why")?;
        let events = self.events.borrow_and_update();
        events.iter().skip(self.told).for_each(|at| self.report.take_in(self.job, at));
        self.told = events.len();
        Ok(())
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
