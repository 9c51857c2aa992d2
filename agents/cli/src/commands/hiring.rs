//! What posting a job of either kind has in common: workers found, terms posted, offers accepted, the job started; the
//! escrow back if any of it fails.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

mod bench;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use cid::Cid;
use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tensorlink_model::Setting;
use tensorlink_node::Journal;
use tensorlink_node::ports::chain::Parameters;
use tensorlink_node::ports::{Call, Event};
use tensorlink_node::price::{audit_budget, least_stake};
use tensorlink_types::abi::{JobKind, JobTerms};
use tensorlink_types::{Address, B256, JobId, Lane, U256};
use tensorlink_user::fit::{ChooseError, Unfit, choose, holds};
use tensorlink_user::hire::{Candidate, Wanted};
use tensorlink_user::serving::ServingNote;
use tensorlink_user::{HireError, Published, User};
use tokio_util::sync::CancellationToken;

use self::bench::Bench;
use crate::amount::{Wei, parse_amount};
use crate::config::Config;
use crate::live::say;
use crate::node::Node;

/// Disk for a user's files, bytes.
pub const DISK: u64 = 10 << 30;
/// A user who has reached no peer after so long is told.
const UNREACHED: Duration = Duration::from_secs(8);
/// Wait between two looks for workers that fit.
const LOOK: Duration = Duration::from_millis(500);
/// Seconds from posting to accepting, at most.
const ACCEPT_WITHIN: u64 = 900;

/// What a job pays in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Token {
    /// The network's token.
    #[default]
    Sno,
    /// The chain's own.
    Eth,
}

/// What jobs of either kind ask of workers, and what they offer; `[hire]` of a job file.
#[derive(Args, Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HireArgs {
    /// Pipeline stages.
    #[arg(long, default_value_t = Self::default().stages)]
    pub stages: u16,
    /// Security level: independent copies of the pipeline.
    #[arg(long, default_value_t = Self::default().replicas)]
    pub replicas: u16,
    /// Escrow, in SNO or ETH.
    #[arg(long, value_name = "AMOUNT")]
    pub deposit: String,
    /// What to pay in.
    #[arg(long, value_enum, default_value_t)]
    pub token: Token,
    /// SNO each worker must have at risk in this job.
    #[arg(long, default_value_t = Self::default().worker_stake, value_name = "AMOUNT")]
    pub worker_stake: String,
    /// Seconds in which a claim can be challenged [default: the shortest that the contracts allow].
    #[arg(long, value_name = "SECONDS")]
    pub challenge_window: Option<u32>,
    /// Seconds the job may take from its start.
    #[arg(long, default_value_t = Self::default().duration, value_name = "SECONDS")]
    pub duration: u64,
    /// Seconds to wait for enough workers.
    #[arg(long, default_value_t = Self::default().patience, value_name = "SECONDS")]
    pub patience: u64,
    /// Show terms and quote, post nothing.
    #[arg(long)]
    #[serde(skip)]
    pub dry_run: bool,
}

/// Without a deposit, which must be named.
impl Default for HireArgs {
    fn default() -> Self {
        Self {
            stages: 2,
            replicas: 1,
            deposit: String::new(),
            token: Token::default(),
            worker_stake: "1000".into(),
            challenge_window: None,
            duration: 86_400,
            patience: 60,
            dry_run: false,
        }
    }
}

/// A user's node with workers that could be hired, and the terms for them.
pub struct Hiring<'a> {
    args: &'a HireArgs,
    /// The node.
    pub node: Node,
    /// Its role.
    pub user: Arc<User>,
    /// Who is to have each lane, in the order of lanes; nobody before [`Self::fit`].
    pub candidates: Vec<Candidate>,
    /// Who answers and is not among them, best first.
    others: Vec<Candidate>,
    /// What each stage's unit would cost by each of them, wei; none if it is beyond what an offer can hold.
    other_prices: Vec<Vec<Option<u128>>>,
    /// Memory that each stage needs, bytes.
    needs: Vec<u64>,
    /// Units of work, and the most that a claim is about.
    work: (u32, u32),
    /// Until when workers that fit are waited for, by the node's clock.
    until: u64,
    /// Escrow, wei of the token.
    pub deposit: U256,
    /// Wei of SNO at risk.
    pub worker_stake: u128,
    /// Seconds in which a claim can be disproved.
    pub window: u64,
    /// Of the deployment.
    pub parameters: Parameters,
    token: Address,
}

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

