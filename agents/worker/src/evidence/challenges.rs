//! Answers challenges on chain: whatever is asked about a claim of ours is computed again and given, in time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tensorlink_model::CacheEngine;
use tensorlink_node::Games;
use tensorlink_node::ports::{Call, ChainError, EventAt};
use tensorlink_proof::challenge::{Answerer, Game, Lacking, Move};
use tensorlink_proof::commit::ProgramCommitment;
use tensorlink_proof::commit::program::ProgramTooLarge;
use tensorlink_types::{Bytes, U256};
use thiserror::Error;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::error::AuditError;
use super::own_claims::{OwnClaims, reason};
use super::replays::Replays;
use crate::context::Context;

/// Longest wait between two looks at what is to be answered.
const PERIOD: Duration = Duration::from_secs(3);
/// Seconds after which what was said is said again, if it is still asked for.
const AGAIN: u64 = 30;
/// Challenges that are being answered at once.
const ANSWERS: usize = 4;

/// Why a challenge is not answered yet. It is tried again until its time is over.
#[derive(Debug, Error)]
enum Unanswered {
    #[error("{0}")]
    Unknown(String),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error(transparent)]
    Lacking(#[from] Lacking),
    #[error(transparent)]
    Program(#[from] ProgramTooLarge),
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// Challenges of our claims.
pub(crate) struct Challenges<E> {
    context: Arc<Context<E>>,
    games: Games,
    claims: Arc<OwnClaims<E>>,
    replays: Arc<Replays<E>>,
}

impl<E> Challenges<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    pub(crate) fn new(context: Arc<Context<E>>, claims: Arc<OwnClaims<E>>, replays: Arc<Replays<E>>) -> Self {
        let games = Games::new(context.ports.identity.address());
        Self { context, games, claims, replays }
    }

    /// Takes in a confirmed event.
    pub(crate) fn apply(&self, at: &EventAt) {
        self.games.apply(at);
    }

    /// Answers challenges, and ends those that their challengers have left, until `end`.
    pub(crate) async fn answer_all(self: Arc<Self>, end: CancellationToken) {
        let mut changes = self.games.watch();
        let mut tasks: JoinSet<(U256, Result<(), Unanswered>)> = JoinSet::new();
        // What was tried last in each challenge, and when it may be tried again: the event that says it is done comes
        // later, and a reorganisation may undo it. Trying costs a simulation, which says whether it is still asked.
        let mut tried: HashMap<U256, (u64, u64)> = HashMap::new();
        loop {
            changes.mark_unchanged();
            let now = self.context.ports.clock.now();
            for challenge in self.games.open() {
                match self.games.check(self.context.ports.chain.as_ref(), challenge, now).await {
                    // What was said may be undone, too.
                    Ok(true) => drop(tried.remove(&challenge)),
                    Ok(false) => {}
                    Err(error) => tracing::debug!(%challenge, %error, "not compared with the chain"),
                }
            }
            let mut due = self.games.to_answer();
            due.sort_by_key(|(_, game)| game.deadline);
            for (challenge, game) in due {
                let waits = tried.get(&challenge).is_some_and(|(asked, again)| *asked == game.asked && now < *again);
                if tasks.len() < ANSWERS && !waits {
                    tried.insert(challenge, (game.asked, now.saturating_add(AGAIN)));
                    let own = self.clone();
                    tasks.spawn(async move { (challenge, own.answer(challenge, &game).await) });
                }
            }
            let left = self.games.to_collect();
            // Deadlines are the chain's; the machine's clock may be wrong.
            let time = if left.is_empty() {
                0
            } else {
                self.context.ports.chain.head().await.map_or(0, |head| head.timestamp)
            };
            for (challenge, deadline) in left {
                let waits = tried.get(&challenge).is_some_and(|(asked, again)| *asked == 0 && now < *again);
                if tasks.len() < ANSWERS && time >= deadline && !waits {
                    tried.insert(challenge, (0, now.saturating_add(AGAIN)));
                    let own = self.clone();
                    tasks.spawn(async move { (challenge, own.end(challenge).await) });
                }
            }
            tokio::select! {
                () = end.cancelled() => return,
                Some(done) = tasks.join_next() => if let Ok((challenge, Err(error))) = done {
                    tracing::warn!(%challenge, %error, "a challenge is not answered yet");
                    if let Some((_, again)) = tried.get_mut(&challenge) {
                        *again = now.saturating_add(PERIOD.as_secs());
                    }
                },
                Ok(()) = changes.changed() => {}
                () = self.context.ports.clock.sleep(PERIOD) => {}
            }
        }
    }

    /// Ends a challenge that its challenger has left: its bond is ours, and the claim goes on to finality.
    async fn end(&self, challenge: U256) -> Result<(), Unanswered> {
        let call = Call::Challenge { challenge, step: Box::new(Move::Timeout) };
        match self.context.ports.chain.simulate(&call).await {
            // Its blocks are not over, or somebody was faster.
            Err(ChainError::Reverted { .. }) => return Ok(()),
            other => other?,
        };
        self.context.ports.chain.send(call).await?;
        // What events told may be older than the end of it.
        let back = self.games.get(challenge).map_or(U256::ZERO, |game| game.owed);
        tracing::info!(%challenge, %back, "a challenge that its challenger left is ended: its bond and our gas are ours");
        self.context.ports.collect_gas().await;
        Ok(())
    }

    async fn answer(&self, challenge: U256, game: &Game) -> Result<(), Unanswered> {
        let (lane, subject) = (game.claim.lane(), game.subject());
        let step = Box::new(self.next_answer(game).await?);
        let call = Call::Challenge { challenge, step };
        // Somebody may have been faster, or the endpoint be behind: the chain's newest state decides.
        let estimate = self.context.ports.chain.simulate(&call).await?;
        let gas = self.context.ports.chain.send(call).await?.gas;
        tracing::info!(%challenge, %lane, ?subject, estimate, gas, "a challenge is answered");
        Ok(())
    }

    async fn next_answer(&self, game: &Game) -> Result<Move, Unanswered> {
        let claim = self.claims.repeatable(game.claim_id).await;
        let claim = claim.map_err(|declined| Unanswered::Unknown(reason(declined)))?;
        // A reorganisation could still change the job's key under what we sign (rule P-15).
        if !claim.interval.confirmed {
            return Err(AuditError::Unconfirmed.into());
        }
        let roots = self.replays.roots_in_turn(&claim).await?;
        let ports = &self.context.ports;
        let commitment = ProgramCommitment::new(&claim.shard.program)?;
        let answerer = Answerer {
            contracts: &ports.contracts,
            claim: &claim.interval.claim,
            program: &commitment.header,
            first_step: claim.span.first_step,
            states: &roots.states,
            traces: &roots.traces,
            logs: &roots.logs,
            signatures: &claim.interval.signatures,
        };
        let sign = |digest| ports.identity.sign(digest).map(Bytes::from);
        match answerer.answer(game, None, sign) {
            Err(Lacking::Output { step, operator }) => {
                let output = self.replays.output_in_turn(&claim, (step, operator)).await?;
                Ok(answerer.answer(game, Some(&output), sign)?)
            }
            other => Ok(other?),
        }
    }
}
