//! Jobs that served before: texts under way come to their end, workers are paid, and the escrow comes back.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_types::JobId;
use tensorlink_user::User;
use tensorlink_user::serving::{Boundaries, Pipeline};

use crate::commands::failover::is_begun;
use crate::node::Node;
use crate::watch::{close, wind_up};
use crate::when;

/// Longest time for texts under way in a job to come to their end after another took its place, seconds.
const DRAIN: u64 = 60;

/// A job whose workers are paid what they are owed, until it is settled.
struct Former {
    pipeline: Arc<Pipeline>,
    since: u64,
}

impl Former {
    /// Closes the job once its texts are at their end.
    async fn wind_down(&self, node: &Node, view: &JobView) -> Result<()> {
        let is_due = self.pipeline.is_idle() || when::now().saturating_sub(self.since) > DRAIN;
        if view.state == JobState::Running && is_due {
            self.pipeline.pay().await;
            close(node, view.id).await?;
        }
        Ok(())
    }
}

/// Jobs that served before, all with these boundaries.
pub(super) struct Formers {
    boundaries: Boundaries,
    paying: BTreeMap<JobId, Former>,
    settled: BTreeSet<JobId>,
}

impl Formers {
    pub(super) const fn new(boundaries: Boundaries) -> Self {
        Self { boundaries, paying: BTreeMap::new(), settled: BTreeSet::new() }
    }

    /// Another job has taken the place of this one.
    pub(super) fn push(&mut self, job: JobId, pipeline: Arc<Pipeline>) {
        self.paying.insert(job, Former { pipeline, since: when::now() });
    }

    /// Moves jobs towards their settlement; whether all are settled. What fails now is done at another look.
    pub(super) async fn settle(&mut self, (node, user): (&Node, &User), jobs: &[JobId]) -> bool {
        for job in jobs {
            if self.settled.contains(job) {
                continue;
            }
            match self.settle_one((node, user), *job).await {
                Ok(true) => _ = self.settled.insert(*job),
                Ok(false) => {}
                Err(error) => tracing::warn!(%job, "the job waits for its settlement: {error:#}"),
            }
        }
        jobs.iter().all(|job| self.settled.contains(job))
    }

    async fn settle_one(&mut self, (node, user): (&Node, &User), job: JobId) -> Result<bool> {
        let Some(view) = node.ports.chain.job(job).await? else { return Ok(true) };
        match view.state {
            JobState::Posted | JobState::Accepted => _ = is_begun(node, job).await?,
            JobState::Running | JobState::Closing => match self.taken_up(node, &view).await {
                Ok(former) => former.wind_down(node, &view).await?,
                Err(error) => {
                    tracing::warn!(%job, "its workers can be paid no more: {error:#}");
                    close(node, job).await?;
                }
            },
            JobState::Settled => {}
        }
        let is_settled = wind_up(node, user, &view).await?;
        if is_settled && let Some(former) = self.paying.remove(&job) {
            former.pipeline.close().await;
        }
        Ok(is_settled)
    }

    /// Takes a job up whose gateway was interrupted, perhaps before its workers had their last vouchers.
    async fn taken_up(&mut self, node: &Node, view: &JobView) -> Result<&Former> {
        match self.paying.entry(view.id) {
            Entry::Occupied(former) => Ok(former.into_mut()),
            Entry::Vacant(place) => {
                let pipeline = Pipeline::open_to_pay(node.ports.clone(), view, self.boundaries.clone()).await?;
                Ok(place.insert(Former { pipeline: Arc::new(pipeline), since: when::now() }))
            }
        }
    }

    /// Pays for the last time.
    pub(super) async fn close(&self) {
        futures::future::join_all(self.paying.values().map(|former| former.pipeline.close())).await;
    }
}