/// Says early that nobody is reached, while workers are looked for. Never ends.
async fn tell_unreached(node: &Node, config: &Config) -> Infallible {
    tokio::time::sleep(UNREACHED).await;
    if let Some(unreached) = node.unreached(config).await {
        say!("{unreached} Looking on ...");
    }
    std::future::pending().await
}

/// Name of the record a user keeps of a job.
fn note_name(job: JobId) -> String {
    format!("job-{job}")
}

/// The record a user keeps of a job.
pub fn read_note<T: DeserializeOwned>(node: &Node, job: JobId) -> Result<T> {
    let note = node.ports.journal.read(&note_name(job))?;
    note.with_context(|| format!("this node did not post job {job}: use the data directory of the one that did"))
}

/// In how many bits a serving job is computed; none if no job of this number was posted from this data directory, or
/// an earlier version did.
pub fn setting(config: &Config, job: JobId) -> Result<Option<Setting>> {
    let folder = config.data_dir.join("journal");
    // Who only asks has no folder made for it.
    if !folder.is_dir() {
        return Ok(None);
    }
    let note: Option<ServingNote> = Journal::open(folder)?.read(&note_name(job))?;
    Ok(note.and_then(|note| note.setting))
}

impl<'a> Hiring<'a> {
    /// Starts a node and looks for workers.
    pub async fn look(config: &Config, args: &'a HireArgs, shutdown: &CancellationToken) -> Result<Self> {
        let deposit = parse_amount(&args.deposit)?;
        let worker_stake: u128 =
            parse_amount(&args.worker_stake)?.try_into().ok().context("--worker-stake is too large")?;
        let node = Node::start_to_pay(config, DISK, shutdown).await?;
        let token = match args.token {
            Token::Sno => node.ports.chain.deployment().sno,
            Token::Eth => Address::ZERO,
        };
        let parameters = node.ports.chain.parameters().await?;
        let window = args.challenge_window.map_or(parameters.min_challenge_window, u64::from);
        let user = User::start(node.ports.clone(), shutdown.clone()).await?;

        let lanes = usize::from(args.stages) * usize::from(args.replicas);
        say!("looking for {lanes} staked workers ...");
        let patience = Duration::from_secs(args.patience);
        let until = node.ports.clock.now().saturating_add(args.patience);
        let candidates = tokio::select! {
            () = shutdown.cancelled() => bail!("interrupted; nothing was posted"),
            found = user.find_workers(lanes, worker_stake, token, patience) => found,
            never = tell_unreached(&node, config) => match never {},
        };
        let others = match candidates {
            // Workers that cannot be heard are not missing.
            Err(HireError::TooFew(few)) if few.found == 0 => match node.unreached(config).await {
                Some(unreached) => bail!("{unreached}"),
                None => return Err(few.into()),
            },
            found => found?,
        };
        let (candidates, other_prices, needs, work) = Default::default();
        Ok(Self {
            args,
            node,
            user,
            candidates,
            others,
            other_prices,
            needs,
            work,
            until,
            deposit,
            worker_stake,
            window,
            parameters,
            token,
        })
    }

