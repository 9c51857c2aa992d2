//! The user's side: intervals to workers in turn, a drawn share of them repeated by another, and what follows from what
//! that shows.
//!
//! Whether an interval is repeated is drawn after its result is there, by the user's own randomness. If the two results
//! are further apart than their classes of devices may be, the user's own machine repeats the interval as well, who is
//! too far from that is left out, and the training goes on from the last state that two machines agreed on. Intervals
//! before that which nobody repeated stay as they are.
//!
//! | module | what lives there |
//! |---|---|
//! | `mod` | [`Driver`]: the loop |
//! | `journal` | [`Entry`]: what has happened; where that leads |
//! | `report` | [`Report`]: what it came to |

mod journal;
mod report;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cid::Cid;
use tensorlink_node::blocking;
use tensorlink_node::journal::{Journal, JournalError, Lines};
use tensorlink_node::ports::{Store, StoreError};
use tensorlink_node::wire::Malformed;
use tensorlink_types::Address;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use self::journal::Progress;
pub use self::journal::{Check, Entry};
pub use self::report::Report;
use crate::class::{DeviceClass, Precision};
use crate::floats::{Floats, FloatsError};
use crate::task::{MAX_STATE, State, Task, TaskError, state_bytes};
use crate::tolerance::{Tolerances, distance};
use crate::wire::{Done, Interval, MAX_STEPS};
use crate::worker::{Worker, WorkerError};

/// Failures in a row after which a worker is not asked again.
const STRIKES: u32 = 3;
/// Name of the journal's file of lines.
const JOURNAL: &str = "native";

/// What is to be trained, and how it is watched.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Order {
    /// Steps in all.
    pub steps: u32,
    /// Steps of an interval, 1 to [`MAX_STEPS`]; the last one may have fewer.
    pub per_interval: u32,
    /// In which precision.
    pub precision: Precision,
    /// Share of the intervals that are repeated, 0 to 1.
    pub checks: f64,
    /// How far results may be apart.
    pub tolerances: Tolerances,
    /// Longest wait for an interval of a worker, with its state.
    pub patience: Duration,
}

