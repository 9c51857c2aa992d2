//! The validator's loop: listens to the chain, draws claims, audits them, convicts wrong ones.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cid::Cid;
use serde::{Deserialize, Serialize};
use tensorlink_node::Roster;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{ChainError, Event, EventAt, NetError};
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::fraud::Signed;
use tensorlink_types::{ClaimId, JobId};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::auditor::Auditor;
use crate::draw::{Rate, drawn};
use crate::draws::Draws;
use crate::epoch::Epoch;
use crate::queue::Queue;
use crate::replicas::Replicas;
use crate::target::{Standing, Target};
use crate::task::{Ended, Task};

/// Claims that the chain drew us for and that the loop has not taken in yet.
const DRAWN: usize = 256;
/// Finished audits remembered on disk.
const REMEMBERED: usize = 4096;

/// Why a validator cannot run.
#[derive(Debug, Error)]
pub enum ValidatorError {
    /// The chain cannot be followed.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The net is down.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The key cannot sign.
    #[error(transparent)]
    Sign(#[from] SignatureError),
}

/// Audits that are done, so that a restart does not repeat them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Done {
    /// The latest last.
    claims: VecDeque<ClaimId>,
}

impl Done {
    fn add(&mut self, claim: ClaimId) {
        if self.claims.len() >= REMEMBERED {
            self.claims.pop_front();
        }
        self.claims.push_back(claim);
    }
}

const DONE: &str = "audits";

/// What events have told of jobs.
#[derive(Default)]
struct Known {
    /// The chain's time when this node started.
    started: u64,
    manifests: HashMap<JobId, Cid>,
    replicas: Replicas,
}

/// A validator.
pub struct Validator<E> {
    /// Share of claims to audit.
    pub rate: Rate,
    /// Who is who.
    pub roster: Arc<Roster>,
    /// Audits claims.
    pub auditor: Arc<Auditor<E>>,
}

