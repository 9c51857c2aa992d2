//! Plays a challenge on chain to its end.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_node::replay::{Replay, Roots};
use tensorlink_program::engine::Engine;
use tensorlink_proof::challenge::{Challenger, Game, Move, Next, Stuck, Tensors, Turn, cost};
use tensorlink_proof::commit::Boundary;
use tensorlink_proof::fraud::Case;
use tensorlink_types::{B256, Bytes, Lane, U256};
use tokio::sync::watch;

use super::funds::top_up;
use super::{Cause, ChallengeEnd, Challenges, LATE, OVER};
use crate::boundary::Attestation;
use crate::conviction::convict;
use crate::finding::{Failed, Finding, Gap, fatal};
use crate::records::record;
use crate::target::Target;

/// Longest wait between two looks at a challenge.
const PERIOD: Duration = Duration::from_secs(2);
/// Seconds within which a challenge that was opened is confirmed.
const CONFIRMED: u64 = 1_800;
/// Seconds after which what was said is said again, if it is still our turn.
const AGAIN: u64 = 60;

/// A challenge that is being played.
pub(super) struct Play<'a, E> {
    pub(super) challenges: &'a Challenges<'a, E>,
    pub(super) target: &'a Target,
    pub(super) case: Case,
    pub(super) replay: Replay,
    pub(super) own: Arc<Roots>,
    pub(super) committed_at: u64,
    pub(super) cause: Cause<'a>,
    /// Of hints.
    pub(super) salt: B256,
}

