//! What a worker does about what confirmed events tell.

use std::sync::Arc;

use cid::Cid;
use tensorlink_model::CacheEngine;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_node::wire::frame::SignedLog;
use tensorlink_proof::custody::attested_log;
use tensorlink_types::abi::JobKind;
use tensorlink_types::{B256, Bytes, JobId, Lane, Lineage, U256};

use crate::claims;
use crate::record::{LaneLog, LaneRecord};
use crate::role::{Posted, Running, Worker};
use crate::sealing;

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Takes in a confirmed event.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) async fn take_in(self: Arc<Self>, at: EventAt) -> Result<(), JournalError> {
        self.forget_past(at.block)?;
        self.context.roster.apply(&at.event);
        self.games.apply(&at);
        self.keeper.apply(&at.event).await?;
        let own = self.context.ports.identity.address();
        if let Some(job) = at.event.job_of_claims() {
            let kept_by_others = self.keeper.finality().kept_by_others(job);
            for log in self.lanes_of(job).into_iter().filter_map(|lane| self.log_of(lane)) {
                sealing::told(&log, &at.event)?;
                if !log.get().over {
                    log.update(|record| record.kept_by_others = kept_by_others)?;
                }
            }
        }
        match at.event {
            Event::JobPosted { job, user, terms, .. } => {
                match (Cid::try_from(terms.manifest.as_ref()), JobKind::from_number(terms.kind)) {
                    (Ok(manifest), Some(kind)) => {
                        let (intervals, first_step, window) =
                            (terms.intervals, terms.firstStep, terms.challengeWindow.into());
                        let terms = terms.hash_of(user);
                        self.posted().insert(job, Posted { terms, manifest, kind, intervals, first_step, window });
                    }
                    (Err(error), _) => tracing::debug!(%job, %error, "a job whose manifest is not a CID"),
                    (_, None) => tracing::debug!(%job, kind = terms.kind, "a job of a kind unknown here"),
                }
            }
            Event::JobAccepted { job, offers } => {
                let offer = offers.iter().find(|offer| offer.worker == own);
                let ours = offer.map(|offer| Lane { job, stage: offer.stage, replica: offer.replica });
                self.promises.accepted(job, ours);
                if let Some(lane) = ours
                    && !self.leaves_alone(lane).await?
                    && !self.accepted(lane)?.over
                {
                    self.tasks.spawn(self.clone().await_start(lane));
                    self.tasks.spawn(self.clone().fetch_ward(lane));
                }
            }
            Event::JobStarted { job, job_key, .. } => {
                let lane = self.lanes().keys().find(|lane| lane.job == job).copied();
                if let Some(log) = lane.and_then(|lane| self.log_of(lane)) {
                    let (kind, first_step) =
                        self.posted().get(&job).map(|posted| (posted.kind, posted.first_step)).unwrap_or_default();
                    log.update(|record| record.lineage = Some(Lineage { key: job_key, first_step }))?;
                    match kind {
                        _ if log.get().over => {}
                        JobKind::Training => drop(self.tasks.spawn(self.clone().work(log))),
                        JobKind::Serving => {
                            let book = self.open_book(log.get().lane)?;
                            self.tasks.spawn(self.clone().serve(log, book));
                        }
                    }
                }
            }
            Event::ClaimCommitted { claim, committed_at, .. } => {
                self.claimed_beside(&claim, committed_at);
                if let Some(log) = self.log_of(claim.lane())
                    && let Err(error) = claims::confirmed(&log, &claim, committed_at)
                    && self.goes_on(claim.lane())
                {
                    tracing::error!(lane = %claim.lane(), %error, "this lane stops");
                    self.stop(claim.lane(), true);
                }
            }
            Event::ReplicasDiffer { job, stage, interval, claim }
                if self.lanes_of(job).iter().any(|lane| lane.stage == stage) =>
            {
                tracing::warn!(%job, stage, interval, %claim, "replicas of this stage differ: not all have computed right");
            }
            Event::Demanded { id, demand } if !self.lanes_of(JobId(demand.job)).is_empty() => {
                tracing::warn!(%id, holder = %demand.holder, deadline = %demand.deadline, "data is demanded in a job of ours");
                self.withheld.demanded(id, &demand, own);
                self.demands.open(id, *demand);
            }
            Event::AttestationGiven { id, root, signature } => self.attestation_given(id, root, &signature),
            Event::DemandEnded { id, shown, .. } => {
                self.withheld.ended(id, shown.is_some());
                self.demands.end(id);
            }
            Event::AuditRevealed { claim, auditor, answer, job, .. } if !self.lanes_of(job).is_empty() => {
                self.tasks.spawn(self.clone().check_answer(claim, auditor, answer));
            }
            Event::AuditorAccused { claim, auditor, statement, .. } if statement.auditor == own => {
                self.remember_accused(claim, auditor);
            }
            Event::ClaimsFinalized { lane, to, .. } => {
                self.clone().penalise_accused(lane, to);
                self.prune_all(lane.job).await?;
            }
            Event::VoucherRedeemed { lane, epoch, .. } => {
                if self.lanes().contains_key(&lane) {
                    self.epoch_redeemed(lane, epoch, at.timestamp);
                }
                self.redeemed(lane, epoch).await?;
            }
            Event::JobClosing { job, convicted } => {
                for lane in self.lanes_of(job) {
                    tracing::info!(%lane, convicted, "the job is closing");
                    self.stop(lane, false);
                    if let Some(book) = self.book_of(lane) {
                        book.wake();
                    }
                }
            }
            Event::JobSettled { job, .. } => {
                self.forget_epochs(job);
                self.demands.forget(job);
                self.withheld.forget(job);
                // Cancelled before any offer was accepted, perhaps.
                self.promises.release(job)?;
                for lane in self.lanes_of(job) {
                    self.stop(lane, true);
                    self.close_book(lane).await?;
                    if let Some(running) = self.lanes().get_mut(&lane) {
                        running.shard = None;
                        running.settled = true;
                        running.log.update(|record| (record.over, record.settled_at) = (true, Some(at.block)))?;
                    }
                    self.past.add(at.block, lane);
                    self.let_go_if_settled(lane).await;
                }
                // Even where there is no record of it.
                if self.context.roster.members(job).is_some_and(|members| members.workers.contains(&own)) {
                    self.tasks.spawn(self.clone().collect(job));
                }
            }
            Event::Slashed { account, amount, .. } if account == own => {
                tracing::error!(%amount, "this worker was slashed");
            }
            _ => {}
        }
        Ok(())
    }

    /// A neighbour's attestation that is shown on chain is as good as one that it sends.
    fn attestation_given(&self, id: U256, root: B256, signature: &Bytes) {
        let Some(log) = self.demands.get(id).and_then(|demand| attested_log(&demand, root)) else { return };
        let lane = Lane { job: JobId(log.job), stage: log.toStage, replica: log.replica };
        if let Some(running) = self.lanes().get(&lane) {
            tracing::info!(%lane, interval = log.interval, "a neighbour's attestation of what it sent is on chain");
            running.awaited.shown(SignedLog { log, signature: signature.to_vec() });
        }
    }

    /// A lane is ours: its record is opened.
    fn accepted(&self, lane: Lane) -> Result<LaneRecord, JournalError> {
        let user = self.context.roster.members(lane.job).map(|members| members.user).unwrap_or_default();
        let manifest = self.posted().get(&lane.job).map(|posted| posted.manifest.to_string()).unwrap_or_default();
        let log = LaneLog::open(self.context.ports.journal.clone(), LaneRecord::new(lane, user, manifest))?;
        tracing::info!(%lane, "accepted");
        let all = self.shutdown.child_token();
        let record = log.get();
        let (log, compute) = (Arc::new(log), all.child_token());
        let awaited = Arc::default();
        let (shard, book, serving, settled) = (None, None, None, false);
        let running = Running { log, shard, book, serving, awaited, settled, compute, all };
        self.lanes().insert(lane, running);
        Ok(record)
    }
}
