//! Decides whether to take a lane, and binds the worker to it.

use cid::Cid;
use tensorlink_node::files::file_len;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::ports::{ChainError, Owner};
use tensorlink_node::price::{price_per_interval, price_per_token};
use tensorlink_node::shard::{ShardError, bytes};
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_types::abi::{JobKind, Offer};
use tensorlink_types::{B256, Lane};
use thiserror::Error;

use super::fetching::{fetch, fetch_serving};
use super::hours::Hours;
use super::promises::{Promises, VALIDITY};
use crate::context::{Context, Limits, WorkerConfig};

/// Why a worker declines a lane. Its text goes to the user.
#[derive(Debug, Error)]
pub enum Declined {
    /// No such job.
    #[error("no job {0} is confirmed on chain yet")]
    Unknown(u64),
    /// The job takes no offers.
    #[error("the job is {0:?} and takes no offers")]
    State(JobState),
    /// No such lane.
    #[error("the job has no such lane")]
    NoLane,
    /// Too much at risk.
    #[error("the job asks for {asked} wei of stake, this worker risks at most {limit}")]
    Stake {
        /// Asked.
        asked: u128,
        /// Limit.
        limit: u128,
    },
    /// Stake would be locked for too long.
    #[error("the job asks for stake for {asked} seconds {stage}, this worker gives it for at most {limit}")]
    Time {
        /// Of the job: until it starts, or from then on.
        stage: &'static str,
        /// Asked, seconds.
        asked: u64,
        /// Limit, seconds.
        limit: u64,
    },
    /// Not at this hour.
    #[error("this worker takes jobs in the hours {0} (UTC): choose another, or post then")]
    Hour(Hours),
    /// Its owner needs the machine. That lasts: others are better asked.
    #[error("the owner of this worker's machine uses it, and no new jobs are taken meanwhile: choose another")]
    InUse,
    /// Not of this kind.
    #[error("this worker takes no {} jobs: choose another", if *.0 == JobKind::Training { "training" } else { "serving" })]
    Kind(JobKind),
    /// It pays in what this worker does not take.
    #[error("this worker takes no jobs that pay in ETH")]
    Token,
    /// Not enough stake.
    #[error("this worker has {free} wei of stake free, the job asks for {asked}")]
    NoStake {
        /// Asked.
        asked: u128,
        /// Free.
        free: u128,
    },
    /// Busy.
    #[error("this worker has no free lane, or has offered it: ask again, or choose another")]
    Busy,
    /// The shard is unusable.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The chain could not be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The disk is too small for what it would have to keep. Who asked again would have it fetched again.
    #[error(
        "the lane needs {needed} bytes of disk to begin, this worker has {room} beside what its jobs need: choose another"
    )]
    Disk {
        /// Bytes needed.
        needed: u64,
        /// Bytes that are free.
        room: u64,
    },
    /// The price does not fit the contract's integer.
    #[error("the price of this lane is beyond what an offer can hold")]
    Price,
    /// What was promised cannot be written down.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// We could not sign.
    #[error(transparent)]
    Sign(#[from] SignatureError),
}

impl Declined {
    /// Whether asking again is pointless: it lies in what was posted, or in what this worker is, or it lasts.
    pub const fn is_final(&self) -> bool {
        match self {
            Self::NoLane
            | Self::Stake { .. }
            | Self::Time { .. }
            | Self::Kind(_)
            | Self::InUse
            | Self::Token
            | Self::Disk { .. }
            | Self::Price => true,
            Self::Shard(error) => !matches!(error, ShardError::Chain(_) | ShardError::Store(_)),
            Self::Unknown(_)
            | Self::State(_)
            | Self::NoStake { .. }
            | Self::Hour(_)
            | Self::Busy
            | Self::Chain(_)
            | Self::Journal(_)
            | Self::Sign(_) => false,
        }
    }
}

