//! A served model that goes on by itself when the workers of a stage are lost: others are hired for the tokens that are
//! left, in another job with the same programs, and texts go on there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_node::price::price_of_token;
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, JobId, U256};
use tensorlink_user::User;
use tensorlink_user::serving::{Boundaries, Pipeline, Pipelines, ServingNote};
use tokio_util::sync::CancellationToken;

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
/// Longest time for texts under way in a job to come to their end after another took its place, seconds.
const DRAIN: u64 = 60;
/// Until the chain's events tell why a job was closed.
const EVENTS: Duration = Duration::from_secs(30);
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
    Lost(&'static str, Vec<Address>),
    /// It has ended, and no other takes its place.
    Over,
}

/// A job before, whose workers are paid what they are owed until it is settled.
struct Former {
    pipeline: Arc<Pipeline>,
    since: u64,
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
    /// Jobs before that are paid.
    formers: BTreeMap<JobId, Former>,
    /// Jobs before whose escrow is back.
    settled: BTreeSet<JobId>,
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
        current,
        borne: borne.map(|borne| borne.as_secs()),
        hearing: Hearing::new(when::now()),
        formers: BTreeMap::new(),
        settled: BTreeSet::new(),
        fruitless: 0,
        shutdown,
    };
    succession.run().await;
    pipelines.mend(false);
    Ok(())
}

