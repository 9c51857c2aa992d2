//! An auditor: what it has at hand, and how it asks workers, executes, and sends to the chain.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::blocking;
use tensorlink_node::budget::Budget;
use tensorlink_node::ports::{Call, ChainError, NetError, Protocol};
use tensorlink_node::replay::{Replay, ReplayError};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_node::{Games, Ports};
use tensorlink_program::engine::{Engine, EngineError};
use tensorlink_types::Address;
use tokio::sync::Semaphore;

use crate::answers::Answers;
use crate::claims::Claims;
use crate::finding::{Failed, Gap, fatal};
use crate::hunts::Hunts;
use crate::receipt::LastStage;

/// Attempts to get an answer or a file from a worker; it may be restarting.
pub(crate) const PATIENCE: Policy =
    Policy { attempts: 5, first: Duration::from_millis(500), longest: Duration::from_secs(4) };

/// Audits that hold a shard at once on a node of its own: one executes while another waits for its worker's answers.
pub const TURNS: usize = 2;

/// Challenges that are played at once on a node of its own. They mostly wait.
pub const PLAYS: usize = 64;

/// Audits claims.
pub struct Auditor<E> {
    /// Its world.
    pub ports: Ports,
    /// Makes engines.
    pub engine: Arc<dyn Fn() -> Result<E, EngineError> + Send + Sync>,
    /// Memory that audits take together.
    pub memory: Arc<Budget>,
    /// Audits that may hold a shard at once. Waiting for a worker's first answer takes no permit, so that silent
    /// workers hold up nobody.
    pub turns: Semaphore,
    /// The serving stage that was audited last.
    pub stages: LastStage,
    /// Our challenges.
    pub games: Arc<Games>,
    /// Challenges that this node plays at once, beside those that were open when it started.
    pub plays: Semaphore,
    /// Claims that are looked into.
    pub hunts: Hunts,
    /// Claims on record.
    pub claims: Claims,
    /// Our answers for claims that we are drawn for.
    pub answers: Answers,
}

impl<E> Auditor<E>
where
    E: Engine + Send + 'static,
{
    pub(crate) async fn ask(&self, worker: Address, question: &Request) -> Result<Response, Gap> {
        let body = encode("request", question)?;
        let result = retry(self.ports.clock.as_ref(), PATIENCE, || async {
            self.ports.net.request(worker, Protocol::Rpc, body.clone()).await.map_err(|error| match error {
                // A worker that let one long wait pass in silence is not given another.
                error @ (NetError::Timeout { .. } | NetError::Refused(_) | NetError::Protocol { .. }) => {
                    Failure::Permanent(error)
                }
                error => Failure::Transient(error),
            })
        });
        match decode("response", &result.await?)? {
            Response::Declined(reason) => Err(Gap::Declined(reason)),
            response => Ok(response),
        }
    }

    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        replay: Replay,
        job: impl FnOnce(Replay, E) -> Result<T, ReplayError> + Send + 'static,
    ) -> Result<T, Failed> {
        let engine = self.engine.clone();
        blocking(move || job(replay, engine().map_err(ReplayError::from)?)).await.map_err(fatal)
    }

    /// Sends a call; the gas it took. It is not tried locally first, which takes as long as sending it: what the
    /// contract refuses, the estimate of its gas tells as well.
    pub(crate) async fn transact(&self, call: Call) -> Result<u64, ChainError> {
        Ok(self.ports.chain.send(call).await?.gas)
    }
}
