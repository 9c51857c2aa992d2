//! Confirmed events go to whom they concern, by one table: in this order, and what is to be on disk before something
//! else is done is there first.

use std::sync::Arc;

use tensorlink_model::CacheEngine;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_types::abi::{JobKind, Offer};
use tensorlink_types::{JobId, JobKey, Lineage};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::components::Components;
use crate::state::lane_of;

/// Tells the components of a worker what happens on chain, and starts what they do about it.
pub(crate) struct Dispatch<E> {
    to: Arc<Components<E>>,
    tasks: TaskTracker,
    end: CancellationToken,
}

impl<E> Dispatch<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// `tasks` are what it starts, until `end`.
    pub(crate) const fn new(to: Arc<Components<E>>, tasks: TaskTracker, end: CancellationToken) -> Self {
        Self { to, tasks, end }
    }

    /// Takes in a confirmed event.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) async fn take_in(&self, at: EventAt) -> Result<(), JournalError> {
        let (to, event) = (&self.to, &at.event);
        self.forget_past(at.block)?;
        to.context.roster.apply(event);
        to.challenges.apply(&at);
        to.keeper.apply(event).await?;
        to.training.apply(event)?;
        match event {
            Event::JobPosted { .. } => to.jobs.apply(event),
            Event::JobAccepted { job, offers } => {
                to.hiring.apply(event)?;
                self.accepted(*job, offers).await?;
            }
            Event::JobStarted { job, job_key, .. } => self.started(*job, *job_key)?,
            Event::ClaimCommitted { claim, committed_at, .. } => {
                to.withheld.apply(event);
                to.training.confirmed(claim, *committed_at);
            }
            Event::Demanded { .. } | Event::AttestationGiven { .. } | Event::DemandEnded { .. } => {
                to.withheld.apply(event);
                to.demands.apply(event);
            }
            Event::AuditRevealed { claim, auditor, answer, job, .. } if to.lanes.has_any(*job) => {
                self.until_end(to.auditors.clone().check_answer(*claim, *auditor, answer.clone()));
            }
            Event::AuditorAccused { .. } => to.auditors.apply(&at),
            Event::ClaimsFinalized { lane, to: final_to, .. } => {
                for (auditor, claim) in to.auditors.take_accused(*lane, *final_to) {
                    self.until_end(to.auditors.clone().penalise(auditor, claim));
                }
                to.records.prune_all(lane.job).await?;
            }
            Event::VoucherRedeemed { lane, epoch, .. } => {
                to.auditors.apply(&at);
                to.serving.redeemed(*lane, *epoch).await?;
            }
            Event::JobClosing { job, convicted } => self.closing(*job, *convicted),
            Event::JobSettled { job, .. } => {
                to.auditors.apply(&at);
                to.demands.apply(event);
                to.withheld.apply(event);
                to.hiring.apply(event)?;
                self.settled(*job, at.block).await?;
            }
            Event::Slashed { account, amount, .. } if *account == to.context.ports.identity.address() => {
                tracing::error!(%amount, "this worker was slashed");
            }
            _ => {}
        }
        Ok(())
    }

    /// Starts a task that the worker's end stops wherever it is.
    fn until_end(&self, task: impl Future<Output = ()> + Send + 'static) {
        let end = self.end.clone();
        self.tasks.spawn(async move { end.run_until_cancelled(task).await });
    }

    /// Forgets the lanes that are past at a block.
    fn forget_past(&self, block: u64) -> Result<(), JournalError> {
        for lane in self.to.records.forget_past(block)? {
            self.to.shards.forget(lane);
            self.to.withheld.forget(lane);
        }
        Ok(())
    }

    /// A lane is ours, perhaps.
    async fn accepted(&self, job: JobId, offers: &[Offer]) -> Result<(), JournalError> {
        let to = &self.to;
        let Some(lane) = lane_of(job, offers, to.context.ports.identity.address()) else { return Ok(()) };
        if to.lost.leaves_alone(lane, &self.end).await? {
            return Ok(());
        }
        let user = to.context.roster.members(job).map(|members| members.user).unwrap_or_default();
        let manifest = to.jobs.manifest(job).map(|manifest| manifest.to_string()).unwrap_or_default();
        if !to.records.open(lane, user, manifest)?.over {
            self.tasks.spawn(to.payout.clone().await_start(lane));
            self.tasks.spawn(to.wards.clone().fetch(lane, self.end.clone()));
        }
        Ok(())
    }

    /// A job of ours begins, perhaps.
    fn started(&self, job: JobId, key: JobKey) -> Result<(), JournalError> {
        let to = &self.to;
        let Some(log) = to.lanes.logs_of(job).into_iter().next() else { return Ok(()) };
        let posted = to.jobs.get(job);
        let (kind, first_step) = posted.map(|posted| (posted.kind, posted.first_step)).unwrap_or_default();
        log.update(|record| record.lineage = Some(Lineage { key, first_step }))?;
        match kind {
            _ if log.get().over => {}
            JobKind::Training => drop(self.tasks.spawn(to.training.clone().work(log))),
            JobKind::Serving => {
                let book = to.serving.open_book(log.get().lane)?;
                self.tasks.spawn(to.serving.clone().serve(log, book));
            }
        }
        Ok(())
    }

    /// Nothing more is computed for a job.
    fn closing(&self, job: JobId, convicted: bool) {
        for lane in self.to.lanes.of(job) {
            tracing::info!(%lane, convicted, "the job is closing");
            self.to.lanes.stop_computing(lane);
            self.to.serving.wake(lane);
        }
    }

    /// Nothing more is done for a job, and what it has brought is collected.
    async fn settled(&self, job: JobId, block: u64) -> Result<(), JournalError> {
        let to = &self.to;
        for lane in to.lanes.of(job) {
            to.lanes.stop(lane);
            to.serving.close_book(lane).await?;
            to.records.settle(lane, block)?;
            to.shards.forget(lane);
            to.files.let_go_if_settled(lane).await;
        }
        // Even where there is no record of it.
        let own = to.context.ports.identity.address();
        if to.context.roster.members(job).is_some_and(|members| members.workers.contains(&own)) {
            self.until_end(to.payout.clone().collect(job));
        }
        Ok(())
    }
}