/// Whether a job that runs no more was closed because workers were lost, so that another takes its place.
pub(super) async fn is_lost(user: &User, (job, record): (JobId, &Record)) -> bool {
    let mut events = user.events();
    let told = events.wait_for(|events| ended(events, job).is_some());
    let convicts = match tokio::time::timeout(EVENTS, told).await {
        Ok(Ok(events)) => ended(&events, job).unwrap_or_default(),
        _ => Vec::new(),
    };
    record.lost.is_some() || !convicts.is_empty()
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
            if self.pipelines.newest().tokens() > 0 {
                (pause, self.fruitless) = (RETRY.0, 0);
            }
            let sight = self.look(now);
            let is_over = matches!(sight, Sight::Over) || self.fruitless >= FRUITLESS;
            self.pipelines.mend(self.borne.is_some() && !is_over);
            let Sight::Lost(why, workers) = sight else { continue };
            if is_over || now < after {
                continue;
            }
            let names: Vec<String> = workers.iter().map(Address::to_string).collect();
            say!("job {}: {why}; others are looked for in place of {}", self.current.view.id, names.join(", "));
            self.hiring.user.avoid(workers.iter().copied());
            let went_on = self.go_on(workers).await;
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
        futures::future::join_all(self.formers.values().map(|former| former.pipeline.close())).await;
    }

    /// Whether the job has what it needs.
    fn look(&mut self, now: u64) -> Sight {
        let Some(borne) = self.borne else { return Sight::Whole };
        let user = &self.hiring.user;
        let is_heard = self.hearing.look((user.last_heard(), borne), now);
        if let Some(workers) = &self.current.record.lost {
            return Sight::Lost("it has lost its workers", workers.clone());
        }
        let events = user.events();
        match ended(&events.borrow(), self.current.view.id) {
            Some(convicts) if convicts.is_empty() => return Sight::Over,
            Some(convicts) => return Sight::Lost("a worker was convicted", convicts),
            None => {}
        }
        if !is_heard {
            return Sight::Whole;
        }
        let since = self.hearing.since();
        let heard = |worker| user.last_message(worker).unwrap_or_default().max(since);
        let gone = |worker| now.saturating_sub(heard(worker)) > borne;
        let lost = self.pipelines.newest().lost(gone, (since, borne));
        if lost.is_empty() { Sight::Whole } else { Sight::Lost("a stage has lost its workers", lost) }
    }

    /// Others serve in place of the workers that were `lost`: those of the job that was begun for that, or else of a new
    /// one.
    async fn go_on(&mut self, lost: Vec<Address>) -> Result<()> {
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
    async fn hire(&mut self, lost: Vec<Address>) -> Result<JobId> {
        let shutdown = self.shutdown.clone();
        let chain = self.hiring.node.ports.chain.clone();
        let (job, longest) = (self.current.view.id, self.current.view.steps_per_interval);
        let all = self.current.view.intervals;
        let unused = all.saturating_sub(self.pipelines.newest().tokens());
        let share = self.current.record.deposit.saturating_mul(U256::from(unused)) / U256::from(all.max(1));
        let share = self.await_escrow(share, lost).await?;
        let left = self.current.view.deadline.saturating_sub(chain.head().await?.timestamp);
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
        let former = Former { pipeline: self.pipelines.replace(pipeline), since: when::now() };
        self.formers.insert(job, former);
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
    async fn await_escrow(&mut self, share: U256, lost: Vec<Address>) -> Result<U256> {
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
                self.write(|record| record.lost = Some(lost.clone()))?;
                self.pipelines.newest().pay().await;
                close(&self.hiring.node, job).await?;
                is_closed = true;
            }
            self.settle().await;
            let view =
                self.hiring.node.ports.chain.job(job).await?.context("the job was undone by a reorganisation")?;
            let is_settled = wind_up(&self.hiring.node, &self.hiring.user, &view).await?;
            if is_settled && self.current.record.before.iter().all(|job| self.settled.contains(job)) {
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

    /// Moves the jobs before towards their settlement. What fails now is done at another look.
    async fn settle(&mut self) {
        let open = self.current.record.before.iter().filter(|job| !self.settled.contains(job));
        for job in open.copied().collect::<Vec<_>>() {
            match self.settle_one(job).await {
                Ok(true) => _ = self.settled.insert(job),
                Ok(false) => {}
                Err(error) => tracing::warn!(%job, "the job waits for its settlement: {error:#}"),
            }
        }
    }

    async fn settle_one(&mut self, job: JobId) -> Result<bool> {
        let (node, now) = (&self.hiring.node, when::now());
        let Some(view) = node.ports.chain.job(job).await? else { return Ok(true) };
        match view.state {
            JobState::Posted | JobState::Accepted => _ = is_begun(node, job).await?,
            JobState::Running | JobState::Closing if !self.formers.contains_key(&job) => {
                // Whoever served it was interrupted, perhaps before its workers had their last vouchers.
                let (ports, boundaries) = (node.ports.clone(), self.current.boundaries.clone());
                let pipeline = Arc::new(Pipeline::open_to_pay(ports, &view, boundaries).await?);
                self.formers.insert(job, Former { pipeline, since: now });
            }
            JobState::Running | JobState::Closing | JobState::Settled => {}
        }
        if view.state == JobState::Running
            && let Some(Former { pipeline, since }) = self.formers.get(&job)
            && (pipeline.is_idle() || now.saturating_sub(*since) > DRAIN)
        {
            pipeline.pay().await;
            close(node, job).await?;
        }
        let is_settled = wind_up(node, &self.hiring.user, &view).await?;
        if is_settled && let Some(former) = self.formers.remove(&job) {
            former.pipeline.close().await;
        }
        Ok(is_settled)
    }
}

/// Of a job that was closed, whose workers were convicted in it.
fn ended(events: &[EventAt], of: JobId) -> Option<Vec<Address>> {
    let closed = |at: &EventAt| match &at.event {
        Event::JobClosing { job, convicted } if *job == of => Some(*convicted),
        _ => None,
    };
    let convict = |at: &EventAt| match &at.event {
        Event::Convicted { lane, worker, .. } if lane.job == of => Some(*worker),
        _ => None,
    };
    let convicted = events.iter().rev().find_map(closed)?;
    let convicts = events.iter().filter_map(convict).collect::<BTreeSet<_>>().into_iter().collect();
    Some(if convicted { convicts } else { Vec::new() })
}

#[cfg(test)]
mod tests {
    use tensorlink_node::ports::chain::Fault;
    use tensorlink_types::{B256, ClaimId, Lane};

    use super::*;

    fn at(event: Event) -> EventAt {
        EventAt { block: 1, block_hash: B256::ZERO, timestamp: 1, log_index: 0, transaction: B256::ZERO, event }
    }

    #[test]
    fn only_a_job_that_a_conviction_closed_is_gone_on_with() {
        let closing = |job, convicted| at(Event::JobClosing { job: JobId(job), convicted });
        assert_eq!(ended(&[closing(2, true)], JobId(1)), None);
        assert_eq!(ended(&[closing(1, false)], JobId(1)), Some(Vec::new()), "its user closed it, or its time was up");
        let worker = Address::repeat_byte(7);
        let convicted = |job| {
            let (lane, none) = (Lane { job: JobId(job), stage: 0, replica: 0 }, String::new());
            at(Event::Convicted {
                lane,
                claim: ClaimId(B256::ZERO),
                worker,
                auditor: Address::ZERO,
                fault: Fault::Silence,
                step: 0,
                operator: 0,
                element: 0,
                claimed: none.clone(),
                recomputed: none,
            })
        };
        assert_eq!(ended(&[convicted(1), convicted(2), closing(1, true)], JobId(1)), Some(vec![worker]));
    }
}
