//! What executes intervals again: this node's engines, for so many audits at once.

use std::sync::Arc;

use tensorlink_node::blocking;
use tensorlink_node::pipeline::{Executed, Pipeline};
use tensorlink_node::replay::{Replay, ReplayError};
use tensorlink_program::engine::{Engine, EngineError};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::finding::{AuditError, Failed, fatal};

/// Makes engines.
pub(crate) type MakeEngine<E> = Arc<dyn Fn() -> Result<E, EngineError> + Send + Sync>;

/// Executes intervals.
pub(crate) struct Executor<'a, E> {
    engine: &'a MakeEngine<E>,
    turns: &'a Semaphore,
}

impl<E> Clone for Executor<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Executor<'_, E> {}

impl<'a, E> Executor<'a, E> {
    /// With engines made so, for as many audits at once as there are turns.
    pub(crate) const fn new(engine: &'a MakeEngine<E>, turns: &'a Semaphore) -> Self {
        Self { engine, turns }
    }

    /// Waits for a turn: whoever has one may hold a shard.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'a>, Failed> {
        self.turns.acquire().await.map_err(|_| fatal(AuditError::Closed))
    }
}

impl<E: Engine + Send + 'static> Executor<'_, E> {
    /// Executes a recorded interval.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        replay: Replay,
        job: impl FnOnce(Replay, E) -> Result<T, ReplayError> + Send + 'static,
    ) -> Result<T, Failed> {
        let engine = self.engine.clone();
        blocking(move || job(replay, engine().map_err(ReplayError::from)?)).await.map_err(fatal)
    }

    /// Executes all stages up to an interval of one of them.
    pub(crate) async fn run_all(&self, pipeline: Pipeline, stage: u16, interval: u32) -> Result<Executed, Failed> {
        let engine = self.engine.clone();
        blocking(move || pipeline.replay(|| engine(), stage, interval)).await.map_err(fatal)
    }
}
