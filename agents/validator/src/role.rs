//! The validator's loop: listens to the chain, draws claims, audits them, convicts wrong ones.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use cid::Cid;
use serde::{Deserialize, Serialize};
use tensorlink_graph::engine::Engine;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{Call, ChainError, Event, EventAt, NetError};
use tensorlink_node::{Identity, Journal, Roster};
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_types::{ClaimId, JobId};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::audit::{Auditor, Finding, Target};
use crate::draw::{Rate, drawn};

/// Drawn claims that wait; more slow the reading of the chain, which is right: an audit must not be skipped.
const QUEUE: usize = 256;
/// Attempts at a claim whose audit fails on our side or stays without an answer.
const ATTEMPTS: u32 = 4;
/// Wait between attempts.
const PAUSE: Duration = Duration::from_secs(2);
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
    claims: BTreeSet<ClaimId>,
}

const DONE: &str = "audits";

/// A validator.
pub struct Validator<E> {
    /// The node's key.
    pub identity: Identity,
    /// Share of claims to audit.
    pub rate: Rate,
    /// Who is who.
    pub roster: Arc<Roster>,
    /// Records.
    pub journal: Journal,
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
        tracing::info!(address = %self.identity.address(), rate = self.rate.share(), "validator starts");
        self.auditor.net.set_gate(self.roster.clone());
        let chain = self.auditor.chain.clone();
        let mut events = chain.events(chain.deployment().block).await?;
        let (queue, mut drawn) = mpsc::channel::<Target>(QUEUE);
        let done: Done = self.journal.read(DONE)?.unwrap_or_default();
        let audits = {
            let (auditor, journal, stop) = (self.auditor.clone(), self.journal.clone(), shutdown.clone());
            tokio::spawn(async move {
                let mut done = done;
                while let Some(target) = drawn.recv().await {
                    if stop.is_cancelled() {
                        return Ok(());
                    }
                    if done.claims.contains(&target.id) {
                        continue;
                    }
                    tokio::select! {
                        () = stop.cancelled() => return Ok(()),
                        () = examine(&auditor, &target) => {}
                    }
                    done.claims.insert(target.id);
                    while done.claims.len() > REMEMBERED {
                        done.claims.pop_first();
                    }
                    journal.write(DONE, &done)?;
                }
                Ok::<(), JournalError>(())
            })
        };
        let mut manifests = HashMap::new();
        loop {
            let event = tokio::select! {
                () = shutdown.cancelled() => break,
                event = events.recv() => match event { Some(event) => event, None => break },
            };
            if let Some(target) = self.take_in(event, &mut manifests)? {
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    sent = queue.send(target) => if sent.is_err() { break },
                }
            }
        }
        drop(queue);
        match audits.await {
            Ok(result) => Ok(result?),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Takes in an event; a claim that is drawn comes back.
    fn take_in(&self, at: EventAt, manifests: &mut HashMap<JobId, Cid>) -> Result<Option<Target>, SignatureError> {
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
                let target = Target { id, claim, committed_at, manifest };
                Ok(drawn(&self.identity, id, at.block_hash, self.rate)?.then_some(target))
            }
            _ => Ok(None),
        }
    }
}

/// Audits a claim and convicts its worker if it is wrong, with bounded patience.
async fn examine<E: Engine + Send + 'static>(auditor: &Auditor<E>, target: &Target) {
    let (claim, lane, interval) = (target.id, target.claim.lane(), target.claim.interval);
    for attempt in 1..=ATTEMPTS {
        match is_open(auditor, target).await {
            Ok(true) => {}
            Ok(false) => return tracing::debug!(%claim, %lane, interval, "final or void before it was audited"),
            Err(error) => tracing::warn!(%claim, %error, "the chain cannot be asked"),
        }
        match auditor.audit(target).await {
            Ok(Finding::Right) => return tracing::info!(%lane, interval, "audited: right"),
            Ok(Finding::Wrong { call, fault }) => match convict(auditor, call).await {
                Ok(gas) => return tracing::warn!(%lane, interval, %fault, gas, "convicted"),
                Err(error) => tracing::error!(%lane, interval, %fault, %error, attempt, "not convicted"),
            },
            Ok(Finding::Unproven(reason)) => {
                tracing::warn!(%lane, interval, %reason, attempt, "the claim cannot be checked");
            }
            Err(error) => tracing::warn!(%lane, interval, %error, attempt, "the audit failed"),
        }
        auditor.clock.sleep(PAUSE).await;
    }
}

/// Whether the claim can still be challenged.
async fn is_open<E>(auditor: &Auditor<E>, target: &Target) -> Result<bool, ChainError> {
    let lane = auditor.chain.lane(target.claim.lane()).await?;
    let void = lane.void_from.is_some_and(|from| target.claim.interval >= from);
    Ok(target.claim.interval >= lane.finalized && !void)
}

/// Tries the proof locally, then sends it. Returns the gas used.
///
/// # Errors
/// The contract's refusal, or the chain's failure.
pub async fn convict<E>(auditor: &Auditor<E>, call: Call) -> Result<u64, ChainError> {
    let estimate = auditor.chain.simulate(&call).await?;
    tracing::info!(estimate, "the proof holds in a local execution of the contracts");
    Ok(auditor.chain.send(call).await?.gas)
}
