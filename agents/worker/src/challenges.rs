//! Answers challenges on chain: whatever is asked about a claim of ours is computed again and given, in time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tensorlink_graph::transformer::CacheEngine;
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_node::wire::rpc::Response;
use tensorlink_proof::challenge::position::position_hash;
use tensorlink_proof::challenge::{Answerer, Game, Lacking, Move};
use tensorlink_proof::commit::ProgramCommitment;
use tensorlink_proof::commit::program::ProgramTooLarge;
use tensorlink_types::{B256, Bytes, U256};
use thiserror::Error;
use tokio::task::JoinSet;

use crate::audit::AuditError;
use crate::role::Worker;

/// Longest wait between two looks at what is to be answered.
const PERIOD: Duration = Duration::from_secs(3);
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

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Answers challenges until the worker stops.
    pub(crate) async fn answer_challenges(self: Arc<Self>) {
        let mut changes = self.games.watch();
        let mut answering: JoinSet<(U256, B256, Result<(), Unanswered>)> = JoinSet::new();
        // What was answered or is being answered: the event that says so comes later.
        let mut seen: HashMap<U256, B256> = HashMap::new();
        loop {
            changes.mark_unchanged();
            for (challenge, game) in self.games.to_answer() {
                let asked = position_hash(&game.position);
                if answering.len() < ANSWERS && seen.get(&challenge) != Some(&asked) {
                    seen.insert(challenge, asked);
                    let worker = self.clone();
                    answering.spawn(async move { (challenge, asked, worker.answer_challenge(challenge, &game).await) });
                }
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                Some(Ok((challenge, asked, done))) = answering.join_next() => if let Err(error) = done {
                    tracing::warn!(%challenge, %error, "a challenge is not answered yet");
                    self.context.ports.clock.sleep(PERIOD.min(Duration::from_secs(1))).await;
                    if seen.get(&challenge) == Some(&asked) {
                        seen.remove(&challenge);
                    }
                },
                Ok(()) = changes.changed() => {}
                () = self.context.ports.clock.sleep(PERIOD) => {}
            }
        }
    }

    async fn answer_challenge(&self, challenge: U256, game: &Game) -> Result<(), Unanswered> {
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
        let declined = |response| match response {
            Response::Declined(reason) => Unanswered::Unknown(reason),
            _ => Unanswered::Unknown("no claim of this worker".to_owned()),
        };
        let claim = self.repeatable(game.claim_id).await.map_err(declined)?;
        // A reorganisation could still change the job's key under what we sign (rule P-15).
        if !claim.interval.confirmed {
            return Err(AuditError::Unconfirmed.into());
        }
        let roots = claim.roots(&self.context, &self.replays).await?;
        let ports = &self.context.ports;
        let commitment = ProgramCommitment::new(&claim.shard.program)?;
        let answerer = Answerer {
            contracts: &ports.contracts,
            claim: &claim.interval.claim,
            program: &commitment.header,
            membership: &claim.membership,
            first_step: claim.span.first_step,
            states: &roots.states,
            traces: &roots.traces,
            logs: &roots.logs,
        };
        let sign = |digest| ports.identity.sign(digest).map(Bytes::from);
        match answerer.answer(game, None, sign) {
            Err(Lacking::Output { step, operator }) => {
                let output = claim.output(&self.context, &self.replays, (step, operator)).await?;
                Ok(answerer.answer(game, Some(&output), sign)?)
            }
            other => Ok(other?),
        }
    }
}
