//! The job that goes on in the place of one: posted and started, or found where whoever posted it was interrupted.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use cid::Cid;
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_node::price::price_of_token;
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, JobId, U256};
use tensorlink_user::serving::Pipeline;

use super::closed::ended;
use super::faster::is_better;
use super::record::{Record, runs};
use super::succession::{Current, Succession};
use crate::amount::Wei;
use crate::commands::failover::is_begun;
use crate::commands::hiring::Work;
use crate::commands::post_serving::tokens;
use crate::live::say;
use crate::watch::close;
use crate::when;

/// Between two looks for an escrow.
const LOOK: Duration = Duration::from_secs(1);
/// Until a job that was posted can be accepted no more, and its post is confirmed, seconds.
const POSTED: u64 = 1_800;
/// A job that ends so soon is not gone on with, seconds.
const SOON: u64 = 60;
/// Of an account in the chain's own currency, what transactions may need: one part in so many.
const FOR_GAS: u64 = 50;

impl Succession<'_> {
    /// Hands over to a job that was begun to go on, or gives it up; whether there was one that runs.
    pub(super) async fn resolve(&mut self) -> Result<bool> {
        self.find_posted().await?;
        let Some(next) = self.current.record.next else { return Ok(false) };
        if is_begun(&self.hiring.node, next).await? && runs(&self.hiring.node, next).await? {
            self.hand_over(next).await?;
            return Ok(true);
        }
        self.give_up(next)?;
        Ok(false)
    }

    /// A job that was cancelled, or closed before it served: its escrow is still to come.
    fn give_up(&mut self, next: JobId) -> Result<()> {
        self.write(|record| {
            record.before.push(next);
            record.next = None;
        })
    }

    /// Cancels what was posted to go on and is not written down, as whoever posted it was interrupted.
    async fn find_posted(&mut self) -> Result<()> {
        let Some(posting) = self.current.record.posting else { return Ok(()) };
        let manifest = self.current.note.manifest.parse::<Cid>()?.to_bytes();
        let posted = |at: &EventAt| match &at.event {
            Event::JobPosted { job, terms, .. } => (terms.manifest == manifest).then_some(*job),
            _ => None,
        };
        let all: Vec<JobId> = self.hiring.user.events().borrow().iter().filter_map(posted).collect();
        for job in all {
            let is_known = Record::read(&self.hiring.node.ports.journal, job)?.is_some();
            if !is_known && !self.current.record.before.contains(&job) && !is_begun(&self.hiring.node, job).await? {
                self.write(|record| record.before.push(job))?;
            }
        }
        if when::now().saturating_sub(posting) > POSTED {
            self.write(|record| record.posting = None)?;
        }
        Ok(())
    }

    /// The last text that was delivered, and its job.
    pub(super) fn last_text(&self) -> (JobId, Option<u32>) {
        let newest = self.pipelines.newest();
        (newest.job(), newest.last_delivered())
    }

    /// Hires others in another job, for the tokens and the time that are left; where the account has too little for
    /// them, once the escrow of this one is back, if it may be closed for workers that it has `lost`. Where that is
    /// only to be faster, nobody is hired who would not be.
    pub(super) async fn hire(&mut self, lost: Option<&[Address]>, only_faster: bool) -> Result<JobId> {
        let shutdown = self.shutdown.clone();
        let chain = self.hiring.node.ports.chain.clone();
        let (job, longest) = (self.current.view.id, self.current.view.steps_per_interval);
        let all = self.current.view.intervals;
        let unused = all.saturating_sub(self.pipelines.newest().tokens());
        let share = self.current.record.deposit.saturating_mul(U256::from(unused)) / U256::from(all.max(1));
        let share = self.await_escrow(share, lost).await?;
        let serving = self.pipelines.newest().workers();
        // Its deadline is earlier where it was closed.
        let until = self.current.view.started_at.saturating_add(self.current.view.duration);
        let left = until.saturating_sub(chain.head().await?.timestamp);
        ensure!(left > SOON, "its time is over in {left} s");

        let (hiring, record) = (&mut self.hiring, &self.current.record);
        (hiring.duration, hiring.deposit) = (left, share);
        hiring.look_for(self.current.view.stages, self.config, &shutdown).await?;
        if let Some(asked) = &self.current.asked {
            hiring.place_again(asked).await?;
            if only_faster {
                let found = hiring.compared(asked, &serving).await?;
                ensure!(
                    found.as_ref().is_some_and(is_better),
                    "others would not be much faster any more, or are dearer"
                );
            }
        }
        let placed: Vec<Address> = hiring.candidates.iter().map(|candidate| candidate.address).collect();
        hiring.fit_programs(&shutdown, record.stages.iter().map(|stage| stage.memory).collect()).await?;
        let prices = hiring.prices(|stage, per_gmac| {
            record.stages.get(stage).and_then(|stage| price_of_token(stage.work.into(), longest, per_gmac))
        })?;
        let covered = tokens(None, (share, &hiring.parameters), (&prices, longest));
        let units = covered.context("what is left of the escrow is too little")?.min(unused);
        if only_faster {
            let is_placed = placed.iter().eq(hiring.candidates.iter().map(|candidate| &candidate.address));
            ensure!(is_placed && units == unused, "they have too little memory, or cost too much for what is left");
            hiring.take_these_or_none();
        }
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
        ensure!(runs(&self.hiring.node, job).await? || self.is_given_up(), "it was closed meanwhile");
        if lost.is_some() {
            (self.fruitless, self.last) = (self.fruitless.saturating_add(1), self.last_text());
        }
        let earlier = self.current.record.posting;
        self.write(|record| record.posting = Some(when::now()))?;
        let next = self.hiring.post(work, &self.current.note).await?;
        // Before it runs: a kill must not leave a job that nobody knows to serve.
        let before = self.current.record.before.iter().copied().chain([job]).collect();
        let record =
            Record { deposit: share, before, lost: None, posting: earlier, next: None, ..self.current.record.clone() };
        record.write(&self.hiring.node.ports.journal, next)?;
        self.write(|record| (record.posting, record.next) = (earlier, Some(next)))?;
        if let Err(error) = self.hiring.start(next, &prices, &shutdown).await {
            self.give_up(next)?;
            return Err(error);
        }
        Ok(next)
    }

    /// Texts go to a job that runs. The one before takes none, and is closed once those under way are at their end.
    pub(super) async fn hand_over(&mut self, next: JobId) -> Result<()> {
        let (job, ports) = (self.current.view.id, self.hiring.node.ports.clone());
        let view = self.hiring.node.ports.chain.job(next).await?.context("the job was undone by a reorganisation")?;
        let record = Record::read(&ports.journal, next)?.context("nothing is written down of the job")?;
        let pipeline = {
            let Current { boundaries, agreement, .. } = &self.current;
            Pipeline::open(ports, &view, boundaries.clone(), agreement.clone()).await?
        };
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
    pub(super) fn write(&mut self, change: impl FnOnce(&mut Record)) -> Result<()> {
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
    /// there is when all is back. With none, the job is not closed, and the account must have it.
    async fn await_escrow(&mut self, share: U256, lost: Option<&[Address]>) -> Result<U256> {
        let job = self.current.view.id;
        let mut is_closed = false;
        loop {
            let has = self.purse().await?;
            if has >= share {
                return Ok(share);
            }
            if !is_closed {
                let (needed, token) = (Wei(share), self.hiring.token_name());
                let Some(lost) = lost else { bail!("others cost up to {needed} {token}") };
                say!("others cost up to {needed} {token}; waiting until the escrow of job {job} is back ...");
                // Whoever serves it after an interruption goes on, though it is closed.
                self.write(|record| record.lost = Some(lost.to_vec()))?;
                self.pipelines.newest().pay().await;
                close(&self.hiring.node, job).await?;
                is_closed = true;
            }
            if self.settle().await? {
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
}
