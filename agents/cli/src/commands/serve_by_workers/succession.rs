//! A served model that goes on by itself when the workers of a stage are lost, or have become slow, or when others
//! would be much faster: those are hired for the tokens that are left, in another job with the same programs, and texts
//! go on there.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_types::{Address, JobId};
use tensorlink_user::User;
use tensorlink_user::placing::Work;
use tensorlink_user::serving::{Agreement, Boundaries, Pipelines, ServingNote};
use tokio_util::sync::CancellationToken;

use super::closed::ended;
use super::faster::{Looks, is_better};
use super::formers::Formers;
use super::record::{Record, runs};
use crate::commands::hiring::Hiring;
use crate::config::Config;
use crate::live::say;
use crate::node::Node;
use crate::watch::{Hearing, wind_up};
use crate::when;

/// Between two looks at the workers.
const LOOK: Duration = Duration::from_secs(1);
/// Between two looks at the jobs before, seconds.
const SETTLE: u64 = 5;
/// Between two looks at how fast the workers are.
const REMEMBER: Duration = Duration::from_secs(60);
/// Wait after an attempt to hire others, seconds, until a text has gone through; twice as long after the next.
const RETRY: (u64, u64) = (10, 600);
/// Least seconds for which a worker is slow that is replaced for that; and for which one is gone in whose place others
/// of its stage answer.
const SLOW: u64 = 30;
const SPARE: u64 = 600;
/// Least seconds between two looks for others where texts are answered meanwhile: others cost gas, and may be slower.
const UNHURRIED: u64 = 3_600;
/// The longest look for faster workers: nobody looks after those that serve meanwhile.
const LOOKING: Duration = Duration::from_secs(12);
/// Jobs in a row that are posted and through which no text has gone.
const FRUITLESS: u32 = 6;

/// The job that serves now.
pub(super) struct Current {
    /// The job.
    pub(super) view: JobView,
    /// What was written down of it.
    pub(super) record: Record,
    /// What its user wrote down of its files.
    pub(super) note: ServingNote,
    /// What crosses between its stages.
    pub(super) boundaries: Boundaries,
    /// How many lanes of each must agree.
    pub(super) agreement: Agreement,
    /// What its stages ask of workers, where those are not chosen by price.
    pub(super) asked: Option<Work>,
}

/// What is to be done about a job.
enum Sight {
    /// Nothing.
    Whole,
    /// It is to go on without these workers.
    Lost(Why, Vec<Address>),
    /// It has ended, and no other takes its place.
    Over,
}

/// Why workers are lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// They were convicted.
    Convicted,
    /// They say nothing, or fail.
    Gone,
    /// Some of them compute wrongly, as texts have shown.
    Wrong,
    /// They take much longer than they did. They serve meanwhile.
    Slow,
    /// They say nothing, or fail; others of their stages serve meanwhile.
    Spare,
    /// Others would be much faster. They serve meanwhile.
    Outrun,
    /// They were gone when the job was closed for its escrow; they may be back.
    GivenUp,
}

impl Why {
    const fn words(self) -> &'static str {
        match self {
            Self::Convicted => "a worker was convicted",
            Self::Gone => "a stage has lost its workers",
            Self::Wrong => "a worker computes wrongly",
            Self::Slow => "a worker has become slow",
            Self::Spare => "a stage has lost one of its workers, and goes on with the others",
            Self::Outrun => "others would be much faster",
            Self::GivenUp => "it was given up",
        }
    }

    /// Whether texts are answered meanwhile.
    const fn serves(self) -> bool {
        matches!(self, Self::Slow | Self::Spare | Self::Outrun)
    }
}

/// Looks after the job that serves, and winds up those before.
pub(super) struct Succession<'a> {
    pub(super) config: &'a Config,
    pub(super) hiring: Hiring<'a>,
    pub(super) pipelines: &'a Pipelines,
    pub(super) current: Current,
    /// Seconds of a worker's silence that are borne; none where nobody is replaced.
    borne: Option<u64>,
    hearing: Hearing,
    pub(super) formers: Formers,
    /// Jobs posted since a text has gone through; and the last text before that, and its job.
    pub(super) fruitless: u32,
    pub(super) last: (JobId, Option<u32>),
    /// From when on workers are replaced again though texts are answered.
    unhurried_from: u64,
    looks: Looks,
    pub(super) shutdown: CancellationToken,
}

