//! What posting a job of either kind has in common: workers found, terms posted, offers accepted, the job started; the
//! escrow back if any of it fails.
//!
//! | module | what lives there |
//! |---|---|
//! | here | workers found, and those chosen that the work fits |
//! | `args`, `aim` | what is asked of workers, and offered; by what they are chosen |
//! | `placing` | workers, their order and the cut chosen jointly, and shown |
//! | `price` | what the work costs at their prices, and whether the deposit pays for it |
//! | `posting` | what is registered of the work; the job posted and started, or cancelled |
//! | `faster` | whether others would be faster than those that serve |
//! | `bench` | who is asked in place of a worker that does not offer |
//! | `note` | what a user writes down of a job |

mod aim;
mod args;
mod bench;
mod faster;
mod note;
mod placing;
mod posting;
mod price;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tensorlink_node::ports::chain::Parameters;
use tensorlink_types::{Address, U256};
use tensorlink_user::fit::{ChooseError, Unfit, choose, holds};
use tensorlink_user::hire::{Asked, Candidate};
use tensorlink_user::{HireError, User};
use tokio_util::sync::CancellationToken;

use crate::amount::parse_amount;
use crate::config::Config;
use crate::live::say;
use crate::node::Node;

pub use self::aim::{Aim, Stages};
pub use self::args::{HireArgs, Token};
pub use self::faster::Faster;
pub use self::note::{journal, read_note, setting};
pub use self::placing::{RingLane, Shown};
pub use self::posting::Work;

/// Disk for a user's files, bytes.
pub const DISK: u64 = 10 << 30;
/// A user who has reached no peer after so long is told.
const UNREACHED: Duration = Duration::from_secs(8);
/// Wait between two looks for workers that fit.
const LOOK: Duration = Duration::from_millis(500);

/// A user's node with workers that could be hired, and the terms for them.
pub struct Hiring<'a> {
    args: &'a HireArgs,
    /// The node.
    pub node: Node,
    /// Its role.
    pub user: Arc<User>,
    /// Pipeline stages; of `auto` the least there can be, before [`Self::place`].
    pub stages: u16,
    /// How many are asked for; none of `auto`.
    pub said: Option<u16>,
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
    /// What is asked of each worker.
    pub asked: Asked,
    /// Seconds that the job may take.
    pub duration: u64,
    /// Seconds in which a claim can be disproved.
    pub window: u64,
    /// Of the deployment.
    pub parameters: Parameters,
}

/// Says early that nobody is reached, while workers are looked for. Never ends.
async fn tell_unreached(node: &Node, config: &Config) -> Infallible {
    tokio::time::sleep(UNREACHED).await;
    if let Some(unreached) = node.unreached(config).await {
        say!("{unreached} Looking on ...");
    }
    std::future::pending().await
}

/// What each worker is to have at risk, by what was said.
fn worker_stake(args: &HireArgs) -> Result<u128> {
    parse_amount(&args.worker_stake)?.try_into().ok().context("--worker-stake is too large")
}

impl<'a> Hiring<'a> {
    /// Starts a node and looks for workers.
    pub async fn look(config: &Config, args: &'a HireArgs, shutdown: &CancellationToken) -> Result<Self> {
        if args.min_bandwidth.is_some() && args.objective == Aim::Price {
            bail!(
                "by price nobody's bandwidth is looked at: with --min-bandwidth give --objective latency or throughput"
            );
        }
        if let (None, Aim::Price) = (args.stages().said(), args.objective) {
            bail!("the price tells no number of stages: give --stages, or --objective latency or throughput");
        }
        let mut hiring = Self::on(Node::start_to_pay(config, DISK, shutdown).await?, args, shutdown).await?;
        hiring.find(config, shutdown).await?;
        Ok(hiring)
    }

    /// On a node that runs; no workers are looked for yet.
    pub async fn on(node: Node, args: &'a HireArgs, shutdown: &CancellationToken) -> Result<Self> {
        let user = User::start(node.ports.clone(), shutdown.clone()).await?;
        Self::with(node, user, args).await
    }

    /// The same with a role that runs.
    pub async fn with(node: Node, user: Arc<User>, args: &'a HireArgs) -> Result<Self> {
        let deposit = parse_amount(&args.deposit)?;
        let stake = worker_stake(args)?;
        let token = match args.token {
            Token::Sno => node.ports.chain.deployment().sno,
            Token::Eth => Address::ZERO,
        };
        let parameters = node.ports.chain.parameters().await?;
        let window = args.challenge_window.map_or(parameters.min_challenge_window, u64::from);
        let (candidates, others, other_prices, needs, work, until) = Default::default();
        Ok(Self {
            args,
            node,
            user,
            stages: args.stages().least(),
            said: args.stages().said(),
            candidates,
            others,
            other_prices,
            needs,
            work,
            until,
            deposit,
            asked: Asked { stake, token, tier: args.tier.into() },
            duration: args.duration,
            window,
            parameters,
        })
    }

