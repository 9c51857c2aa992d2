//! Plays a challenge on chain to its end, against a worker whose answers cannot be had otherwise.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Call, ChainError, Event};
use tensorlink_node::replay::{Replay, Roots};
use tensorlink_node::wire::rpc::IntervalRecord;
use tensorlink_program::engine::Engine;
use tensorlink_proof::challenge::ask::Tensors;
use tensorlink_proof::challenge::{Challenger, Game, Move, Next, Stuck, Told, Turn, cost};
use tensorlink_proof::commit::{Boundary, SenderSignatures, state_root, trace_root};
use tensorlink_proof::fraud::{Case, Signed};
use tensorlink_proof::sortition::answer_of;
use tensorlink_types::abi::AuditAnswer;
use tensorlink_types::{Address, B256, Bytes, Lane, U256};

use crate::auditor::Auditor;
use crate::boundary::Attestation;
use crate::conviction::convict;
use crate::finding::{AuditError, Failed, Finding, Gap, fatal};
use crate::target::{Standing, Target};

/// Longest wait between two looks at a challenge.
const PERIOD: Duration = Duration::from_secs(2);
/// Seconds within which a challenge that was opened is confirmed.
const CONFIRMED: u64 = 1_800;
/// Seconds after which what was said is said again, if it is still our turn.
const AGAIN: u64 = 60;

/// Why a challenge brought nothing.
const OVER: &str = "it is over";
const LATE: &str = "our time ran out";

/// How a challenge ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChallengeEnd {
    /// The claim turned out to be what our own execution gives: nothing was opened.
    Right,
    /// The worker is convicted and our bond is back. What was found, for people.
    Convicted(String),
    /// The challenge was lost, or could not be played; why.
    Lost(String),
    /// Another task here plays it.
    Taken,
}

impl<E> Auditor<E>
where
    E: Engine + Send + 'static,
{
    /// Challenges a claim whose worker does not let itself be audited, and plays until it is decided. Takes up a
    /// challenge of ours that is open on the claim.
    ///
    /// # Errors
    /// [`AuditError`]: something on our side, before anything was opened; try again.
    pub async fn challenge(&self, target: &Target) -> Result<ChallengeEnd, AuditError> {
        match self.try_challenge(target, (true, None)).await {
            Ok(ended) => Ok(ended),
            Err(Failed::Gap(gap)) => Ok(ChallengeEnd::Lost(gap.to_string())),
            Err(Failed::Audit(error)) => Err(error),
        }
    }

    /// The same over what a worker signed to accuse us, be its claim right or wrong.
    pub(crate) async fn try_challenge(
        &self,
        target: &Target,
        (may_open, accusation): (bool, Option<&Signed>),
    ) -> Result<ChallengeEnd, Failed> {
        let Standing::Committed { at } = target.standing else { return Err(Gap::Alone.into()) };
        let Some(_seat) = self.games.seat(target.id) else { return Ok(ChallengeEnd::Taken) };
        let lane = target.claim.lane();
        let job = self.ports.chain.job(lane.job).await.map_err(fatal)?.ok_or_else(|| fatal(AuditError::NoJob))?;
        let (worker, _) = self.ports.chain.assignment(lane).await.map_err(fatal)?;
        // Silent workers hold up nobody: only who has an answer, or none, takes a turn.
        // What we have answered for we hold ourselves.
        let record = match self.answers.of(target.id) {
            Some(given) if accusation.is_some() => Ok(given.record),
            _ => self.record(target, worker).await,
        };
        let turn = self.turns.acquire().await.map_err(|_| fatal(AuditError::Closed))?;
        let replay = match self.recorded(target, &job, (worker, record)).await {
            Ok(replay) => replay,
            Err(Failed::Gap(gap)) => {
                tracing::info!(%lane, %gap, "the worker gives no record: its interval is worked out without it");
                self.rebuild(target, &job).await?
            }
            Err(error) => return Err(error),
        };
        let own = Arc::new(self.blocking(replay.clone(), |replay, engine| replay.roots(engine)).await?);
        drop(turn);
        if accusation.is_some_and(|accusation| own_answer(&own, &replay) == Some(answer_of(&accusation.statement))) {
            if self.answers.of(target.id).is_some_and(|given| own_answer(&own, &replay) != Some(given.answer)) {
                tracing::error!(%lane, "two executions differ: this node's device computes wrongly, take it out of service");
            }
            return Ok(ChallengeEnd::Right);
        }
        let new_state = own.states.last().map(|state| state_root(state));
        if accusation.is_none()
            && new_state == Some(target.claim.newState)
            && tensorlink_proof::commit::io_root(&own.logs.roots()) == target.claim.io
        {
            // The silent worker's own signatures are with its neighbours.
            let own = own.logs.roots();
            return match self.compare_boundaries(target, &job, &own, &SenderSignatures::default()).await? {
                Some(Finding::Wrong { call, fault }) => self.blame(call, fault).await,
                _ => Ok(ChallengeEnd::Right),
            };
        }
        let case = self.case(target, &job, worker).await?;
        // Nobody else can know it, and it outlives a restart.
        let salt = self.ports.identity.salt("tensorlink hints", target.id).map_err(fatal)?;
        let play = Play { auditor: self, target, case, replay, own, committed_at: at, may_open, accusation, salt };
        play.run(&job).await
    }

    /// Goes on with a challenge of ours that is open, of which an event told: after a restart nobody else would, and
    /// the bond be lost.
    ///
    /// # Errors
    /// As [`Self::challenge`].
    pub async fn resume(&self, target: &Target) -> Result<ChallengeEnd, AuditError> {
        match self.try_resume(target).await {
            Ok(ended) => Ok(ended),
            Err(Failed::Gap(gap)) => Ok(ChallengeEnd::Lost(gap.to_string())),
            Err(Failed::Audit(error)) => Err(error),
        }
    }

    async fn try_resume(&self, target: &Target) -> Result<ChallengeEnd, Failed> {
        let Some(challenge) = self.games.on(target.id) else { return Ok(ChallengeEnd::Lost(OVER.to_owned())) };
        // It may be decided already, and only the bond be left to collect.
        let timeout = Call::Challenge { challenge, step: Box::new(Move::Timeout) };
        if self.ports.chain.simulate(&timeout).await.is_ok() {
            let ended = self.ports.chain.send(timeout).await.map_err(fatal)?;
            self.ports.collect_gas().await;
            let won = ended.events.iter().any(|event| matches!(event, Event::Challenge { told: Told::Won { .. }, .. }));
            let found = "its claim is void, or it did not answer in time";
            return Ok(if won {
                ChallengeEnd::Convicted(found.to_owned())
            } else {
                ChallengeEnd::Lost(LATE.to_owned())
            });
        }
        match self.claim_of(target, target.claim.lane(), target.claim.interval) {
            Some(found) if found.id == target.id => {
                self.try_challenge(&found, (false, self.answers.accusation(found.id).as_ref())).await
            }
            _ => Ok(ChallengeEnd::Lost("its claim is not on record".to_owned())),
        }
    }

    /// Convicts whoever signed one log to a neighbour and claims another.
    async fn blame(&self, call: Box<Call>, fault: String) -> Result<ChallengeEnd, Failed> {
        convict(self, call).await.map_err(fatal)?;
        Ok(ChallengeEnd::Convicted(fault))
    }

    async fn recorded(
        &self,
        target: &Target,
        job: &JobView,
        (worker, record): (Address, Result<IntervalRecord, Gap>),
    ) -> Result<Replay, Failed> {
        let record = record?;
        self.senders_signed(target, &record).await?;
        let shard = self.shard(target, job, target.claim.stage).await?;
        self.replay(target, job, (worker, &record), shard).await
    }
}

