//! The validator's loop: listens to the chain, draws claims, audits them, convicts wrong ones.

use std::sync::Arc;

use tensorlink_node::Roster;
use tensorlink_node::journal::JournalError;
use tensorlink_node::observed::{Keeper, Observed, Payments};
use tensorlink_node::ports::{ChainError, NetError};
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::sign::SignatureError;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::auditor::Auditor;
use crate::dispatch::Dispatch;
use crate::done::Done;
use crate::draw::Rate;
use crate::drawing::Drawing;
use crate::draws::Draws;
use crate::queue::Queue;
use crate::task::{Ended, Task};

/// Claims that the chain drew us for and that the loop has not taken in yet.
const DRAWN: usize = 256;

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
        self.auditor.evidence().take_stock().await;
        let mut done = Done::open(self.auditor.ports.journal.clone())?;
        let mut queue = Queue::new(self.auditor.clone(), self.rate);
        let draws = Arc::new(Draws::default());
        let began = (self.rate, chain.head().await?.timestamp);
        let payments = Arc::new(Payments::default());
        let observed = Observed::new(chain.deployment().clone(), payments.clone());
        let keeper = Keeper::open(self.auditor.ports.clone(), Arc::new(observed))?;
        let mut dispatch = Dispatch::new(began, (self.roster, payments), self.auditor.clone(), draws.clone());
        let (found, mut drawn) = mpsc::channel(DRAWN);
        let mut background = JoinSet::new();
        let (auditor, end) = (self.auditor.clone(), shutdown.clone());
        background.spawn(async move { Drawing::new(&auditor.ports, &auditor.answers, &draws).run(found, end).await });
        let (auditor, end) = (self.auditor.clone(), shutdown.clone());
        background.spawn(async move { auditor.giving().run(end).await });
        let stop = shutdown.child_token();
        let keeping = tokio::spawn(keeper.run(stop.clone()));
        let ended = loop {
            tokio::select! {
                () = shutdown.cancelled() => break Ok(()),
                ended = queue.next() => match ended {
                    Ended::Claim(claim) => done.add(claim)?,
                    Ended::Epoch { listed, chosen } => {
                        dispatch.listed(listed);
                        let fresh = chosen.into_iter().filter(|target| !done.has(target.id));
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
                    let is_done = |task: &Task| matches!(task, Task::Claim(target) if done.has(target.id));
                    let tasks = dispatch.take_in(event)?.into_iter();
                    tasks.filter(|task| !is_done(task)).for_each(|task| queue.push(task));
                }
            }
        };
        queue.shutdown().await;
        background.shutdown().await;
        // What it has heard goes to the disk.
        stop.cancel();
        if let Ok(Err(error)) = keeping.await {
            tracing::warn!(%error, "what users saw of workers was not kept for others");
        }
        Ok(ended?)
    }
}