/// Replaces workers that are lost until `shutdown`, those silent for longer than is borne among them; where nothing is,
/// nobody is replaced, and jobs before are settled all the same.
pub(super) async fn keep(
    config: &Config,
    (node, user): (Node, Arc<User>),
    (current, pipelines): (Current, &Pipelines),
    (borne, rebalance): (Option<Duration>, Option<Duration>),
    shutdown: CancellationToken,
) -> Result<()> {
    let hire = current.record.hire.clone();
    user.avoid(current.record.liars.iter().copied());
    let succession = Succession {
        config,
        hiring: Hiring::with(node, Arc::clone(&user), &hire).await?,
        pipelines,
        formers: Formers::new(current.boundaries.clone()),
        current,
        borne: borne.map(|borne| borne.as_secs()),
        hearing: Hearing::new(when::now()),
        fruitless: 0,
        last: (JobId(0), None),
        unhurried_from: 0,
        looks: Looks::every(rebalance),
        shutdown: shutdown.clone(),
    };
    tokio::join!(succession.run(), remember(&user, pipelines, &shutdown));
    Ok(())
}

/// Writes down how fast the workers are, for whom to hire next, and tells others, until `shutdown`.
async fn remember(user: &Arc<User>, pipelines: &Pipelines, shutdown: &CancellationToken) {
    let mut look = tokio::time::interval(REMEMBER);
    while shutdown.run_until_cancelled(look.tick()).await.is_some() {
        let newest = pipelines.newest();
        if let Some(Err(error)) = shutdown.run_until_cancelled(user.remember_speeds(&newest)).await {
            tracing::warn!("how fast the workers are is not remembered: {error}");
        }
        shutdown.run_until_cancelled(user.publish_speeds()).await;
    }
}

