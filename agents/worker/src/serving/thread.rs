//! A lane's thread: the texts that are open, and what computes them, behind a bounded queue.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tensorlink_node::footprint::QUEUE;
use tensorlink_node::ports::Clock;
use tensorlink_node::serving::{Gives, ServingShard};
use tensorlink_num::Tensor;
use tensorlink_types::{Lane, TensorType, TypeError};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use super::runner::{Runner, RunnerError, Turn};
use super::texts::{Row, Step, Stuck, Text, Texts};

/// Why a lane's thread could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The system gives no thread.
    #[error("no thread for {lane}: {source}")]
    Thread {
        /// The lane.
        lane: Lane,
        /// Why.
        source: std::io::Error,
    },
    /// There is no usable device, or it cannot hold the constants and a text.
    #[error("the engine of {lane} does not start: {reason}")]
    Engine {
        /// The lane.
        lane: Lane,
        /// Why.
        reason: String,
    },
}

/// What became of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// The rows it gave.
    Rows(Vec<u8>),
    /// The rows it gave, and the text, which it ended.
    Ended(Vec<u8>, Text),
    /// Only so many of the text's tokens are here.
    Rewind(u32),
    /// Too many texts are open, or too many requests wait.
    Busy,
    /// It cannot be computed; the reason is for people.
    Refused(String),
}

enum Message {
    Step(Step, oneshot::Sender<Done>),
    Forget(u32),
}

/// Tokens whose rows were given before their text has ended.
#[derive(Debug, Default)]
struct Given {
    /// Of open texts.
    open: AtomicU64,
    /// Of texts that were cut back or forgotten, since the thread began.
    lost: AtomicU64,
}

/// A lane's thread. It ends with the text that it is at once this is dropped.
#[derive(Debug)]
pub struct LaneThread {
    messages: mpsc::Sender<Message>,
    given: Arc<Given>,
}

impl LaneThread {
    /// Starts the thread and waits until `make` has made its runner there.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start<R: Runner>(
        lane: Lane,
        shard: Arc<ServingShard>,
        clock: Arc<dyn Clock>,
        make: impl FnOnce(Arc<ServingShard>) -> Result<R, String> + Send + 'static,
    ) -> Result<Self, StartError> {
        let (sender, mut messages) = mpsc::channel(QUEUE);
        let (ready, started) = oneshot::channel();
        let given = Arc::new(Given::default());
        let counted = given.clone();
        let work = move || {
            let runner = match make(shard.clone()) {
                Ok(runner) => runner,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let mut desk = match Desk::new(shard, runner, (clock, counted)) {
                Ok(desk) => desk,
                Err(error) => return drop(ready.send(Err(error))),
            };
            // Who started this may be gone; then the queue is closed.
            let _ = ready.send(Ok(()));
            let mut waiting = Vec::new();
            while messages.blocking_recv_many(&mut waiting, QUEUE) > 0 {
                desk.work(waiting.drain(..));
            }
        };
        let thread = thread::Builder::new().name(format!("serve {lane}")).spawn(work);
        thread.map_err(|source| StartError::Thread { lane, source })?;
        match started.await {
            Ok(Ok(())) => Ok(Self { messages: sender, given }),
            Ok(Err(reason)) => Err(StartError::Engine { lane, reason }),
            Err(_) => Err(StartError::Engine { lane, reason: "it panicked; see the log".into() }),
        }
    }

    /// Computes a step.
    pub async fn advance(&self, step: Step) -> Done {
        let (reply, done) = oneshot::channel();
        match self.messages.try_send(Message::Step(step, reply)) {
            Err(mpsc::error::TrySendError::Full(_)) => return Done::Busy,
            Err(mpsc::error::TrySendError::Closed(_)) => return stopped(),
            Ok(()) => {}
        }
        done.await.unwrap_or_else(|_| stopped())
    }

    /// Tokens of open texts whose rows were given.
    pub fn open(&self) -> u64 {
        self.given.open.load(Ordering::Relaxed)
    }

    /// Tokens whose rows were given, since the thread began, and which then were cut off or whose text was forgotten.
    pub fn lost(&self) -> u64 {
        self.given.lost.load(Ordering::Relaxed)
    }

    /// Waits until the thread has ended, which it does by itself only if it panics.
    pub async fn ended(&self) {
        self.messages.closed().await;
    }

    /// Forgets a text; a text that is not forgotten because the queue is full goes when it has been idle for long.
    pub fn forget(&self, text: u32) {
        let _ = self.messages.try_send(Message::Forget(text));
    }
}

fn stopped() -> Done {
    Done::Refused("the lane's engine has stopped and is started again: ask again, or choose another worker".into())
}