/// Why a training does not go on. What was done is in the journal: begin again, and it goes on from there.
#[derive(Debug, Error)]
pub enum DriveError {
    /// No worker is left that answers.
    #[error(
        "no worker is left that answers: {0} are left out, the others failed a moment ago; begin again with workers that run, it goes on from where it is"
    )]
    Nobody(usize),
    /// A pair of classes without a tolerance.
    #[error("{precision} results of `{0}` and `{1}` were never compared: run `tensorlink bench native` on both, and give a tolerance", .classes.0, .classes.1)]
    Unmeasured {
        /// The classes.
        classes: (DeviceClass, DeviceClass),
        /// The precision.
        precision: Precision,
    },
    /// Steps or share out of range.
    #[error("{0}")]
    Order(&'static str),
    /// Another training's journal.
    #[error("the journal is of another training: use another data directory, or remove it")]
    Journal,
    /// The disk.
    #[error(transparent)]
    Disk(#[from] JournalError),
    /// Files.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A state of ours that is none.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A message that has no encoding.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// This machine's device.
    #[error("this machine cannot repeat an interval: {0}")]
    Floats(#[from] FloatsError),
    /// Told to stop.
    #[error("interrupted; begin again, and it goes on from where it is")]
    Interrupted,
}

/// What the user's side works with.
pub struct Driver {
    order: Order,
    task: (Cid, Arc<Task>),
    workers: Vec<Arc<dyn Worker>>,
    /// Whose turn it is, first.
    turns: VecDeque<usize>,
    /// Failures in a row.
    strikes: BTreeMap<Address, u32>,
    store: Arc<dyn Store>,
    own: Arc<dyn Floats>,
    lines: Lines<Entry>,
    progress: Progress,
    /// Uniform in [0, 1), from a source that no worker can foresee.
    draw: Box<dyn FnMut() -> f64 + Send>,
    /// Told of each entry as it is written.
    watch: Box<dyn FnMut(&Entry) + Send>,
}

/// A result of an interval.
struct Computed {
    /// Whose; none for our own.
    worker: Option<Address>,
    class: DeviceClass,
    cid: Cid,
    state: Arc<State>,
    losses: Vec<f64>,
}

/// Who and what a driver works with.
pub struct Around {
    /// The user's files.
    pub store: Arc<dyn Store>,
    /// The user's own machine.
    pub own: Arc<dyn Floats>,
    /// Those that are asked.
    pub workers: Vec<Arc<dyn Worker>>,
    /// Uniform in [0, 1), from a source that no worker can foresee.
    pub draw: Box<dyn FnMut() -> f64 + Send>,
    /// Told of each entry as it is written.
    pub watch: Box<dyn FnMut(&Entry) + Send>,
}

impl Driver {
    /// Publishes the task, and goes on from where its journal in this folder ends, if it has begun.
    ///
    /// # Errors
    /// [`DriveError`].
    pub async fn begin(
        order: Order,
        (task, start): (Task, &State),
        Around { store, own, workers, draw, watch }: Around,
        journal: &Journal,
    ) -> Result<Self, DriveError> {
        if !(1..=MAX_STEPS).contains(&order.per_interval) {
            return Err(DriveError::Order("an interval has 1 to 16 steps: tolerances hold no further"));
        }
        if !(0.0..=1.0).contains(&order.checks) {
            return Err(DriveError::Order("the share of checks is a number from 0 to 1"));
        }
        task.check(start)?;
        let start = store.put(state_bytes(start)?).await?;
        let cid = store.put(task.to_bytes()?).await?;
        let (lines, entries) = journal.open_lines::<Entry>(JOURNAL)?;
        let begun = Entry::Begun { state: start.to_string(), precision: order.precision };
        let is_new = entries.is_empty();
        let mut progress = Progress::new(start);
        if entries.first().is_some_and(|first| *first != begun) {
            return Err(DriveError::Journal);
        }
        entries.iter().try_for_each(|entry| progress.apply(entry)).ok_or(DriveError::Journal)?;
        let turns = (0..workers.len()).collect();
        let (task, strikes) = ((cid, Arc::new(task)), BTreeMap::new());
        let mut driver = Self { order, task, workers, turns, strikes, store, own, lines, progress, draw, watch };
        if is_new {
            driver.write(begun)?;
        }
        Ok(driver)
    }

    /// Trains until all steps are taken.
    ///
    /// # Errors
    /// [`DriveError`]; begun again, it goes on from the last entry of its journal.
    pub async fn run(&mut self, shutdown: &CancellationToken) -> Result<(State, Report), DriveError> {
        while self.progress.now.0 < self.order.steps {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Err(DriveError::Interrupted),
                done = self.interval() => done?,
            }
        }
        let state = self.state(self.progress.now.1).await?;
        Ok((state, Report::new(&self.order, &self.progress)))
    }

    /// The next interval.
    async fn interval(&mut self) -> Result<(), DriveError> {
        let (first, state) = self.progress.now;
        let steps = self.order.per_interval.min(self.order.steps.saturating_sub(first));
        let interval = Interval { task: self.task.0, state, first, steps, precision: self.order.precision };
        let Some(result) = self.by_a_worker(&interval, None).await? else {
            return Err(DriveError::Nobody(self.progress.out.len()));
        };
        // Nobody knows before that it will be looked at.
        let check =
            if (self.draw)() < self.order.checks { self.check(&interval, &result).await? } else { Checked::Not };
        let (result, check) = match check {
            Checked::Not => (result, None),
            Checked::Agreed(check) => (result, Some(check)),
            Checked::Undecided(own) => (own, None),
            Checked::Off => {
                self.write(Entry::Back { to: self.progress.agreed.0 })?;
                return self.drop_states().await;
            }
        };
        let Computed { worker, class, cid, losses, .. } = result;
        self.write(Entry::Taken { first, worker, class, state: cid.to_string(), losses, check })?;
        self.drop_states().await
    }

    /// Has another repeat an interval, and compares.
    async fn check(&mut self, interval: &Interval, result: &Computed) -> Result<Checked, DriveError> {
        let before = Arc::new(self.state(interval.state).await?);
        let other = match self.by_a_worker(interval, result.worker).await? {
            Some(other) => other,
            None => self.by_ourselves(interval, &before).await?,
        };
        let check = self.compare(&before, result, &other)?;
        if check.distance <= check.allowed {
            return Ok(Checked::Agreed(check));
        }
        let first = interval.first;
        if let Some(worker) = result.worker {
            self.write(Entry::Differ { first, worker, check })?;
        }
        let is_ours = other.worker.is_none();
        let own = if is_ours { None } else { Some(self.by_ourselves(interval, &before).await?) };
        let (own, suspects) = match own {
            None => (other, vec![result]),
            Some(own) => {
                self.progress.states.insert(other.cid);
                (own, vec![result, &other])
            }
        };
        let mut off = false;
        for suspect in suspects {
            let check = self.compare(&before, suspect, &own)?;
            if let (Some(worker), true) = (suspect.worker, check.distance > check.allowed) {
                self.write(Entry::Off { worker, first, class: suspect.class, check })?;
                off = true;
            }
        }
        // Neither may be too far from the middle though both are from each other: then it is ours that counts.
        Ok(if off { Checked::Off } else { Checked::Undecided(own) })
    }

    fn compare(&self, before: &State, result: &Computed, other: &Computed) -> Result<Check, DriveError> {
        let (classes, precision) = ((result.class, other.class), self.order.precision);
        let allowed = self.order.tolerances.allowed(classes.0, classes.1, precision);
        let allowed = allowed.ok_or(DriveError::Unmeasured { classes, precision })?;
        let distance = distance(before, &result.state, &other.state);
        Ok(Check { by: other.worker, class: other.class, distance, allowed })
    }

    /// The first result that one of the workers gives; none if they all fail.
    async fn by_a_worker(
        &mut self,
        interval: &Interval,
        except: Option<Address>,
    ) -> Result<Option<Computed>, DriveError> {
        for _ in 0..self.turns.len() {
            let Some(turn) = self.turns.pop_front() else { break };
            self.turns.push_back(turn);
            let Some(worker) = self.workers.get(turn).cloned() else { continue };
            let address = worker.address();
            if self.progress.out.contains(&address) || except == Some(address) {
                continue;
            }
            let patience = self.order.patience;
            let result = tokio::time::timeout(patience, self.asked(worker.as_ref(), interval)).await;
            match result.unwrap_or(Err(WorkerError::Late(patience))) {
                Ok(computed) => {
                    self.strikes.remove(&address);
                    self.progress.states.insert(computed.cid);
                    return Ok(Some(computed));
                }
                Err(error) => self.strike(address, interval.first, error.to_string())?,
            }
        }
        Ok(None)
    }

    async fn asked(&self, worker: &dyn Worker, interval: &Interval) -> Result<Computed, WorkerError> {
        let Done { state: cid, losses, class } = worker.run(interval).await?;
        let (expected, actual) = (interval.steps, losses.len());
        if actual != expected as usize || !losses.iter().all(|loss| loss.is_finite()) {
            return Err(WorkerError::Losses { expected, actual });
        }
        let bytes = self.store.get(&cid, &[worker.address()], MAX_STATE).await?;
        let state = Arc::new(self.read(bytes).await?);
        Ok(Computed { worker: Some(worker.address()), class, cid, state, losses })
    }

    fn strike(&mut self, worker: Address, first: u32, why: String) -> Result<(), DriveError> {
        self.write(Entry::PassedOver { worker, first, why })?;
        let strikes = self.strikes.entry(worker).or_default();
        *strikes = strikes.saturating_add(1);
        if *strikes >= STRIKES { self.write(Entry::GivenUp { worker }) } else { Ok(()) }
    }

    /// The interval on this machine.
    async fn by_ourselves(&mut self, interval: &Interval, before: &Arc<State>) -> Result<Computed, DriveError> {
        let (own, task, before) = (self.own.clone(), self.task.1.clone(), before.clone());
        let (steps, precision) = (interval.first..interval.first.saturating_add(interval.steps), interval.precision);
        let (state, losses) = blocking(move || own.run(&task, &before, steps, precision)).await?;
        self.task.1.check(&state)?;
        let cid = self.store.put(state_bytes(&state)?).await?;
        self.progress.states.insert(cid);
        Ok(Computed { worker: None, class: self.own.class(), cid, state: Arc::new(state), losses })
    }

    async fn state(&self, cid: Cid) -> Result<State, DriveError> {
        Ok(self.read(self.store.get(&cid, &[], MAX_STATE).await?).await?)
    }

    async fn read(&self, bytes: Bytes) -> Result<State, TaskError> {
        let task = self.task.1.clone();
        blocking(move || task.state(&bytes)).await
    }

    fn write(&mut self, entry: Entry) -> Result<(), DriveError> {
        self.lines.append(&entry)?;
        self.progress.apply(&entry).ok_or(DriveError::Journal)?;
        (self.watch)(&entry);
        Ok(())
    }

    /// Lets go of states that nobody needs any more.
    async fn drop_states(&mut self) -> Result<(), DriveError> {
        let Progress { now, agreed, states, .. } = &mut self.progress;
        let needed = [now.1, agreed.1];
        for state in states.iter().filter(|state| !needed.contains(state)) {
            self.store.unpin(state).await?;
        }
        states.retain(|state| needed.contains(state));
        Ok(())
    }
}

/// What a check came to.
enum Checked {
    /// It was not drawn.
    Not,
    /// The two are as near as they should be.
    Agreed(Check),
    /// They are not, and both are near enough to what this machine has.
    Undecided(Computed),
    /// Somebody is left out.
    Off,
}