/// Fetches and checks the shard of a lane and signs an offer for it, for the job that was posted with that hash of its
/// user and terms (P-40) and with that manifest, if there is a place beside the lanes that are not free, and memory and
/// disk beside what was promised: all of it is held until the offer expires.
///
/// # Errors
/// [`Declined`].
pub async fn quote<E: Engine>(
    context: &Context<E>,
    lane: Lane,
    (terms, manifest): (B256, Cid),
    (promises, free): (&Promises, impl FnOnce() -> u16),
) -> Result<(Offer, Vec<u8>), Declined> {
    let job = named(context, lane, terms).await?;
    if job.state != JobState::Posted {
        return Err(Declined::State(job.state));
    }
    if lane.stage >= job.stages || lane.replica >= job.replicas {
        return Err(Declined::NoLane);
    }
    check_kind(&context.config.limits, &job, context.ports.clock.now())?;
    check_use(&context.config)?;
    check_stake(context, &job).await?;
    let now = context.ports.chain.head().await?.timestamp;
    check_times(&context.config.limits, &job, now)?;
    let asked = context.config.prices.in_token(job.token).ok_or(Declined::Token)?;
    let expires = now.saturating_add(VALIDITY);
    if !promises.hold(lane, (now, expires), free) {
        return Err(Declined::Busy);
    }
    let _unless_signed = Unsigned(promises, lane);
    let steps = job.steps_per_interval;
    let (price, needed) = match job.kind {
        JobKind::Training => {
            let shard = fetch(context, &job, (lane.stage, manifest), (Owner::Quote, &promises.room(lane))).await?;
            // The shard, and the state after the first interval.
            let state = file_len(shard.program.state.iter().map(|slot| &slot.ty));
            (price_per_interval(&shard.program, steps, asked), bytes(&shard.program).saturating_add(state))
        }
        JobKind::Serving => {
            let shard =
                fetch_serving(context, &job, (lane.stage, manifest), (Owner::Quote, &promises.room(lane))).await?;
            let longest = shard.program(steps).map_err(ShardError::from)?;
            let constants = file_len(shard.plan.constants().iter().map(|slot| &slot.ty));
            (price_per_token(&longest, steps, asked), constants)
        }
    };
    let price = price.ok_or(Declined::Price)?;
    let room = promises.reserve(lane, needed, context.ports.store.room().await.map_err(ShardError::from)?);
    if room < needed {
        return Err(Declined::Disk { needed, room });
    }
    // What was looked at belongs to the job that was posted, if that is still the one of this number.
    named(context, lane, terms).await?;
    let offer = Offer {
        job: lane.job.0,
        terms,
        stage: lane.stage,
        replica: lane.replica,
        worker: context.ports.identity.address(),
        pricePerInterval: price,
        expires: expires.try_into().map_err(|_| Declined::Price)?,
    };
    // To fetch the files may have taken minutes.
    check_use(&context.config)?;
    if !promises.sign(lane)? {
        return Err(Declined::Busy);
    }
    let signature = context.ports.identity.sign(context.ports.contracts.offer(&offer))?.to_vec();
    Ok((offer, signature))
}

/// Frees what is held for a lane of which no offer is signed in the end, also where nobody waits for one any more.
struct Unsigned<'a>(&'a Promises, Lane);

impl Drop for Unsigned<'_> {
    fn drop(&mut self) {
        self.0.withdraw(self.1);
    }
}

/// The job of the lane as the chain has it now, if it is the one that was posted: a reorganisation may give its number
/// to another (P-40).
async fn named<E: Engine>(context: &Context<E>, lane: Lane, terms: B256) -> Result<JobView, Declined> {
    let job = context.ports.chain.job(lane.job).await?;
    job.filter(|job| job.terms == terms).ok_or(Declined::Unknown(lane.job.0))
}

/// Whether jobs of its kind are taken, and at this time of the owner's clock.
fn check_kind(limits: &Limits, job: &JobView, now: u64) -> Result<(), Declined> {
    match *limits {
        Limits { only: Some(only), .. } if job.kind != only => Err(Declined::Kind(job.kind)),
        Limits { hours: Some(hours), .. } if !limits.taken_at(now) => Err(Declined::Hour(hours)),
        _ => Ok(()),
    }
}

/// Whether the owner leaves the machine to others now.
fn check_use(config: &WorkerConfig) -> Result<(), Declined> {
    if *config.in_use.borrow() { Err(Declined::InUse) } else { Ok(()) }
}

/// How long the stake may be locked: for nothing until the job starts, and from then on.
const fn check_times(limits: &Limits, job: &JobView, now: u64) -> Result<(), Declined> {
    let wait = job.accept_by.saturating_sub(now);
    if wait > limits.wait {
        return Err(Declined::Time { stage: "until it starts", asked: wait, limit: limits.wait });
    }
    if job.duration > limits.duration {
        return Err(Declined::Time { stage: "once it has started", asked: job.duration, limit: limits.duration });
    }
    Ok(())
}

async fn check_stake<E: Engine>(context: &Context<E>, job: &JobView) -> Result<(), Declined> {
    let (asked, limit) = (job.worker_stake, context.config.limits.stake);
    if asked > limit {
        return Err(Declined::Stake { asked, limit });
    }
    let role = tensorlink_node::ports::chain::Role::Worker;
    let stake = context.ports.chain.stake(context.ports.identity.address(), role).await?;
    let free = stake.bonded.saturating_sub(stake.locked);
    if free < asked { Err(Declined::NoStake { asked, free }) } else { Ok(()) }
}