/// Bytes of a token's rows in a stage.
fn row(shard: &ServingShard) -> Result<Row, TypeError> {
    let bytes = |ty: TensorType| usize::try_from(ty.byte_len()).unwrap_or(usize::MAX);
    let given = if shard.gives() == Gives::Rows { bytes(shard.given(1)?) } else { 0 };
    Ok(Row { received: bytes(shard.received(1)?), controls: shard.controls(1)?.map_or(0, bytes), given })
}

/// What the thread works with.
struct Desk<R> {
    shard: Arc<ServingShard>,
    runner: R,
    clock: Arc<dyn Clock>,
    texts: Texts,
    given: Arc<Given>,
}

/// A step that the runner takes up, and who waits for it.
type Taken = (Step, oneshot::Sender<Done>);

impl<R: Runner> Desk<R> {
    fn new(shard: Arc<ServingShard>, runner: R, (clock, given): (Arc<dyn Clock>, Arc<Given>)) -> Result<Self, String> {
        let row = row(&shard).map_err(|error| format!("a stage without rows: {error}"))?;
        let texts = Texts::new(row, shard.longest, runner.most_tokens());
        Ok(Self { shard, runner, clock, texts, given })
    }

    /// Tells how much was given before anybody learns of it.
    fn count(&self) {
        self.given.open.store(self.texts.given(), Ordering::Relaxed);
        self.given.lost.store(self.texts.lost(), Ordering::Relaxed);
    }

    /// Takes up what waits, steps of different texts at once.
    fn work(&mut self, messages: impl Iterator<Item = Message>) {
        let now = self.clock.now();
        for text in self.texts.sweep(now) {
            self.runner.forget(text);
        }
        self.count();
        let mut taken: Vec<Taken> = Vec::new();
        let mut numbers = HashSet::new();
        for message in messages {
            let text = match &message {
                Message::Step(step, _) => step.text,
                Message::Forget(text) => *text,
            };
            if !numbers.insert(text) {
                // One text's steps come one after another.
                self.run(std::mem::take(&mut taken));
                numbers = HashSet::from([text]);
            }
            match message {
                Message::Forget(text) => {
                    self.texts.forget(text);
                    self.runner.forget(text);
                    self.count();
                }
                // The user may have left meanwhile; it will send this again.
                Message::Step(_, reply) if reply.is_closed() => {}
                Message::Step(step, reply) => match self.take(&step, now) {
                    Ok(()) => taken.push((step, reply)),
                    Err(done) => drop(reply.send(done)),
                },
            }
        }
        self.run(taken);
    }

    /// Puts a step's rows with those of its text.
    fn take(&mut self, step: &Step, now: u64) -> Result<(), Done> {
        let refused = |reason: String| Err(Done::Refused(reason));
        if step.tokens > 0 {
            // Mantissas beyond their type would end the pass over every text that is computed with this one.
            if let Err(error) = self.check(step) {
                return refused(format!("the rows of text {} are none: {error}", step.text));
            }
        } else if !step.last || step.position == 0 {
            return refused("a step without tokens can only end a text that has some".into());
        }
        self.texts.extend(step, now).map_err(|stuck| match stuck {
            Stuck::Behind(held) => Done::Rewind(held),
            Stuck::Full => Done::Busy,
        })
    }

    /// Whether a step's rows are tensors of the stage's types.
    fn check(&self, step: &Step) -> Result<(), RunnerError> {
        Tensor::from_bytes(self.shard.received(step.tokens)?, &step.rows)?;
        if let Some(controls) = self.shard.controls(step.tokens)? {
            Tensor::from_bytes(controls, &step.controls)?;
        }
        Ok(())
    }

    fn run(&mut self, taken: Vec<Taken>) {
        let turn = |(step, _): &'_ Taken| {
            let text = self.texts.get(step.text)?;
            let Step { text: number, position, last, .. } = *step;
            let Text { received, controls, tokens, .. } = text;
            Some(Turn { text: number, received, controls, tokens: *tokens, position, last })
        };
        let turns: Vec<Turn<'_>> = taken.iter().filter_map(turn).collect();
        if turns.is_empty() {
            return;
        }
        let results = self.runner.run(&turns);
        let finish = |((step, reply), result): (Taken, _)| (reply, self.finish(&step, result));
        let done: Vec<_> = taken.into_iter().zip(results).map(finish).collect();
        self.count();
        for (reply, done) in done {
            // The user may have left meanwhile.
            let _ = reply.send(done);
        }
    }

    fn finish(&mut self, step: &Step, result: Result<Vec<u8>, RunnerError>) -> Done {
        let output = match result {
            Ok(output) => output,
            Err(error) => {
                tracing::error!(text = step.text, %error, "a text could not be computed");
                self.texts.cut(step.text, step.position);
                return Done::Refused(format!("the text could not be computed: {error}"));
            }
        };
        self.texts.give(step.text, &output);
        if !step.last {
            return Done::Rows(output);
        }
        self.runner.forget(step.text);
        match self.texts.remove(step.text) {
            Some(text) => Done::Ended(output, text),
            None => Done::Rewind(0),
        }
    }
}