impl<E> Validator<E>
where
    E: Engine + Send + 'static,
{
    /// Runs until `shutdown`.
    ///
    /// # Errors
    /// [`ValidatorError`].
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ValidatorError> {
        tracing::info!(address = %self.auditor.ports.identity.address(), rate = self.rate.share(), "validator starts");
        self.auditor.ports.net.set_gate(self.roster.clone());
        let chain = self.auditor.ports.chain.clone();
        let mut events = chain.events(chain.deployment().block).await?;
        self.auditor.take_stock().await;
        let mut done: Done = self.auditor.ports.journal.read(DONE)?.unwrap_or_default();
        let mut queue = Queue::new(self.auditor.clone(), self.rate);
        let mut known = Known { started: chain.head().await?.timestamp, ..Known::default() };
        let draws = Arc::new(Draws::default());
        let (found, mut drawn) = mpsc::channel(DRAWN);
        let mut background = JoinSet::new();
        let (auditor, drawing, end) = (self.auditor.clone(), draws.clone(), shutdown.clone());
        background.spawn(async move { drawing.run(&auditor, found, end).await });
        let (auditor, end) = (self.auditor.clone(), shutdown.clone());
        background.spawn(async move { auditor.give_answers(end).await });
        let ended = loop {
            tokio::select! {
                () = shutdown.cancelled() => break Ok(()),
                ended = queue.next() => match ended {
                    Ended::Claim(claim) => {
                        done.add(claim);
                        self.auditor.ports.journal.write(DONE, &done)?;
                    }
                    Ended::Epoch { listed, chosen } => {
                        if self.is_drawn_by_chain() {
                            listed.into_iter().for_each(|target| draws.add(target, &self.auditor.answers, known.started));
                        }
                        let fresh = chosen.into_iter().filter(|target| !done.claims.contains(&target.id));
                        fresh.for_each(|target| queue.push(Task::Claim(target)));
                    }
                    Ended::Open => {}
                },
                Some(target) = drawn.recv(), if queue.has_room() => {
                    tracing::info!(lane = %target.claim.lane(), interval = target.claim.interval, "drawn by the chain");
                    self.auditor.answers.drawn(target.id);
                    // Whether it was looked into before or not: only an execution gives the answer.
                    if self.auditor.answers.is_due(target.id) {
                        queue.push(Task::Claim(target));
                    }
                }
                // What waits for a place keeps nobody from hearing of accusations.
                event = events.recv(), if queue.has_room() => {
                    let Some(event) = event else { break if shutdown.is_cancelled() { Ok(()) } else { Err(chain.ended()) } };
                    let tasks = self.take_in(event, &mut known, &draws)?;
                    let is_done = |task: &Task| matches!(task, Task::Claim(t) if done.claims.contains(&t.id));
                    tasks.into_iter().filter(|task| !is_done(task)).for_each(|task| queue.push(task));
                }
            }
        };
        queue.shutdown().await;
        background.shutdown().await;
        Ok(ended?)
    }

    /// Whether the chain draws anybody.
    fn is_drawn_by_chain(&self) -> bool {
        self.auditor.answers.parameters.audits_per_claim_bps > 0
    }

    fn looks_at_receipts(&self) -> bool {
        self.rate.share() > 0.0 || self.is_drawn_by_chain()
    }

    /// Takes in an event; what is to be done about it comes back.
    fn take_in(&self, at: EventAt, known: &mut Known, draws: &Draws) -> Result<Vec<Task>, SignatureError> {
        self.roster.apply(&at.event);
        self.auditor.apply(&at);
        let mut tasks = Vec::new();
        match at.event {
            Event::JobPosted { job, terms, .. } => {
                if let Ok(cid) = Cid::try_from(terms.manifest.as_ref()) {
                    known.manifests.insert(job, cid);
                }
                known.replicas.posted(job, terms.replicas);
            }
            Event::JobSettled { job, .. } => known.replicas.settled(job),
            Event::ClaimCommitted { id, claim, committed_at } => {
                let Some(manifest) = known.manifests.get(&JobId(claim.job)).copied() else { return Ok(tasks) };
                let target =
                    Target { id, claim, standing: Standing::Committed { at: committed_at }, manifest, listed: None };
                if self.is_drawn_by_chain() {
                    draws.add(target.clone(), &self.auditor.answers, known.started);
                }
                let drawn = drawn(&self.auditor.ports.identity, id, at.block_hash, self.rate)?;
                if known.replicas.claimed(&target, drawn) {
                    tasks.push(Task::Claim(target));
                }
            }
            Event::ClaimsFinalized { lane, to, .. } => known.replicas.finalized(lane, to),
            Event::ReplicasDiffer { job, stage, interval, .. } => {
                let targets = known.replicas.differ((job, stage, interval));
                tracing::warn!(%job, stage, interval, claims = targets.len(), "replicas differ: all claims are examined");
                tasks.extend(targets.into_iter().map(Task::Claim));
            }
            Event::ChallengeOpened { id, claim, challenger, .. }
                if challenger == self.auditor.ports.identity.address() =>
            {
                let Some(manifest) = known.manifests.get(&JobId(claim.job)).copied() else { return Ok(tasks) };
                // When it was committed is looked up; whoever opened it just now plays it.
                let standing = Standing::Committed { at: 0 };
                tasks.push(Task::Challenged(Target { id, claim, standing, manifest, listed: None }));
            }
            Event::Convicted { lane, .. } => self.auditor.answers.convicted(lane),
            Event::AuditorShared { auditor, job, amount, .. } if auditor == self.auditor.ports.identity.address() => {
                tracing::info!(%job, wei = %amount, "a share of a convicted lane's bounty is paid");
            }
            Event::AuditRevealed { claim, auditor, answer, .. } => {
                self.auditor.answers.revealed(claim, auditor, answer);
            }
            // Whoever is accused: a false word convicts who gave it, to the credit of who shows it.
            Event::AuditorAccused { claim: id, auditor, statement, signature } => {
                let Some(found) = self.auditor.claims.find(id) else { return Ok(tasks) };
                let Some(manifest) = known.manifests.get(&JobId(found.claim.job)).copied() else { return Ok(tasks) };
                let signed = Signed { statement, signature };
                self.auditor.answers.accused(id, signed.clone());
                if auditor == self.auditor.ports.identity.address() {
                    tracing::error!(lane = %found.claim.lane(), interval = found.claim.interval, "accused of a wrong answer");
                }
                let standing = Standing::Committed { at: found.committed_at };
                let target = Target { id, claim: found.claim, standing, manifest, listed: None };
                tasks.push(Task::Accused(target, signed));
            }
            Event::VoucherRedeemed { lane, epoch, receipts, .. } if self.looks_at_receipts() => {
                let Some(manifest) = known.manifests.get(&lane.job).copied() else { return Ok(tasks) };
                // Long over: a restart hears of all there ever were.
                let longest = 2 * self.auditor.answers.parameters.max_challenge_window;
                if at.timestamp.saturating_add(longest) < known.started {
                    return Ok(tasks);
                }
                tasks.push(Task::Epoch(Epoch {
                    lane,
                    epoch,
                    receipts,
                    redeemed_at: at.timestamp,
                    block: at.block_hash,
                    manifest,
                }));
            }
            _ => {}
        }
        Ok(tasks)
    }
}
