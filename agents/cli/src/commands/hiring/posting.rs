//! The job on the chain: posted, offers accepted, started; or cancelled, and the escrow back.

use anyhow::{Context, Result, bail};
use cid::Cid;
use serde::Serialize;
use tensorlink_node::ports::{Call, Event};
use tensorlink_types::abi::{JobKind, JobTerms};
use tensorlink_types::{Address, B256, JobId, Lane, U256};
use tensorlink_user::Published;
use tensorlink_user::hire::{Candidate, Wanted};
use tokio_util::sync::CancellationToken;

use super::Hiring;
use super::bench::Bench;
use super::note::note_name;
use crate::amount::Wei;
use crate::live::say;
use crate::tiers::Tiers;

/// Seconds from posting to accepting, at most.
const ACCEPT_WITHIN: u64 = 900;

/// What a job registers of its work.
pub struct Work {
    /// What its lanes do.
    pub kind: JobKind,
    /// Claims of each lane, or most tokens it is paid for.
    pub intervals: u32,
    /// Steps of a claim, or most tokens of a text.
    pub steps_per_interval: u32,
    /// Program roots, or list roots of programs by length, stage by stage.
    pub programs: Vec<B256>,
    /// Initial state roots, stage by stage; none of a serving job.
    pub initial_states: Vec<B256>,
    /// CID of the manifest.
    pub manifest: Cid,
    /// The job that it continues, and the steps before its own.
    pub continues: Option<(JobId, u32)>,
}

impl Work {
    /// Of a training job with these files: claims of each lane, and steps of one; the job that it continues, and the
    /// steps before its own.
    pub fn training(
        published: &Published,
        (intervals, steps_per_interval): (u32, u32),
        continues: Option<(JobId, u32)>,
    ) -> Self {
        Self {
            kind: JobKind::Training,
            intervals,
            steps_per_interval,
            programs: published.programs.clone(),
            initial_states: published.initial_states.clone(),
            manifest: published.manifest,
            continues,
        }
    }
}

impl Hiring<'_> {
    /// Posts the job and writes down what is needed to use it, as soon as it has a number.
    pub async fn post(&self, work: Work, note: &impl Serialize) -> Result<JobId> {
        let now = self.node.ports.chain.head().await?.timestamp;
        let former = work.continues;
        let terms = JobTerms {
            kind: work.kind as u8,
            token: self.asked.token,
            stages: self.stages,
            replicas: self.args.replicas,
            intervals: work.intervals,
            stepsPerInterval: work.steps_per_interval,
            acceptBy: (now + ACCEPT_WITHIN).try_into().ok().context("the chain's clock is out of range")?,
            duration: self.duration.try_into().ok().context("--duration is too long")?,
            challengeWindow: self.window.try_into().ok().context("--challenge-window is too long")?,
            workerStake: self.asked.stake,
            continues: former.map_or(0, |(job, _)| job.0),
            firstStep: former.map_or(0, |(_, steps)| steps),
            programs: work.programs,
            initialStates: work.initial_states,
            manifest: work.manifest.to_bytes().into(),
        };
        let receipt = self.node.ports.chain.send(Call::Post { terms, deposit: self.deposit }).await?;
        let job = receipt.events.iter().find_map(|event| match event {
            Event::JobPosted { job, .. } => Some(*job),
            _ => None,
        });
        let job = job.context("the post was mined without its event; is this the right deployment?")?;
        self.node.ports.journal.write(&note_name(job), note)?;
        let (gas, count, tiers) = (receipt.gas, self.candidates.len(), Tiers::of(&self.candidates).counted());
        say!("job {job} is posted (gas {gas}); asking {count} workers for offers, {tiers} ...");
        Ok(job)
    }

    /// Hires the candidates at the advertised `prices` and starts the job; cancels it if that fails.
    pub async fn start(&self, job: JobId, prices: &[u128], shutdown: &CancellationToken) -> Result<()> {
        let stages = usize::from(self.stages).max(1);
        let want = |(index, (candidate, limit)): (usize, (&Candidate, &u128))| {
            let lane = Lane { job, stage: (index % stages).try_into()?, replica: (index / stages).try_into()? };
            Ok(Wanted { lane, worker: candidate.address, limit: *limit })
        };
        let lanes = self.candidates.iter().zip(prices).enumerate().map(want).collect::<Result<Vec<_>>>();
        let hired = match lanes {
            Ok(lanes) => self.hire(job, &lanes, shutdown).await,
            Err(error) => Err(error),
        };
        let Err(error) = hired else { return Ok(()) };
        say!("job {job} does not start; cancelling it to get the escrow back");
        let chain = &self.node.ports.chain;
        if let Err(also) = chain.send(Call::Cancel { job }).await {
            return Err(error.context(format!(
                "job {job} could not be cancelled either ({also}): `tensorlink job cancel {job}` later"
            )));
        }
        match chain.send(Call::Collect { token: self.asked.token }).await {
            Ok(_) => Err(error.context(format!("job {job} was cancelled and its escrow returned"))),
            Err(also) => Err(error.context(format!(
                "job {job} was cancelled, and its escrow waits to be collected ({also}): `tensorlink withdraw` later"
            ))),
        }
    }

    async fn hire(&self, job: JobId, lanes: &[Wanted], shutdown: &CancellationToken) -> Result<()> {
        let (user, chain) = (&self.user, &self.node.ports.chain);
        let mut bench = Bench::new(self, lanes);
        let work = async {
            let posted = chain.job(job).await?.context("the job was undone by a reorganisation; nothing is paid")?;
            let offered =
                user.collect_offers(posted.terms, lanes, |wanted, error| bench.instead(wanted, error)).await?;
            let lanes: Vec<Wanted> = offered.iter().map(|(wanted, ..)| *wanted).collect();
            let (offers, signatures): (Vec<_>, Vec<_>) =
                offered.into_iter().map(|(_, offer, signature)| (offer, signature)).unzip();
            let price: U256 = offers.iter().map(|offer| U256::from(offer.pricePerInterval)).sum();
            say!("{} offers; an interval, or a token through all lanes, costs {}", offers.len(), Wei(price));
            let hired: Vec<Address> = lanes.iter().map(|wanted| wanted.worker).collect();
            Tiers::of(self.candidates.iter().chain(&self.others)).only(&hired).write(&self.node.ports.journal, job)?;
            let receipt = chain.send(Call::Accept { job, offers, signatures }).await?;
            say!("accepted (gas {}); waiting for the workers ...", receipt.gas);
            user.wait_until_ready(job, &lanes).await?;
            let receipt = chain.send(Call::Start { job }).await?;
            say!("started (gas {})", receipt.gas);
            Ok(())
        };
        tokio::select! {
            () = shutdown.cancelled() => bail!("interrupted"),
            result = work => result,
        }
    }
}