impl<E> Play<'_, E>
where
    E: Engine + Send + 'static,
{
    /// Plays until it is decided.
    pub(super) async fn run(&self, job: &JobView) -> Result<ChallengeEnd, Failed> {
        let games = &self.challenges.games;
        let mut changes = games.watch();
        let began = self.challenges.ports.clock.now();
        // What was said last, and when: it is said again if it is still our turn later, for a reorganisation may have
        // undone it.
        let mut said = began;
        let mut moved: Option<Game> = None;
        let mut found = String::from("it did not answer in time");
        let challenge = loop {
            if let Some(challenge) = games.on(self.target.id) {
                break challenge;
            }
            if !self.cause.may_open {
                return Ok(ChallengeEnd::Lost(OVER.to_owned()));
            }
            if moved.is_none() {
                // Who is accused and was right has its bond back; who does nothing loses more.
                if self.cause.accusation.is_none() {
                    self.worth_a_bond(job).await?;
                }
                // It may have been mined unseen: a second one would cost a second bond.
                if games.was_opened(self.target.id) {
                    return Ok(ChallengeEnd::Lost("one was opened before, and is not seen".to_owned()));
                }
                self.open().await?;
                games.opened(self.target.id);
                moved = Some(Game::new(self.target.id, self.target.claim.clone(), self.case.worker, self.case.worker));
            }
            self.pause(&mut changes).await;
            if self.challenges.ports.clock.now().saturating_sub(began) > CONFIRMED {
                return Ok(ChallengeEnd::Lost("the challenge that was opened is not confirmed".to_owned()));
            }
        };
        loop {
            let now = self.challenges.ports.clock.now();
            match games.check(self.challenges.ports.chain.as_ref(), challenge, now).await {
                // What was said may be undone, too.
                Ok(true) => moved = None,
                Ok(false) => {}
                Err(error) => tracing::debug!(%challenge, %error, "not compared with the chain"),
            }
            let Some(game) = games.get(challenge) else {
                return Ok(ChallengeEnd::Lost("the challenge was undone".to_owned()));
            };
            if !game.turn.is_open() {
                self.challenges.ports.collect_gas().await;
            }
            match game.turn {
                Turn::Won => return Ok(ChallengeEnd::Convicted(found)),
                Turn::Lost => return Ok(ChallengeEnd::Lost(LATE.to_owned())),
                Turn::Asking | Turn::Answering | Turn::Spent => {}
            }
            // Nothing is said twice; but whether time is over is looked at again.
            let fresh = moved.as_ref() != Some(&game) || now.saturating_sub(said) > AGAIN;
            match self.advance(challenge, &game, fresh, &mut found).await {
                Ok(true) => (moved, said) = (Some(game), now),
                Ok(false) => {}
                Err(Failed::Gap(gap)) => return Ok(ChallengeEnd::Lost(gap.to_string())),
                // The chain's clocks end it, not ours.
                Err(Failed::Audit(error)) => tracing::warn!(%challenge, %error, "the challenge waits"),
            }
            self.pause(&mut changes).await;
        }
    }

    /// Opens a challenge, but where one of ours is on chain that is not confirmed, as after a restart.
    async fn open(&self) -> Result<(), Failed> {
        let (chain, lane) = (&self.challenges.ports.chain, self.target.claim.lane());
        if let Some(challenge) = chain.open_challenge(self.target.id).await.map_err(fatal)? {
            tracing::info!(%lane, %challenge, "a challenge of this node waits for confirmation");
            return Ok(());
        }
        let opening = self.opening().map_err(|stuck| Failed::Gap(Gap::Stuck(stuck)))?;
        match chain.send(opening).await {
            Ok(opened) => tracing::warn!(%lane, gas = opened.gas, "a challenge is opened"),
            // It may still be mined: a second one would cost a second bond.
            Err(ChainError::Pending(transaction)) => tracing::warn!(%transaction, "a challenge is being opened"),
            Err(error) => return Err(fatal(error)),
        }
        Ok(())
    }

    /// Whether the bounty would make up for a lost bond: else its worker could live on challenges.
    async fn worth_a_bond(&self, job: &JobView) -> Result<(), Failed> {
        let terms = self.challenges.ports.chain.parameters().await.map_err(fatal)?;
        let bounty = terms.bounty(job.worker_stake);
        if bounty < U256::from(terms.dispute_bond) { Err(Gap::Unworthy.into()) } else { Ok(()) }
    }

    async fn pause(&self, changes: &mut watch::Receiver<u64>) {
        changes.mark_unchanged();
        tokio::select! {
            _ = changes.changed() => {}
            () = self.challenges.ports.clock.sleep(PERIOD) => {}
        }
    }

    /// Makes the next move, if it is ours; whether one was made.
    async fn advance(&self, challenge: U256, game: &Game, fresh: bool, found: &mut String) -> Result<bool, Failed> {
        let chain = &self.challenges.ports.chain;
        let timeout = Call::Challenge { challenge, step: Box::new(Move::Timeout) };
        // Won as soon as the claim is void, by whatever proof, and when the worker is late.
        match chain.simulate(&timeout).await {
            Ok(_) => {
                chain.send(timeout).await.map_err(fatal)?;
                return Ok(true);
            }
            Err(ChainError::Reverted { .. }) => {}
            Err(error) => return Err(fatal(error)),
        }
        if !fresh {
            return Ok(false);
        }
        if game.turn == Turn::Answering {
            // The worker answers when it likes: gas may become dearer meanwhile.
            top_up(chain.as_ref(), challenge, cost::bytes_of(&game.position, game.hints.len())).await;
        }
        if game.turn != Turn::Asking {
            return Ok(false);
        }
        let call = match self.next(game).await? {
            Next::Ask(step) => {
                top_up(chain.as_ref(), challenge, step.question().map_or(0, cost::most_bytes)).await;
                Call::Challenge { challenge, step }
            }
            Next::Element(proof) => {
                *found = format!(
                    "step {}, operator {} ({}), element {} is wrong",
                    proof.statement.step,
                    proof.operator_index,
                    self.replay.shard.program.names.get(proof.operator_index as usize).cloned().unwrap_or_default(),
                    proof.element
                );
                Call::Prove(proof)
            }
            Next::Wiring(proof) => {
                *found =
                    format!("step {}: entry {} of sink {} is wrong", proof.statement.step, proof.index, proof.sink);
                Call::ProveWiring(proof)
            }
            Next::Contradiction(proof) => {
                *found = format!("step {}: it has signed two outcomes", proof.first.step);
                Call::ProveContradiction(proof)
            }
            Next::Equivocation { boundary, root, signature } => {
                let call = self.blames(boundary, root, &signature).await?;
                convict(self.challenges.ports, self.challenges.answers, call).await.map_err(fatal)?;
                return Err(Gap::Misled(boundary).into());
            }
            Next::Tensors { .. } => return Err(Gap::OffTopic.into()),
        };
        chain.simulate(&call).await.map_err(fatal)?;
        let gas = chain.send(call).await.map_err(fatal)?.gas;
        tracing::info!(%challenge, subject = ?game.subject(), gas, "a move in a challenge");
        Ok(true)
    }

    /// What convicts the neighbour that signed to the worker another log than it claims.
    async fn blames(&self, boundary: Boundary, root: B256, signature: &Bytes) -> Result<Box<Call>, Failed> {
        let (target, lane) = (self.target, self.target.claim.lane());
        let stage = boundary.neighbour(lane.stage).ok_or(Gap::OffTopic)?;
        let gone = || Failed::from(Gap::Neighbour(stage));
        let neighbour =
            self.challenges.claims.beside(target, Lane { stage, ..lane }, target.claim.interval).ok_or_else(gone)?;
        let (worker, _) = self.challenges.ports.chain.assignment(neighbour.claim.lane()).await.map_err(fatal)?;
        let record = record(self.challenges.ports, &neighbour, worker).await?;
        let attestation = Attestation { over: boundary.opposite(), root, signature };
        match self.challenges.boundaries.equivocation(&neighbour, &record.logs, &attestation).await? {
            Some(Finding::Wrong { call, .. }) => Ok(call),
            _ => Err(gone()),
        }
    }

    async fn next(&self, game: &Game) -> Result<Next, Failed> {
        let stuck = |stuck: Stuck| Failed::Gap(Gap::Stuck(stuck));
        match self.challenger().next(game, None).map_err(stuck)? {
            Next::Tensors { step, operator } => {
                let find = move |replay: Replay, engine: E| replay.operator(engine, step, operator);
                let _turn = self.challenges.executor.turn().await?;
                let found = self.challenges.executor.run(self.replay.clone(), find).await?;
                let tensors = Tensors { step, operator, output: found.output, operands: found.operands };
                self.challenger().next(game, Some(&tensors)).map_err(stuck)
            }
            other => Ok(other),
        }
    }

    fn challenger(&self) -> Challenger<'_> {
        Challenger {
            case: &self.case,
            program: &self.replay.shard.program,
            committed_at: self.committed_at,
            first_step: self.replay.span.first_step,
            states: &self.own.states,
            traces: &self.own.traces,
            logs: &self.own.logs,
            accusation: self.cause.accusation,
            salt: self.salt,
        }
    }

    fn opening(&self) -> Result<Call, Stuck> {
        let question = self.challenger().opening()?;
        let open = Move::Open { claim: self.target.claim.clone(), committed_at: self.committed_at, question };
        Ok(Call::Challenge { challenge: U256::ZERO, step: Box::new(open) })
    }
}
