//! What a node looks into: so many things at once, the others in turn.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use tensorlink_program::engine::Engine;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

use crate::auditor::Auditor;
use crate::draw::Rate;
use crate::task::{Ended, Task};

/// Claims under examination, waiting for their workers or for a turn; more wait.
const OPEN: usize = 256;
/// What waits for a place; more slows the reading of the chain.
const WAITING: usize = 65_536;

/// Tasks that run and tasks that wait.
pub(crate) struct Queue<E> {
    auditor: Arc<Auditor<E>>,
    /// Share of an epoch's receipts that is looked at.
    rate: Rate,
    open: Arc<Semaphore>,
    running: JoinSet<Ended>,
    waiting: VecDeque<Task>,
}

impl<E: Engine + Send + 'static> Queue<E> {
    pub(crate) fn new(auditor: Arc<Auditor<E>>, rate: Rate) -> Self {
        let open = Arc::new(Semaphore::new(OPEN));
        Self { auditor, rate, open, running: JoinSet::new(), waiting: VecDeque::new() }
    }

    /// Whether more may wait.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING
    }

    /// Begins what is urgent, and lets everything else wait for a place.
    pub(crate) fn push(&mut self, task: Task) {
        if task.is_urgent() {
            let (auditor, rate) = (self.auditor.clone(), self.rate);
            self.running.spawn(async move { task.run(&auditor, rate, None).await });
        } else {
            self.waiting.push_back(task);
        }
    }

    /// The next task that ends; begins what waits as places come free. Nothing is lost when it is dropped.
    pub(crate) async fn next(&mut self) -> Ended {
        loop {
            tokio::select! {
                Some(finished) = self.running.join_next() => return settled(finished),
                Ok(slot) = self.open.clone().acquire_owned(), if !self.waiting.is_empty() => {
                    let Some(task) = self.waiting.pop_front() else { continue };
                    let (auditor, rate) = (self.auditor.clone(), self.rate);
                    self.running.spawn(async move { task.run(&auditor, rate, Some(slot)).await });
                }
                else => return pending().await,
            }
        }
    }

    /// Ends all that runs.
    pub(crate) async fn shutdown(mut self) {
        self.running.shutdown().await;
    }
}

/// What an ended task came to. A panic over there is one here, with its own message.
fn settled(finished: Result<Ended, JoinError>) -> Ended {
    match finished.map_err(JoinError::try_into_panic) {
        Ok(ended) => ended,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_cancelled)) => Ended::Open,
    }
}
