//! A served model that goes on by itself when the workers of a stage are lost: others are hired for the tokens that are
//! left, in another job with the same programs, and texts go on there.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::price::price_of_token;
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, JobId, U256};
use tensorlink_user::User;
use tensorlink_user::serving::{Boundaries, Pipeline, Pipelines, ServingNote};
use tokio_util::sync::CancellationToken;

use super::closed::ended;
use super::formers::Formers;
use super::record::Record;
use crate::amount::Wei;
use crate::commands::failover::is_begun;
use crate::commands::hiring::{Hiring, Work};
use crate::commands::post_serving::tokens;
use crate::config::Config;
use crate::live::say;
use crate::node::Node;
use crate::watch::{Hearing, close, wind_up};
use crate::when;

/// Between two looks at the workers.
const LOOK: Duration = Duration::from_secs(1);
/// Between two looks at the jobs before, seconds.
const SETTLE: u64 = 5;
/// Wait after an attempt to hire others, seconds, until a text has gone through; twice as long after the next.
const RETRY: (u64, u64) = (10, 600);
/// Jobs in a row that are posted and through which no text has gone.
const FRUITLESS: u32 = 6;
/// A job that ends so soon is not gone on with, seconds.
const SOON: u64 = 60;
/// Of an account in the chain's own currency, what transactions may need: one part in so many.
const FOR_GAS: u64 = 50;

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
}

/// What is to be done about a job.
enum Sight {
    /// Nothing.
    Whole,
    /// It has lost these workers.
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
    /// They were gone when the job was closed for its escrow; they may be back.
    GivenUp,
}

impl Why {
    const fn words(self) -> &'static str {
        match self {
            Self::Convicted => "a worker was convicted",
            Self::Gone => "a stage has lost its workers",
            Self::GivenUp => "it was given up",
        }
    }
}

/// Looks after the job that serves, and winds up those before.
struct Succession<'a> {
    config: &'a Config,
    hiring: Hiring<'a>,
    pipelines: &'a Pipelines,
    current: Current,
    /// Seconds of a worker's silence that are borne; none where nobody is replaced.
    borne: Option<u64>,
    hearing: Hearing,
    formers: Formers,
    /// Jobs posted since a text has gone through.
    fruitless: u32,
    shutdown: CancellationToken,
}

