//! The validator's loop: listens to the chain, draws claims, audits them, convicts wrong ones.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use cid::Cid;
use serde::{Deserialize, Serialize};
use tensorlink_graph::engine::Engine;
use tensorlink_node::Roster;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::ports::{Call, ChainError, Event, EventAt, NetError};
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_types::{ClaimId, JobId};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::audit::{Auditor, Finding, Standing, Target};
use crate::draw::{Rate, drawn};
use crate::epoch::Epoch;

/// Drawn claims under examination, waiting for their workers or for a turn; more slow the reading of the chain, which is right: an audit
/// must not be skipped.
const OPEN: usize = 256;
/// Attempts at a claim whose audit fails on our side or stays without an answer.
const ATTEMPTS: u32 = 6;
/// Waits between attempts: the first, and the longest. Together they outlast a worker's restart.
const PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));
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
        let mut done: Done = self.auditor.ports.journal.read(DONE)?.unwrap_or_default();
        let open = Arc::new(Semaphore::new(OPEN));
        let mut audits = JoinSet::new();
        let mut manifests = HashMap::new();
        let mut waiting: VecDeque<Task> = VecDeque::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(finished) = audits.join_next() => match settled(finished) {
                    Ended::Claim(claim) => {
                        done.add(claim);
                        self.auditor.ports.journal.write(DONE, &done)?;
                    }
                    Ended::Epoch(targets) => {
                        let fresh = targets.into_iter().filter(|target| !done.claims.contains(&target.id));
                        waiting.extend(fresh.map(Task::Claim));
                    }
                    Ended::Open => {}
                },
                Ok(slot) = open.clone().acquire_owned(), if !waiting.is_empty() => {
                    let Some(task) = waiting.pop_front() else { continue };
                    let (auditor, rate) = (self.auditor.clone(), self.rate);
                    audits.spawn(async move {
                        let _slot = slot;
                        task.run(&auditor, rate).await
                    });
                }
                // Nothing more is taken in while something waits for a place.
                event = events.recv(), if waiting.is_empty() => {
                    let Some(event) = event else { break };
                    let task = self.take_in(event, &mut manifests)?;
                    waiting.extend(task.filter(|task| !matches!(task, Task::Claim(t) if done.claims.contains(&t.id))));
                }
            }
        }
        audits.shutdown().await;
        Ok(())
    }

    /// Takes in an event; what is to be done about it comes back.
    fn take_in(&self, at: EventAt, manifests: &mut HashMap<JobId, Cid>) -> Result<Option<Task>, SignatureError> {
        self.roster.apply(&at.event);
        match at.event {
            Event::JobPosted { job, terms, .. } => {
                if let Ok(cid) = Cid::try_from(terms.manifest.as_ref()) {
                    manifests.insert(job, cid);
                }
                Ok(None)
            }
            Event::ClaimCommitted { id, claim, committed_at } => {
                let Some(manifest) = manifests.get(&JobId(claim.job)).copied() else { return Ok(None) };
                let target = Target { id, claim, standing: Standing::Committed { at: committed_at }, manifest };
                let drawn = drawn(&self.auditor.ports.identity, id, at.block_hash, self.rate)?;
                Ok(drawn.then_some(Task::Claim(target)))
            }
            Event::VoucherRedeemed { lane, epoch, receipts, .. } if self.rate.share() > 0.0 => {
                let Some(manifest) = manifests.get(&lane.job).copied() else { return Ok(None) };
                Ok(Some(Task::Epoch(Epoch { lane, epoch, receipts, block: at.block_hash, manifest })))
            }
            _ => Ok(None),
        }
    }
}

/// Something to look into.
enum Task {
    Claim(Target),
    Epoch(Epoch),
}

/// What came of it.
enum Ended {
    /// Nothing is left to do about a claim.
    Claim(ClaimId),
    /// These receipts were drawn.
    Epoch(Vec<Target>),
    /// It was not decided.
    Open,
}

impl Task {
    async fn run<E: Engine + Send + 'static>(self, auditor: &Auditor<E>, rate: Rate) -> Ended {
        match self {
            Self::Claim(target) => {
                if examine(auditor, &target).await {
                    Ended::Claim(target.id)
                } else {
                    Ended::Open
                }
            }
            Self::Epoch(epoch) => match list(auditor, &epoch, rate).await {
                Some(targets) => Ended::Epoch(targets),
                None => Ended::Open,
            },
        }
    }
}