    /// Chooses the workers that the work fits, the cheapest of them; waits for more as long as `--patience` lasts.
    /// `fits` takes the least memory of each stage's workers, and gives what it made of that, or none where they do not
    /// fit; `needed` tells what each stage needs, for the error.
    pub async fn fit<T>(
        &mut self,
        shutdown: &CancellationToken,
        needed: impl Fn() -> Vec<u64>,
        mut fits: impl FnMut(&[u64]) -> Result<Option<T>>,
    ) -> Result<T> {
        let shape = (usize::from(self.args.stages), usize::from(self.args.replicas));
        let mut told = false;
        // Those that were chosen before may be chosen again.
        self.others.append(&mut self.candidates);
        self.others.sort_by_key(Candidate::rank);
        loop {
            match choose(&self.others, shape, &mut fits) {
                Ok((chosen, made)) => {
                    let is_chosen = |other: &Candidate| chosen.iter().any(|one| one.address == other.address);
                    self.others.retain(|other| !is_chosen(other));
                    self.candidates = chosen;
                    return Ok(made);
                }
                Err(ChooseError::Other(error)) => return Err(error),
                Err(ChooseError::Unfit) => {}
            }
            let clock = &self.node.ports.clock;
            if clock.now() >= self.until {
                return Err(Unfit::new(needed(), shape.1, &self.others).into());
            }
            if !told {
                say!("no set of the {} workers that answer fits; waiting for others ...", self.others.len());
                told = true;
            }
            tokio::select! {
                () = shutdown.cancelled() => bail!("interrupted; nothing was posted"),
                () = clock.sleep(LOOK) => {}
            }
            match self.user.ranked(shape.0.saturating_mul(shape.1), self.worker_stake, self.token).await {
                Ok(ranked) => self.others = ranked,
                // Who was there a moment ago is busy now, perhaps.
                Err(HireError::TooFew(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// As [`Self::fit`], for programs that need so much memory, stage by stage.
    pub async fn fit_programs(&mut self, shutdown: &CancellationToken, needs: Vec<u64>) -> Result<()> {
        self.fit(shutdown, || needs.clone(), |memories| Ok(holds(memories, &needs).then_some(()))).await?;
        self.needs = needs;
        Ok(())
    }

    /// Checks, before anything is paid for, that the deposit covers `units` of work at these prices with its audits
    /// (rules P-3, P-29), and the stake what lanes of these prices must have at risk (P-30). `longest`: the most units
    /// that a claim is about. Returns the budget for audits.
    pub fn afford(&mut self, prices: &[u128], units: u32, longest: u32) -> Result<U256> {
        self.work = (units, longest);
        self.covers(prices)
    }

    /// As [`Self::afford`], for the same work.
    fn covers(&self, prices: &[u128]) -> Result<U256> {
        let (units, longest) = self.work;
        let per_unit: U256 = prices.iter().map(|price| U256::from(*price)).sum();
        let audits = audit_budget(&self.parameters, per_unit, units, longest);
        let needed = per_unit.saturating_mul(U256::from(units)).saturating_add(audits);
        ensure!(
            needed <= self.deposit,
            "at the workers' prices the job needs {} {}, {} of it for audits: raise --deposit",
            Wei(needed),
            self.token_name(),
            Wei(audits)
        );
        let dearest = prices.iter().copied().max().unwrap_or_default();
        // The contracts know no price of ETH to compare a stake with.
        let of_price = if self.token.is_zero() { U256::ZERO } else { least_stake(&self.parameters, dearest, longest) };
        let stake = of_price.max(U256::from(self.parameters.dispute_bond));
        ensure!(
            stake <= U256::from(self.worker_stake),
            "lanes of this price must have {} SNO at risk: raise --worker-stake",
            Wei(stake)
        );
        Ok(audits)
    }

    /// `SNO` or `ETH`, which the job pays in.
    pub fn token_name(&self) -> &'static str {
        if self.args.token == Token::Sno { "SNO" } else { "ETH" }
    }

    /// The price of each lane's unit by the candidates' adverts, in the order of lanes (`replica · stages + stage`):
    /// `price` of a stage at a price per billion multiply-adds.
    pub fn prices(&mut self, price: impl Fn(usize, u128) -> Option<u128>) -> Result<Vec<u128>> {
        let stages = usize::from(self.args.stages).max(1);
        let of_other = |other: &Candidate| (0..stages).map(|stage| price(stage, other.price_per_gmac)).collect();
        self.other_prices = self.others.iter().map(of_other).collect();
        let of = |(index, candidate): (usize, &Candidate)| {
            let asked = price(index % stages, candidate.price_per_gmac);
            asked.with_context(|| format!("{} advertises a price beyond what an offer can hold", candidate.address))
        };
        self.candidates.iter().enumerate().map(of).collect()
    }

    /// Posts the job and writes down what is needed to use it, as soon as it has a number.
    pub async fn post(&self, work: Work, note: &impl Serialize) -> Result<JobId> {
        let now = self.node.ports.chain.head().await?.timestamp;
        let former = work.continues;
        let terms = JobTerms {
            kind: work.kind as u8,
            token: self.token,
            stages: self.args.stages,
            replicas: self.args.replicas,
            intervals: work.intervals,
            stepsPerInterval: work.steps_per_interval,
            acceptBy: (now + ACCEPT_WITHIN).try_into().ok().context("the chain's clock is out of range")?,
            duration: self.args.duration.try_into().ok().context("--duration is too long")?,
            challengeWindow: self.window.try_into().ok().context("--challenge-window is too long")?,
            workerStake: self.worker_stake,
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
        say!("job {job} is posted (gas {}); asking for offers ...", receipt.gas);
        Ok(job)
    }

    /// Hires the candidates at the advertised `prices` and starts the job; cancels it if that fails.
    pub async fn start(&self, job: JobId, prices: &[u128], shutdown: &CancellationToken) -> Result<()> {
        let stages = usize::from(self.args.stages).max(1);
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
        match chain.send(Call::Collect { token: self.token }).await {
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