/// Replaces workers that are lost until `shutdown`, those silent for more than `borne` among them; with none nobody is,
/// and jobs before are settled all the same.
pub(super) async fn keep(
    config: &Config,
    (node, user): (Node, Arc<User>),
    (current, pipelines): (Current, Arc<Pipelines>),
    borne: Option<Duration>,
    shutdown: CancellationToken,
) -> Result<()> {
    let hire = current.record.hire.clone();
    let succession = Succession {
        config,
        hiring: Hiring::with(node, user, &hire).await?,
        pipelines: &pipelines,
        formers: Formers::new(current.boundaries.clone()),
        current,
        borne: borne.map(|borne| borne.as_secs()),
        hearing: Hearing::new(when::now()),
        fruitless: 0,
        shutdown,
    };
    succession.run().await;
    pipelines.mend(false);
    Ok(())
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
            let now = when::now();
            if now >= settle {
                self.settle().await;
                settle = now.saturating_add(SETTLE);
            }
            let sight = self.look(now);
            if matches!(sight, Sight::Whole) && self.pipelines.newest().has_delivered() {
                (pause, self.fruitless) = (RETRY.0, 0);
            }
            let is_over = matches!(sight, Sight::Over) || self.fruitless >= FRUITLESS;
            self.pipelines.mend(self.borne.is_some() && !is_over);
            let Sight::Lost(why, workers) = sight else { continue };
            if is_over || now < after {
                continue;
            }
            let names: Vec<String> = workers.iter().map(Address::to_string).collect();
            let (job, said) = (self.current.view.id, why.words());
            say!("job {job}: {said}; others are looked for in place of {}", names.join(", "));
            if why != Why::GivenUp {
                self.hiring.user.avoid(workers.iter().copied());
            }
            let went_on = self.go_on(&workers).await;
            if why != Why::Convicted {
                self.hiring.user.forgive(&workers);
            }
            let (now, job) = (when::now(), self.current.view.id);
            self.hearing.awake(now);
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
        let gone = |worker| now.saturating_sub(heard(worker)) > borne;
        let lost = self.pipelines.newest().lost(gone, (since, borne));
        if lost.is_empty() { Sight::Whole } else { Sight::Lost(Why::Gone, lost) }
    }

    /// Others serve in place of the workers that were `lost`: those of the job that was begun for that, or else of a
    /// new one.
    async fn go_on(&mut self, lost: &[Address]) -> Result<()> {
        if let Some(next) = self.current.record.next {
            let runs = |view: &JobView| view.state == JobState::Running;
            if is_begun(&self.hiring.node, next).await?
                && self.hiring.node.ports.chain.job(next).await?.as_ref().is_some_and(runs)
            {
                return self.hand_over(next).await;
            }
            // It was cancelled, or closed before it served: its escrow is still to come.
            self.current.record.before.push(next);
            self.write(|record| record.next = None)?;
        }
        let next = self.hire(lost).await?;
        self.hand_over(next).await
    }

    /// Hires others in another job, for the tokens and the time that are left.
    async fn hire(&mut self, lost: &[Address]) -> Result<JobId> {
        let shutdown = self.shutdown.clone();
        let chain = self.hiring.node.ports.chain.clone();
        let (job, longest) = (self.current.view.id, self.current.view.steps_per_interval);
        let all = self.current.view.intervals;
        let unused = all.saturating_sub(self.pipelines.newest().tokens());
        let share = self.current.record.deposit.saturating_mul(U256::from(unused)) / U256::from(all.max(1));
        let share = self.await_escrow(share, lost).await?;
        // Its deadline is earlier where it was closed.
        let until = self.current.view.started_at.saturating_add(self.current.view.duration);
        let left = until.saturating_sub(chain.head().await?.timestamp);
        ensure!(left > SOON, "its time is over in {left} s");

        let (hiring, record) = (&mut self.hiring, &self.current.record);
        (hiring.duration, hiring.deposit) = (left, share);
        hiring.look_for(self.current.view.stages, self.config, &shutdown).await?;
        hiring.fit_programs(&shutdown, record.stages.iter().map(|stage| stage.memory).collect()).await?;
        let prices = hiring.prices(|stage, per_gmac| {
            record.stages.get(stage).and_then(|stage| price_of_token(stage.work.into(), longest, per_gmac))
        })?;
        let covered = tokens(None, (share, &hiring.parameters), (&prices, longest));
        let units = covered.context("what is left of the escrow is too little")?.min(unused);
        hiring.afford(&prices, units, longest)?;
        let work = Work {
            kind: JobKind::Serving,
            intervals: units,
            steps_per_interval: longest,
            programs: record.stages.iter().map(|stage| stage.programs).collect(),
            initial_states: Vec::new(),
            manifest: self.current.note.manifest.parse()?,
            continues: None,
        };
        let runs = self.hiring.node.ports.chain.job(job).await?.is_some_and(|view| view.state == JobState::Running);
        ensure!(runs || self.is_given_up(), "it was closed meanwhile");
        self.fruitless = self.fruitless.saturating_add(1);
        let next = self.hiring.post(work, &self.current.note).await?;
        // Before it runs: a kill must not leave a job that nobody knows to serve.
        let before = self.current.record.before.iter().copied().chain([job]).collect();
        let record = Record { deposit: share, before, lost: None, next: None, ..self.current.record.clone() };
        record.write(&self.hiring.node.ports.journal, next)?;
        self.write(|record| record.next = Some(next))?;
        self.hiring.start(next, &prices, &shutdown).await?;
        Ok(next)
    }

    /// Texts go to a job that runs. The one before takes none, and is closed once those under way are at their end.
    async fn hand_over(&mut self, next: JobId) -> Result<()> {
        let (job, ports) = (self.current.view.id, self.hiring.node.ports.clone());
        let view = self.hiring.node.ports.chain.job(next).await?.context("the job was undone by a reorganisation")?;
        let record = Record::read(&ports.journal, next)?.context("nothing is written down of the job")?;
        let pipeline = Pipeline::open(ports, &view, self.current.boundaries.clone()).await?;
        self.formers.push(job, self.pipelines.replace(pipeline));
        say!("job {next} serves in place of job {job}, up to {} tokens a lane", view.intervals);
        (self.current.view, self.current.record) = (view, record);
        Ok(())
    }

    /// Whether the job that serves was closed because its workers were lost.
    fn is_given_up(&self) -> bool {
        let events = self.hiring.user.events();
        let is_convicted = ended(&events.borrow(), self.current.view.id).is_some_and(|convicts| !convicts.is_empty());
        self.current.record.lost.is_some() || is_convicted
    }

    /// Changes what is written down of the job that serves.
    fn write(&mut self, change: impl FnOnce(&mut Record)) -> Result<()> {
        change(&mut self.current.record);
        Ok(self.current.record.write(&self.hiring.node.ports.journal, self.current.view.id)?)
    }

    /// What the account can put up, wei.
    async fn purse(&self) -> Result<U256> {
        let (chain, token) = (&self.hiring.node.ports.chain, self.hiring.asked.token);
        let has = chain.balance(self.hiring.node.ports.identity.address(), token).await?;
        Ok(if token.is_zero() { has - has / U256::from(FOR_GAS) } else { has })
    }

    /// Waits until the account has `share`, if need be for the escrow of the job that lost these workers; or for what
    /// there is when all is back.
    async fn await_escrow(&mut self, share: U256, lost: &[Address]) -> Result<U256> {
        let job = self.current.view.id;
        let mut is_closed = false;
        loop {
            let has = self.purse().await?;
            if has >= share {
                return Ok(share);
            }
            if !is_closed {
                let (needed, token) = (Wei(share), self.hiring.token_name());
                say!("others cost up to {needed} {token}; waiting until the escrow of job {job} is back ...");
                // Whoever serves it after an interruption goes on, though it is closed.
                self.write(|record| record.lost = Some(lost.to_vec()))?;
                self.pipelines.newest().pay().await;
                close(&self.hiring.node, job).await?;
                is_closed = true;
            }
            let settled = self.settle().await;
            let view =
                self.hiring.node.ports.chain.job(job).await?.context("the job was undone by a reorganisation")?;
            if wind_up(&self.hiring.node, &self.hiring.user, &view).await? && settled {
                let has = self.purse().await?.min(share);
                ensure!(!has.is_zero(), "the account has nothing to hire others with");
                return Ok(has);
            }
            tokio::select! {
                () = self.shutdown.cancelled() => bail!("interrupted"),
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Moves the jobs before towards their settlement; whether all are settled.
    async fn settle(&mut self) -> bool {
        let (node, user) = (&self.hiring.node, self.hiring.user.as_ref());
        self.formers.settle((node, user), &self.current.record.before).await
    }
}
