//! Continuous batching: one thread a decoder, whose texts join and leave at every token.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc::{self, error::TrySendError};

use super::decoder::Decoder;
use super::group::{Group, Waiting};
use super::language::Language;
use super::sequence::{Task, tasks};
use super::{Ask, Generation};
use crate::backend::error::BackendError;
use crate::backend::model::Model;

/// When a client whom a full queue refused should come back.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How much a decoder takes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Requests that wait (at least 1).
    pub queue: usize,
    /// Texts computed side by side (at least 1).
    pub texts: usize,
}

/// The texts of a request.
type Job = Vec<Waiting>;

/// A decoder on a thread of its own behind a bounded queue.
///
/// The thread ends when this is dropped and its texts are at their end or abandoned.
pub struct Batch {
    model: Model,
    language: Arc<dyn Language>,
    queue: mpsc::Sender<Job>,
}

impl Batch {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start<D: Decoder + Send + 'static>(
        model: Model,
        language: Arc<dyn Language>,
        decoder: D,
        capacity: Capacity,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (queue, jobs) = mpsc::channel(capacity.queue.max(1));
        let words = Arc::clone(&language);
        let work = move || run(decoder, &*words, jobs, capacity.texts.max(1));
        let thread = thread::Builder::new().name(format!("model {}", model.id)).spawn(work)?;
        Ok((Self { model, language, queue }, thread))
    }

    /// Whether the thread has ended, as by a panic.
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Continues texts. One that is refused refuses them all.
    ///
    /// # Errors
    /// [`BackendError`]; of what goes wrong later, the text's own pieces tell.
    pub async fn generate(&self, ask: Ask) -> Result<Vec<Generation>, BackendError> {
        // First a place in the queue: what is refused costs no tokenizer's time.
        let place = self.queue.clone().try_reserve_owned().map_err(|refused| match refused {
            TrySendError::Full(_) => BackendError::Busy { retry_after: RETRY_AFTER },
            TrySendError::Closed(_) => BackendError::Stopped,
        })?;
        let (model, language) = (self.model.clone(), Arc::clone(&self.language));
        let tasks = tokio::task::spawn_blocking(move || tasks(&model, &*language, ask));
        let tasks = tasks.await.map_err(|_| BackendError::Failed("the tokenizer panicked".into()))??;
        let (job, generations) = tasks.into_iter().map(open).unzip();
        place.send(job);
        // What is sent into a place that was taken while the thread ended is never looked at, and never dropped,
        // either: nobody would be told.
        if self.is_closed() { Err(BackendError::Stopped) } else { Ok(generations) }
    }
}

fn open(task: Task) -> (Waiting, Generation) {
    // SAFETY of the cast: 32 bits fit. Memory is taken as pieces come, not for all at once.
    let (sender, pieces) = mpsc::channel((task.most as usize).saturating_add(1));
    let generation = Generation { prompt_tokens: task.prompt_tokens(), pieces };
    (Waiting { task, pieces: sender }, generation)
}

/// Serves requests, first come, first served, until none can come any more.
fn run<D: Decoder>(mut decoder: D, language: &dyn Language, mut jobs: mpsc::Receiver<Job>, texts: usize) {
    let mut group = Group::new(language);
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    loop {
        if group.is_empty() && waiting.is_empty() {
            match jobs.blocking_recv() {
                Some(job) => waiting.extend(job),
                None => return,
            }
        }
        while group.len() < texts {
            // From the queue only what can begin at once: what waits there is counted.
            match waiting.pop_front() {
                Some(next) => group.join(&mut decoder, next),
                None => match jobs.try_recv() {
                    Ok(job) => waiting.extend(job),
                    Err(_) => break,
                },
            }
        }
        group.advance(&mut decoder);
    }
}