    /// Looks for workers anew, from the same node, for so many stages.
    pub async fn look_for(&mut self, stages: u16, config: &Config, shutdown: &CancellationToken) -> Result<()> {
        (self.stages, self.said) = (stages, Some(stages));
        // It may have been raised for larger stages.
        self.asked.stake = worker_stake(self.args)?;
        self.candidates.clear();
        self.find(config, shutdown).await
    }

    /// Waits for enough workers, as long as `--patience` lasts.
    async fn find(&mut self, config: &Config, shutdown: &CancellationToken) -> Result<()> {
        let lanes = self.lanes();
        say!("looking for {lanes} staked workers ...");
        let patience = Duration::from_secs(self.args.patience);
        self.until = self.node.ports.clock.now().saturating_add(self.args.patience);
        let candidates = tokio::select! {
            () = shutdown.cancelled() => bail!("interrupted; nothing was posted"),
            found = self.user.find_workers(lanes, self.asked, patience) => found,
            never = tell_unreached(&self.node, config) => match never {},
        };
        self.others = match candidates {
            // Workers that cannot be heard are not missing.
            Err(HireError::TooFew(few)) if few.found == 0 => match self.node.unreached(config).await {
                Some(unreached) => bail!("{unreached}"),
                None => return Err(few.into()),
            },
            found => found?,
        };
        Ok(())
    }

    /// What was said of how to hire.
    pub const fn args(&self) -> &HireArgs {
        self.args
    }

    fn lanes(&self) -> usize {
        usize::from(self.stages).saturating_mul(self.args.replicas.into())
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
        let mut told = false;
        loop {
            if let Some(made) = self.fit_now(&mut fits)? {
                return Ok(made);
            }
            if self.node.ports.clock.now() >= self.until {
                return Err(Unfit::new(needed(), self.args.replicas.into(), &self.others).into());
            }
            if !told {
                say!("no set of the {} workers that answer fits; waiting for others ...", self.others.len());
                told = true;
            }
            self.look_again(shutdown).await?;
        }
    }

    /// As [`Self::fit`], of those that answer now; none if the work does not fit them.
    pub fn fit_now<T>(&mut self, fits: impl FnMut(&[u64]) -> Result<Option<T>>) -> Result<Option<T>> {
        self.release();
        match choose(&self.others, (self.stages.into(), self.args.replicas.into()), fits) {
            Ok((chosen, made)) => {
                self.choose(chosen);
                Ok(Some(made))
            }
            Err(ChooseError::Other(error)) => Err(error),
            Err(ChooseError::Unfit) => Ok(None),
        }
    }

    /// Those that were chosen before may be chosen again.
    fn release(&mut self) {
        self.others.append(&mut self.candidates);
        self.others.sort_by_key(Candidate::rank);
    }

    /// These have the lanes, in this order.
    fn choose(&mut self, chosen: Vec<Candidate>) {
        let is_chosen = |other: &Candidate| chosen.iter().any(|one| one.address == other.address);
        self.others.retain(|other| !is_chosen(other));
        self.candidates = chosen;
    }

    /// Waits a moment, and looks who answers then.
    async fn look_again(&mut self, shutdown: &CancellationToken) -> Result<()> {
        tokio::select! {
            () = shutdown.cancelled() => bail!("interrupted; nothing was posted"),
            () = self.node.ports.clock.sleep(LOOK) => {}
        }
        match self.user.ranked(self.lanes(), self.asked).await {
            Ok(ranked) => self.others = ranked,
            // Who was there a moment ago is busy now, perhaps.
            Err(HireError::TooFew(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// As [`Self::fit`], for programs that need so much memory, stage by stage. Workers that were placed stay where
    /// they are if they hold them.
    pub async fn fit_programs(&mut self, shutdown: &CancellationToken, needs: Vec<u64>) -> Result<()> {
        let mut lanes = self.candidates.iter().zip(needs.iter().cycle());
        let placed = self.args.objective != Aim::Price && !self.candidates.is_empty();
        if placed && lanes.all(|(candidate, needed)| candidate.advert.memory >= *needed) {
            self.needs = needs;
            return Ok(());
        }
        if self.args.min_bandwidth.is_some() {
            bail!(
                "the programs need more memory than was estimated, and other workers are not chosen by bandwidth: leave \
                 out --min-bandwidth"
            );
        }
        self.fit(shutdown, || needs.clone(), |memories| Ok(holds(memories, &needs).then_some(()))).await?;
        self.needs = needs;
        Ok(())
    }
}