/// What our execution answers about the last step.
fn own_answer(own: &Roots, replay: &Replay) -> Option<AuditAnswer> {
    let before = own.states.len().checked_sub(2).and_then(|at| own.states.get(at))?;
    let step = replay.span.first_step.saturating_add(replay.span.steps.saturating_sub(1));
    Some(AuditAnswer { step, preState: state_root(before), trace: trace_root(own.traces.last()?) })
}

/// A challenge that is being played.
struct Play<'a, E> {
    auditor: &'a Auditor<E>,
    target: &'a Target,
    case: Case,
    replay: Replay,
    own: Arc<Roots>,
    committed_at: u64,
    /// Whether a challenge is opened if there is none.
    may_open: bool,
    /// What it signed to accuse us.
    accusation: Option<&'a Signed>,
    /// Of hints.
    salt: B256,
}

impl<E> Play<'_, E>
where
    E: Engine + Send + 'static,
{
    async fn run(&self, job: &JobView) -> Result<ChallengeEnd, Failed> {
        let games = &self.auditor.games;
        let mut changes = games.watch();
        let began = self.auditor.ports.clock.now();
        // What was said last, and when: it is said again if it is still our turn later, for a reorganisation may have
        // undone it.
        let mut said = began;
        let mut moved: Option<Game> = None;
        let mut found = String::from("it did not answer in time");
        let challenge = loop {
            if let Some(challenge) = games.on(self.target.id) {
                break challenge;
            }
            if !self.may_open {
                return Ok(ChallengeEnd::Lost(OVER.to_owned()));
            }
            if moved.is_none() {
                // Who is accused and was right has its bond back; who does nothing loses more.
                if self.accusation.is_none() {
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
            if self.auditor.ports.clock.now().saturating_sub(began) > CONFIRMED {
                return Ok(ChallengeEnd::Lost("the challenge that was opened is not confirmed".to_owned()));
            }
        };
        loop {
            let now = self.auditor.ports.clock.now();
            match games.check(self.auditor.ports.chain.as_ref(), challenge, now).await {
                // What was said may be undone, too.
                Ok(true) => moved = None,
                Ok(false) => {}
                Err(error) => tracing::debug!(%challenge, %error, "not compared with the chain"),
            }
            let Some(game) = games.get(challenge) else {
                return Ok(ChallengeEnd::Lost("the challenge was undone".to_owned()));
            };
            if !game.turn.is_open() {
                self.auditor.ports.collect_gas().await;
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
        let (chain, lane) = (&self.auditor.ports.chain, self.target.claim.lane());
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
        let terms = self.auditor.ports.chain.parameters().await.map_err(fatal)?;
        let bounty = terms.bounty(job.worker_stake);
        if bounty < U256::from(terms.dispute_bond) { Err(Gap::Unworthy.into()) } else { Ok(()) }
    }

    async fn pause(&self, changes: &mut tokio::sync::watch::Receiver<u64>) {
        changes.mark_unchanged();
        tokio::select! {
            _ = changes.changed() => {}
            () = self.auditor.ports.clock.sleep(PERIOD) => {}
        }
    }

    /// Makes the next move, if it is ours; whether one was made.
    async fn advance(&self, challenge: U256, game: &Game, fresh: bool, found: &mut String) -> Result<bool, Failed> {
        let chain = &self.auditor.ports.chain;
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
            self.top_up(challenge, cost::bytes_of(&game.position, game.hints.len())).await;
        }
        if game.turn != Turn::Asking {
            return Ok(false);
        }
        let call = match self.next(game).await? {
            Next::Ask(step) => {
                self.top_up(challenge, step.question().map_or(0, cost::most_bytes)).await;
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
                convict(self.auditor, call).await.map_err(fatal)?;
                return Err(Gap::Misled(boundary).into());
            }
            Next::Tensors { .. } => return Err(Gap::OffTopic.into()),
        };
        chain.simulate(&call).await.map_err(fatal)?;
        let gas = chain.send(call).await.map_err(fatal)?.gas;
        tracing::info!(%challenge, subject = ?game.subject(), gas, "a move in a challenge");
        Ok(true)
    }

    /// Puts up more for the worker's gas, if it has become so dear that what is left might not cover the next answer.
    /// Where that fails the game goes on: what is left may do.
    async fn top_up(&self, challenge: U256, bytes: u64) {
        match self.try_top_up(challenge, bytes).await {
            Ok(None) => {}
            Ok(Some(amount)) => tracing::info!(%challenge, %amount, "gas is dearer: more is put up for the worker's"),
            Err(error) => tracing::warn!(%challenge, %error, "no more is put up for the worker's gas"),
        }
    }

    async fn try_top_up(&self, challenge: U256, bytes: u64) -> Result<Option<U256>, ChainError> {
        let chain = &self.auditor.ports.chain;
        // By the newest block: events may wait for confirmation, and nothing is to be put up twice.
        let (left, base_fee) = (chain.deposit_left(challenge).await?, chain.base_fee().await?);
        let Some(amount) = cost::top_up(left, bytes, base_fee) else { return Ok(None) };
        chain.send(Call::Challenge { challenge, step: Box::new(Move::Fund { amount }) }).await?;
        Ok(Some(amount))
    }

    /// What convicts the neighbour that signed to the worker another log than it claims.
    async fn blames(&self, boundary: Boundary, root: B256, signature: &Bytes) -> Result<Box<Call>, Failed> {
        let (target, lane) = (self.target, self.target.claim.lane());
        let stage = boundary.neighbour(lane.stage).ok_or(Gap::OffTopic)?;
        let gone = || Failed::from(Gap::Neighbour(stage));
        let neighbour =
            self.auditor.claim_of(target, Lane { stage, ..lane }, target.claim.interval).ok_or_else(gone)?;
        let (worker, _) = self.auditor.ports.chain.assignment(neighbour.claim.lane()).await.map_err(fatal)?;
        let record = self.auditor.record(&neighbour, worker).await?;
        let attestation = Attestation { over: boundary.opposite(), root, signature };
        match self.auditor.equivocation(&neighbour, &record.logs, &attestation).await? {
            Some(Finding::Wrong { call, .. }) => Ok(call),
            _ => Err(gone()),
        }
    }

    async fn next(&self, game: &Game) -> Result<Next, Failed> {
        let stuck = |stuck: Stuck| Failed::Gap(Gap::Stuck(stuck));
        match self.challenger().next(game, None).map_err(stuck)? {
            Next::Tensors { step, operator } => {
                let find = move |replay: Replay, engine: E| replay.operator(engine, step, operator);
                let _turn = self.auditor.turns.acquire().await.map_err(|_| fatal(AuditError::Closed))?;
                let found = self.auditor.blocking(self.replay.clone(), find).await?;
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
            accusation: self.accusation,
            salt: self.salt,
        }
    }

    fn opening(&self) -> Result<Call, Stuck> {
        let question = self.challenger().opening()?;
        let open = Move::Open { claim: self.target.claim.clone(), committed_at: self.committed_at, question };
        Ok(Call::Challenge { challenge: U256::ZERO, step: Box::new(open) })
    }
}