/// Draws among an epoch's receipts, with bounded patience for its worker; none if it does not tell them.
async fn list<E: Engine + Send + 'static>(auditor: &Auditor<E>, epoch: &Epoch, rate: Rate) -> Option<Vec<Target>> {
    let lane = epoch.lane;
    let mut pause = PAUSE.0;
    for attempt in 1..=ATTEMPTS {
        match is_serving(auditor, lane.job).await {
            Ok(true) => match epoch.claims(auditor).await {
                Ok(targets) => match epoch.draw(auditor, targets, rate) {
                    Ok(drawn) => {
                        tracing::info!(%lane, epoch = epoch.epoch, drawn = drawn.len(), "an epoch's receipts are listed");
                        return Some(drawn);
                    }
                    Err(error) => tracing::error!(%lane, %error, "the lottery cannot be drawn"),
                },
                Err(error) => tracing::warn!(%lane, epoch = epoch.epoch, %error, attempt, "the receipts are not told"),
            },
            Ok(false) => return None,
            Err(error) => tracing::warn!(%lane, %error, "the chain cannot be asked"),
        }
        auditor.ports.clock.sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE.1);
    }
    tracing::error!(%lane, epoch = epoch.epoch, "given up: the worker does not answer for receipts that it redeemed");
    None
}

/// What an ended task came to. A panic over there is one here, with its own message.
fn settled(finished: Result<Ended, JoinError>) -> Ended {
    match finished.map_err(JoinError::try_into_panic) {
        Ok(ended) => ended,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_cancelled)) => Ended::Open,
    }
}

/// Audits a claim and convicts its worker if it is wrong, with bounded patience. Whether nothing is left to do about it.
async fn examine<E: Engine + Send + 'static>(auditor: &Auditor<E>, target: &Target) -> bool {
    let (claim, lane, interval) = (target.id, target.claim.lane(), target.claim.interval);
    let (mut pause, mut attempt) = (PAUSE.0, 0);
    while attempt < ATTEMPTS {
        match is_open(auditor, target).await {
            Ok(true) => {
                attempt += 1;
                if attempt_at(auditor, target, attempt).await {
                    return true;
                }
            }
            Ok(false) => {
                tracing::info!(%claim, %lane, interval, attempt, "cannot be challenged any more");
                return true;
            }
            // No attempt: without the chain there is nothing to do but wait for it.
            Err(error) => tracing::warn!(%claim, %error, "the chain cannot be asked"),
        }
        auditor.ports.clock.sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE.1);
    }
    tracing::error!(%claim, %lane, interval, "given up: the claim is neither found right nor proven wrong");
    false
}

/// One attempt at a claim; whether it was decided.
async fn attempt_at<E: Engine + Send + 'static>(auditor: &Auditor<E>, target: &Target, attempt: u32) -> bool {
    let (lane, interval) = (target.claim.lane(), target.claim.interval);
    match auditor.audit(target).await {
        Ok(Finding::Right) => {
            tracing::info!(%lane, interval, "audited: right");
            return true;
        }
        Ok(Finding::Wrong { call, fault }) => match convict(auditor, call).await {
            Ok(gas) => {
                tracing::warn!(%lane, interval, %fault, gas, "convicted");
                return true;
            }
            Err(error) => tracing::error!(%lane, interval, %fault, %error, attempt, "not convicted"),
        },
        Ok(Finding::Unproven(reason)) => {
            tracing::warn!(%lane, interval, %reason, attempt, "the claim cannot be checked");
        }
        Err(error) => tracing::warn!(%lane, interval, %error, attempt, "the audit failed"),
    }
    false
}

/// Whether the claim can still be challenged.
async fn is_open<E>(auditor: &Auditor<E>, target: &Target) -> Result<bool, ChainError> {
    let at = target.claim.lane();
    let committed_at = match target.standing {
        Standing::Committed { at } => at,
        Standing::Receipt => return is_serving(auditor, at.job).await,
    };
    let lane = auditor.ports.chain.lane(at).await?;
    let void = lane.void_from.is_some_and(|from| target.claim.interval >= from);
    if target.claim.interval < lane.finalized || void {
        return Ok(false);
    }
    let Some(job) = auditor.ports.chain.job(at.job).await? else { return Ok(true) };
    let now = auditor.ports.chain.head().await?.timestamp;
    Ok(now < committed_at.saturating_add(job.challenge_window))
}

/// Whether receipts of a job can still be challenged: until it may be settled, a window after it was closed (rule P-20).
async fn is_serving<E>(auditor: &Auditor<E>, job: JobId) -> Result<bool, ChainError> {
    let Some(job) = auditor.ports.chain.job(job).await? else { return Ok(false) };
    Ok(match job.state {
        JobState::Running => true,
        JobState::Closing => auditor.ports.chain.head().await?.timestamp < job.deadline,
        JobState::Posted | JobState::Accepted | JobState::Settled => false,
    })
}

/// Tries the proof locally, then sends it. Returns the gas used.
///
/// # Errors
/// The contract's refusal, or the chain's failure.
pub async fn convict<E>(auditor: &Auditor<E>, call: Box<Call>) -> Result<u64, ChainError> {
    let estimate = auditor.ports.chain.simulate(&call).await?;
    tracing::info!(estimate, "the proof holds in a local execution of the contracts");
    Ok(auditor.ports.chain.send(*call).await?.gas)
}