impl Succession<'_> {
    async fn run(mut self) {
        let shutdown = self.shutdown.clone();
        let (mut pause, mut after, mut settle) = (RETRY.0, 0, 0);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = tokio::time::sleep(LOOK) => {}
            }
            if when::now() >= settle {
                if let Err(error) = self.settle().await {
                    tracing::warn!("job {} waits for its settlement: {error:#}", self.current.view.id);
                }
                if let Err(error) = self.resolve().await {
                    tracing::warn!("what was posted to go on with job {} waits: {error:#}", self.current.view.id);
                }
                settle = when::now().saturating_add(SETTLE);
            }
            if shutdown.is_cancelled() {
                break;
            }
            let now = when::now();
            let mut sight = self.look(now);
            if matches!(sight, Sight::Whole) {
                sight = self.outrun(now).await.map_or(Sight::Whole, |outrun| Sight::Lost(Why::Outrun, outrun));
            }
            let last = self.last_text();
            if matches!(sight, Sight::Whole) && last.1.is_some() && last != self.last {
                (pause, self.fruitless) = (RETRY.0, 0);
            }
            let is_over = matches!(sight, Sight::Over) || self.fruitless >= FRUITLESS;
            self.pipelines.mend(self.borne.is_some() && !is_over);
            let Sight::Lost(why, workers) = sight else { continue };
            if is_over || now < after || !self.is_so(why, &workers).await {
                continue;
            }
            let names: Vec<String> = workers.iter().map(Address::to_string).collect();
            let (job, said) = (self.current.view.id, why.words());
            say!("job {job}: {said}; others are looked for in place of {}", names.join(", "));
            if why != Why::GivenUp {
                self.hiring.user.avoid(workers.iter().copied());
            }
            let liars = self.pipelines.newest().liars();
            if liars.iter().any(|liar| !self.current.record.liars.contains(liar)) {
                let _ = self.write(|record| record.liars.extend(&liars));
            }
            let went_on = self.go_on(why, &workers).await;
            if why != Why::Convicted {
                let honest = workers.iter().copied().filter(|worker| !self.current.record.liars.contains(worker));
                self.hiring.user.forgive(&honest.collect::<Vec<_>>());
            }
            let (now, job) = (when::now(), self.current.view.id);
            self.hearing.awake(now);
            if why.serves() {
                let pause = if why == Why::Outrun { self.looks.pause(went_on.is_ok(), now) } else { UNHURRIED };
                if why != Why::Outrun {
                    self.unhurried_from = now.saturating_add(UNHURRIED);
                }
                match went_on {
                    Err(_) if shutdown.is_cancelled() => break,
                    Err(error) => {
                        say!("job {job} goes on with the workers that it has: {error:#}; again in {pause} s");
                    }
                    Ok(()) => {}
                }
                continue;
            }
            after = now.saturating_add(pause);
            match went_on {
                Ok(()) => {}
                Err(_) if shutdown.is_cancelled() => break,
                Err(error) if self.fruitless >= FRUITLESS => {
                    say!("nobody serves in place of the workers of job {job}, and no other job is posted: {error:#}");
                }
                Err(error) => {
                    say!("nobody serves in place of the workers of job {job} yet: {error:#}; again in {pause} s");
                }
            }
            pause = pause.saturating_mul(2).min(RETRY.1);
        }
        self.formers.close().await;
    }

    /// Whether the job has what it needs.
    fn look(&mut self, now: u64) -> Sight {
        let Some(borne) = self.borne else { return Sight::Whole };
        let user = &self.hiring.user;
        let is_heard = self.hearing.look((user.last_heard(), borne), now);
        if let Some(workers) = &self.current.record.lost {
            return Sight::Lost(Why::GivenUp, workers.clone());
        }
        let events = user.events();
        match ended(&events.borrow(), self.current.view.id) {
            Some(convicts) if convicts.is_empty() => return Sight::Over,
            Some(convicts) => return Sight::Lost(Why::Convicted, convicts),
            None => {}
        }
        if !is_heard {
            return Sight::Whole;
        }
        let since = self.hearing.since();
        let heard = |worker| user.last_message(worker).unwrap_or_default().max(since);
        let gone = |borne: u64| move |worker| now.saturating_sub(heard(worker)) > borne;
        let newest = self.pipelines.newest();
        let (lost, liars) = (newest.lost(gone(borne), (since, borne)), newest.liars());
        let why = if lost.iter().any(|worker| liars.contains(worker)) { Why::Wrong } else { Why::Gone };
        if !lost.is_empty() {
            return Sight::Lost(why, lost);
        }
        if now < self.unhurried_from {
            return Sight::Whole;
        }
        let slow = newest.slow(borne.max(SLOW));
        if !slow.is_empty() {
            return Sight::Lost(Why::Slow, slow);
        }
        let borne = borne.max(SPARE);
        let spare = newest.spare(gone(borne), (since, borne));
        if spare.is_empty() { Sight::Whole } else { Sight::Lost(Why::Spare, spare) }
    }

    /// The workers in whose place others would be much faster, and have been for a while.
    async fn outrun(&mut self, now: u64) -> Option<Vec<Address>> {
        let asked = self.current.asked.as_ref().filter(|_| self.borne.is_some())?;
        // Where nothing is asked, nobody is too slow.
        if self.last_text().1.is_none() || !self.looks.is_due(now) {
            return None;
        }
        let serving = self.pipelines.newest().workers();
        let looking = tokio::time::timeout(LOOKING, self.hiring.faster(asked, &serving));
        let found = match self.shutdown.run_until_cancelled(looking).await {
            Some(Ok(Ok(found))) => found,
            Some(Ok(Err(error))) => {
                tracing::debug!("faster workers are not looked for: {error:#}");
                None
            }
            Some(Err(_)) | None => None,
        };
        self.hearing.awake(when::now());
        let is_enough = self.looks.found(found.as_ref());
        let found = found.filter(is_better)?;
        tracing::info!(job = %self.current.view.id, "others would be {:.1} times as fast", found.times);
        is_enough.then_some(found.without)
    }

    /// Others serve in place of the workers that were `lost`: those of the job that was begun for that, or else of a
    /// new one.
    async fn go_on(&mut self, why: Why, lost: &[Address]) -> Result<()> {
        if self.resolve().await? {
            return Ok(());
        }
        // Where texts are answered, nothing is a reason to answer none until an escrow is back.
        let next = self.hire(Some(lost).filter(|_| !why.serves()), why == Why::Outrun).await?;
        self.hand_over(next).await
    }

    /// Whether workers are lost after all: those that are silent are asked, and a job that was to be closed for its
    /// escrow may not have been.
    async fn is_so(&mut self, why: Why, workers: &[Address]) -> bool {
        match why {
            Why::Convicted | Why::Slow | Why::Outrun => true,
            Why::Gone | Why::Wrong | Why::Spare => {
                self.pipelines.newest().ask(workers).await;
                matches!(self.look(when::now()), Sight::Lost(..))
            }
            Why::GivenUp => match runs(&self.hiring.node, self.current.view.id).await {
                Ok(true) => {
                    let _ = self.write(|record| record.lost = None);
                    false
                }
                Ok(false) => true,
                Err(_) => false,
            },
        }
    }

    /// Moves the jobs before towards their settlement, and the one that serves, too, once it was closed; whether all
    /// are settled.
    pub(super) async fn settle(&mut self) -> Result<bool> {
        let (node, user) = (&self.hiring.node, self.hiring.user.as_ref());
        let before = self.formers.settle((node, user), &self.current.record.before).await;
        let view = node.ports.chain.job(self.current.view.id).await?;
        let view = view.context("the job was undone by a reorganisation")?;
        let is_closed = matches!(view.state, JobState::Closing | JobState::Settled);
        Ok(is_closed && wind_up(node, user, &view).await? && before)
    }
}
