//! An auditor: the parts that it is put together of, each with a state of its own, and what is done with them.

use std::sync::Arc;

use tensorlink_node::budget::Budget;
use tensorlink_node::ports::{Call, ChainError, EventAt, Place};
use tensorlink_node::{Games, Ports};
use tensorlink_program::engine::{Engine, EngineError};
use tensorlink_proof::fraud::Signed;
use tokio::sync::Semaphore;

use crate::answers::Answers;
use crate::audit::Audits;
use crate::boundary::Boundaries;
use crate::challenge::{ChallengeEnd, Challenges};
use crate::claims::Claims;
use crate::conviction;
use crate::defence::Defence;
use crate::evidence::Evidence;
use crate::executor::Executor;
use crate::finding::{AuditError, Finding};
use crate::giving::Giving;
use crate::hunts::Hunts;
use crate::receipt::LastStage;
use crate::shards::Shards;
use crate::target::Target;

/// Audits that hold a shard at once on a node of its own: one executes while another waits for its worker's answers.
pub const TURNS: usize = 2;

/// Challenges that are played at once. They mostly wait.
const PLAYS: usize = 64;

/// Audits claims.
pub struct Auditor<E> {
    /// Its world.
    pub(crate) ports: Ports,
    /// Makes engines.
    engine: Arc<dyn Fn() -> Result<E, EngineError> + Send + Sync>,
    /// Memory that audits take together.
    memory: Arc<Budget>,
    /// Audits that may hold a shard at once. Waiting for a worker's first answer takes no permit, so that silent
    /// workers hold up nobody.
    turns: Semaphore,
    /// The serving stage that was audited last.
    stages: LastStage,
    /// Our challenges.
    pub(crate) games: Arc<Games>,
    /// Challenges that this node plays at once, beside those that were open when it started.
    pub(crate) plays: Semaphore,
    /// Claims that are looked into.
    pub(crate) hunts: Hunts,
    /// Claims on record.
    pub(crate) claims: Claims,
    /// Our answers for claims that we are drawn for.
    pub(crate) answers: Answers,
}

/// Tries a proof locally, then sends it, and penalises who copied what it shows to be wrong. Returns the gas used.
///
/// # Errors
/// The contract's refusal, or the chain's failure.
pub async fn convict<E: Engine + Send + 'static>(auditor: &Auditor<E>, call: Box<Call>) -> Result<u64, ChainError> {
    conviction::convict(&auditor.ports, &auditor.answers, call).await
}

impl<E> Auditor<E> {
    /// An auditor in the world of `ports`, which has given these `answers` so far, with engines that `make` makes. Its
    /// audits share `memory`; `turns` of them may hold a shard at once.
    pub fn new(
        ports: Ports,
        answers: Answers,
        make: impl Fn() -> Result<E, EngineError> + Send + Sync + 'static,
        memory: Arc<Budget>,
        turns: usize,
    ) -> Self {
        Self {
            engine: Arc::new(make),
            memory,
            turns: Semaphore::new(turns),
            stages: LastStage::default(),
            games: Arc::new(Games::new(ports.identity.address())),
            plays: Semaphore::new(PLAYS),
            hunts: Hunts::default(),
            claims: Claims::default(),
            answers,
            ports,
        }
    }

    /// Its world.
    pub const fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Our challenges.
    pub fn games(&self) -> &Games {
        &self.games
    }

    /// Our answers for claims that we are drawn for.
    pub const fn answers(&self) -> &Answers {
        &self.answers
    }

    /// What keeps files.
    pub(crate) const fn evidence(&self) -> Evidence<'_> {
        Evidence::new(&self.ports, &self.answers)
    }

    /// What gives answers.
    pub(crate) const fn giving(&self) -> Giving<'_> {
        Giving::new(&self.ports, &self.answers)
    }

    const fn executor(&self) -> Executor<'_, E> {
        Executor::new(&self.engine, &self.turns)
    }

    const fn shards(&self) -> Shards<'_> {
        Shards::new(&self.ports, &self.memory, &self.stages)
    }
}

/// What the chain tells of claims and of our challenges. It follows from events alone: so a restart finds it again.
impl<E> Auditor<E> {
    /// Takes in an event.
    pub fn apply(&self, at: &EventAt) {
        self.games.apply(at);
        self.claims.apply(&at.event);
    }

    /// Takes in the events behind `known`, in order, and says where the last one is. All up to `known` were taken in
    /// before: a challenge that is told again would begin anew.
    pub fn apply_after(&self, known: Option<Place>, events: &[EventAt]) -> Option<Place> {
        let behind = |at: &&EventAt| Some(at.place()) > known;
        events.iter().filter(behind).fold(known, |_, at| {
            self.apply(at);
            Some(at.place())
        })
    }

    /// Takes in the events behind `known` as they are confirmed, until the chain can be followed no more.
    ///
    /// # Errors
    /// [`ChainError`]: they cannot be had from the start.
    pub async fn follow(&self, known: Option<Place>) -> Result<(), ChainError> {
        let chain = &self.ports.chain;
        // From the first on: what is remembered on disk must have no gap.
        let mut events = chain.events(chain.deployment().block).await?;
        while let Some(at) = events.recv().await {
            // Not behind the last one taken in: a reorganisation brings others of the same blocks.
            self.apply_after(known, &[at]);
        }
        Ok(())
    }
}

impl<E: Engine + Send + 'static> Auditor<E> {
    /// Audits a claim.
    ///
    /// # Errors
    /// [`AuditError`]: something on our side; try again.
    pub async fn audit(&self, target: &Target) -> Result<Finding, AuditError> {
        self.audits().audit(target).await
    }

    /// The same of a claim that an audit found wrong: what was executed then is not executed again, and nothing is
    /// withheld.
    ///
    /// # Errors
    /// As [`Self::audit`].
    pub async fn prove(&self, target: &Target) -> Result<Finding, AuditError> {
        self.audits().prove(target).await
    }

    /// Challenges a claim whose worker does not let itself be audited, and plays until it is decided. Takes up a
    /// challenge of ours that is open on the claim.
    ///
    /// # Errors
    /// [`AuditError`]: something on our side, before anything was opened; try again.
    pub async fn challenge(&self, target: &Target) -> Result<ChallengeEnd, AuditError> {
        self.challenges().challenge(target).await
    }

    /// Goes on with a challenge of ours that is open, of which an event told: after a restart nobody else would, and
    /// the bond be lost.
    ///
    /// # Errors
    /// As [`Self::challenge`].
    pub async fn resume(&self, target: &Target) -> Result<ChallengeEnd, AuditError> {
        self.challenges().resume(target).await
    }

    /// Convicts the worker of the statement that it accuses an auditor by.
    ///
    /// # Errors
    /// [`AuditError`]: something on our side; try again.
    pub(crate) async fn defend(&self, target: &Target, accusation: &Signed) -> Result<ChallengeEnd, AuditError> {
        Defence::new(&self.ports, self.challenges()).defend(target, accusation).await
    }

    const fn audits(&self) -> Audits<'_, E> {
        let boundaries = Boundaries::new(&self.ports, &self.claims);
        Audits::new(&self.ports, &self.answers, boundaries, self.executor(), self.shards())
    }

    const fn challenges(&self) -> Challenges<'_, E> {
        let known = (&self.answers, &self.claims, &self.games);
        Challenges::new(&self.ports, known, self.executor(), self.shards())
    }
}
