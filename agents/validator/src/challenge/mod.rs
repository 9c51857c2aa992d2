//! Challenges of workers whose answers cannot be had otherwise: what they are about is worked out here, and opened or
//! taken up; then they are played on chain to their end.

mod funds;
mod play;

use std::sync::Arc;

use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Call, Event};
use tensorlink_node::replay::{Replay, Roots};
use tensorlink_node::wire::rpc::IntervalRecord;
use tensorlink_node::{Games, Ports};
use tensorlink_program::engine::Engine;
use tensorlink_proof::challenge::{Move, Told};
use tensorlink_proof::commit::{SenderSignatures, io_root, state_root, trace_root};
use tensorlink_proof::fraud::Signed;
use tensorlink_proof::sortition::answer_of;
use tensorlink_types::Address;
use tensorlink_types::abi::AuditAnswer;

use self::play::Play;
use crate::answers::Answers;
use crate::boundary::Boundaries;
use crate::case::case;
use crate::claims::Claims;
use crate::conviction::convict;
use crate::evidence::Evidence;
use crate::executor::Executor;
use crate::finding::{AuditError, Failed, Finding, Gap, fatal};
use crate::rebuild::Rebuilding;
use crate::records::{record, replay};
use crate::shards::Shards;
use crate::target::{Standing, Target};

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

/// Why a challenge is played.
#[derive(Clone, Copy)]
pub(crate) struct Cause<'a> {
    /// Whether one is opened if there is none.
    pub(crate) may_open: bool,
    /// What the worker signed to accuse an auditor.
    pub(crate) accusation: Option<&'a Signed>,
}

/// Challenges workers.
pub(crate) struct Challenges<'a, E> {
    ports: &'a Ports,
    answers: &'a Answers,
    claims: &'a Claims,
    games: &'a Arc<Games>,
    evidence: Evidence<'a>,
    boundaries: Boundaries<'a>,
    executor: Executor<'a, E>,
    shards: Shards<'a>,
    rebuilding: Rebuilding<'a, E>,
}

impl<'a, E> Challenges<'a, E>
where
    E: Engine + Send + 'static,
{
    /// About claims on record; these are the challenges as events tell them.
    pub(crate) const fn new(
        ports: &'a Ports,
        (answers, claims, games): (&'a Answers, &'a Claims, &'a Arc<Games>),
        executor: Executor<'a, E>,
        shards: Shards<'a>,
    ) -> Self {
        let (evidence, boundaries) = (Evidence::new(ports, answers), Boundaries::new(ports, claims));
        let rebuilding = Rebuilding::new(ports, claims, evidence, executor, shards);
        Self { ports, answers, claims, games, evidence, boundaries, executor, shards, rebuilding }
    }

    /// Challenges a claim whose worker does not let itself be audited, and plays until it is decided. Takes up a
    /// challenge of ours that is open on the claim.
    ///
    /// # Errors
    /// [`AuditError`]: something on our side, before anything was opened; try again.
    pub(crate) async fn challenge(&self, target: &Target) -> Result<ChallengeEnd, AuditError> {
        match self.play(target, Cause { may_open: true, accusation: None }).await {
            Ok(ended) => Ok(ended),
            Err(Failed::Gap(gap)) => Ok(ChallengeEnd::Lost(gap.to_string())),
            Err(Failed::Audit(error)) => Err(error),
        }
    }

    /// The same for this cause. Where that is an accusation, the claim may be right: the worker's word is at issue.
    pub(crate) async fn play(&self, target: &Target, cause: Cause<'_>) -> Result<ChallengeEnd, Failed> {
        let accusation = cause.accusation;
        let Standing::Committed { at } = target.standing else { return Err(Gap::Alone.into()) };
        let Some(_seat) = self.games.seat(target.id) else { return Ok(ChallengeEnd::Taken) };
        let lane = target.claim.lane();
        let job = self.ports.chain.job(lane.job).await.map_err(fatal)?.ok_or_else(|| fatal(AuditError::NoJob))?;
        let (worker, _) = self.ports.chain.assignment(lane).await.map_err(fatal)?;
        // Silent workers hold up nobody: only who has an answer, or none, takes a turn.
        // What we have answered for we hold ourselves.
        let record = match self.answers.of(target.id) {
            Some(given) if accusation.is_some() => Ok(given.record),
            _ => record(self.ports, target, worker).await,
        };
        let turn = self.executor.turn().await?;
        let replay = match self.recorded(target, &job, (worker, record)).await {
            Ok(replay) => replay,
            Err(Failed::Gap(gap)) => {
                tracing::info!(%lane, %gap, "the worker gives no record: its interval is worked out without it");
                self.rebuilding.rebuild(target, &job).await?
            }
            Err(error) => return Err(error),
        };
        let own = Arc::new(self.executor.run(replay.clone(), |replay, engine| replay.roots(engine)).await?);
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
            && io_root(&own.logs.roots()) == target.claim.io
        {
            // The silent worker's own signatures are with its neighbours.
            let own = own.logs.roots();
            return match self.boundaries.compare(target, &job, &own, &SenderSignatures::default()).await? {
                Some(Finding::Wrong { call, fault }) => self.blame(call, fault).await,
                _ => Ok(ChallengeEnd::Right),
            };
        }
        let case = case(self.ports, target, &job, worker).await?;
        // Nobody else can know it, and it outlives a restart.
        let salt = self.ports.identity.salt("tensorlink hints", target.id).map_err(fatal)?;
        Play { challenges: self, target, case, replay, own, committed_at: at, cause, salt }.run(&job).await
    }

    /// Goes on with a challenge of ours that is open, of which an event told: after a restart nobody else would, and
    /// the bond be lost.
    ///
    /// # Errors
    /// As [`Self::challenge`].
    pub(crate) async fn resume(&self, target: &Target) -> Result<ChallengeEnd, AuditError> {
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
        match self.claims.beside(target, target.claim.lane(), target.claim.interval) {
            Some(found) if found.id == target.id => {
                let accusation = self.answers.accusation(found.id);
                self.play(&found, Cause { may_open: false, accusation: accusation.as_ref() }).await
            }
            _ => Ok(ChallengeEnd::Lost("its claim is not on record".to_owned())),
        }
    }

    /// Convicts whoever signed one log to a neighbour and claims another.
    async fn blame(&self, call: Box<Call>, fault: String) -> Result<ChallengeEnd, Failed> {
        convict(self.ports, self.answers, call).await.map_err(fatal)?;
        Ok(ChallengeEnd::Convicted(fault))
    }

    async fn recorded(
        &self,
        target: &Target,
        job: &JobView,
        (worker, record): (Address, Result<IntervalRecord, Gap>),
    ) -> Result<Replay, Failed> {
        let record = record?;
        self.boundaries.senders_signed(target, &record).await?;
        let shard = self.shards.training(target, job, target.claim.stage).await?;
        replay(self.evidence, target, job, (worker, &record), shard).await
    }
}

/// What our execution answers about the last step.
fn own_answer(own: &Roots, replay: &Replay) -> Option<AuditAnswer> {
    let before = own.states.len().checked_sub(2).and_then(|at| own.states.get(at))?;
    let step = replay.span.first_step.saturating_add(replay.span.steps.saturating_sub(1));
    Some(AuditAnswer { step, preState: state_root(before), trace: trace_root(own.traces.last()?) })
}
