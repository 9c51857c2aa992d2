//! A worker, and its loop: it holds the components, starts their tasks, and tells them what happens on chain.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_model::CacheEngine;
use tensorlink_node::Keeper;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{ChainError, Duplex, EventAt, Incoming, Protocol};
use tensorlink_types::Address;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::components::{Components, Read};
use crate::context::Context;
use crate::dispatch::Dispatch;
use crate::error::WorkerError;
use crate::hiring::promises::Promises;
use crate::keeping::Past;
use crate::record;

/// How long tasks may take to end: in all, and where everything begins anew, which waits for all of them.
const END: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// A worker.
pub struct Worker<E> {
    components: Arc<Components<E>>,
    tasks: TaskTracker,
    end: CancellationToken,
}

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Runs until `shutdown`; everything that matters is on disk before it returns.
    ///
    /// # Errors
    /// [`WorkerError`] when the worker cannot start or its disk fails.
    pub async fn run(context: Arc<Context<E>>, shutdown: CancellationToken) -> Result<(), WorkerError> {
        // Ended here, too, where what follows is not the end of all: this worker begins anew.
        let end = shutdown.child_token();
        let engine = (context.engine)()?.describe();
        let speed = context.config.speed;
        tracing::info!(address = %context.ports.identity.address(), %engine, %speed, "worker starts");
        let requests = context.ports.net.serve(Protocol::Rpc).await?;
        let streams = context.ports.net.accept(Protocol::Tensor).await?;
        context.ports.net.set_gate(context.roster.clone());
        let memory = context.config.memory.clone();
        let keeper = Keeper::open(context.ports.clone(), memory.clone())?;
        let now = context.ports.chain.head().await?.timestamp;
        let promises = Promises::open(context.ports.journal.clone(), memory, now)?;
        let undone = context.ports.chain.times_undone()?;
        record::take_back(&context.ports, undone).await?;
        keeper.take_back(undone).await?;
        let past = Past::open(&context.ports).await?;
        let mut events = context.ports.chain.events(context.ports.chain.deployment().block).await?;
        let parameters = context.ports.chain.parameters().await?;
        let read = Read { keeper, promises, past, parameters };
        let components = Arc::new(Components::new(context, read, end.clone()));
        components.files.take_stock(&components.keeper).await?;
        let worker = Self { components, tasks: TaskTracker::new(), end };
        worker.start(engine, requests, streams);
        let ended = worker.listen(&mut events).await?;
        worker.stop(ended).await
    }

    /// Starts the tasks that go on until the end.
    fn start(
        &self,
        engine: String,
        requests: mpsc::Receiver<Incoming>,
        streams: mpsc::Receiver<(Address, Box<dyn Duplex>)>,
    ) {
        let (of, end) = (&self.components, || self.end.clone());
        let (router, until) = (of.context.stream_router.clone().run(streams), end());
        self.tasks.spawn(async move { until.run_until_cancelled(router).await });
        self.tasks.spawn(of.hiring.clone().advertise(engine, end()));
        self.tasks.spawn(of.requests.clone().answer_all(requests, end()));
        self.tasks.spawn(of.challenges.clone().answer_all(end()));
        self.tasks.spawn(of.demands.clone().tend(end()));
    }

    /// Listens to the chain until the end; why it has come.
    async fn listen(&self, events: &mut mpsc::Receiver<EventAt>) -> Result<Result<(), ChainError>, JournalError> {
        let dispatch = Dispatch::new(self.components.clone(), self.tasks.clone(), self.end.clone());
        loop {
            tokio::select! {
                () = self.end.cancelled() => return Ok(Ok(())),
                event = events.recv() => match event {
                    Some(event) => dispatch.take_in(event).await?,
                    None if self.end.is_cancelled() => return Ok(Ok(())),
                    None => return Ok(Err(self.components.context.ports.chain.ended())),
                },
                () = self.components.lost.tell() => {}
            }
        }
    }

    /// Ends all tasks.
    async fn stop(self, ended: Result<(), ChainError>) -> Result<(), WorkerError> {
        self.end.cancel();
        self.tasks.close();
        // Blocking work ends at its next boundary tensor; the interval it was in will be repeated.
        let anew = matches!(ended, Err(ChainError::Undone { .. }));
        let patience = if anew { END.1 } else { END.0 };
        let stopped = tokio::time::timeout(patience, self.tasks.wait()).await.is_ok();
        if anew && !stopped {
            // What still runs would write to records that the next run has open.
            return Err(ChainError::Ended.into());
        }
        Ok(ended?)
    }
}
