//! What is left of a training, ready to be posted as another job, in the stages that suit whoever is there.

use anyhow::{Result, ensure};
use serde::Serialize;
use tensorlink_model::partition::PartitionError;
use tensorlink_node::bounds::Bounds;
use tensorlink_node::footprint::Footprint;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::price::price_per_interval;
use tensorlink_program::CheckedProgram;
use tensorlink_types::{JobId, U256};
use tensorlink_user::fit::{holds, least_even};
use tensorlink_user::{Claims, JobNote, ResultError, ResumeError, Resumption, Uncut, User};
use tokio_util::sync::CancellationToken;

use crate::amount::Wei;
use crate::commands::hiring::{Aim, Hiring, Work};
use crate::live::say;
use crate::output;

/// What is left, and what it will cost.
#[derive(Serialize)]
pub(super) struct Quote {
    /// The job that is continued.
    continues: JobId,
    /// Steps done before.
    steps_done: u32,
    /// Steps left.
    steps: u32,
    /// Claims of each lane.
    intervals: u32,
    /// Stages that it is cut into.
    stages: u16,
    /// `SNO` or `ETH`, which the job pays in.
    token: &'static str,
    /// Escrow, in wei of the token.
    deposit: Wei,
    /// By the workers' adverts; binding prices come with their offers.
    estimate: Wei,
}

/// What is left of a training, ready to be posted.
pub(super) struct Rest {
    pub(super) work: Work,
    pub(super) note: JobNote,
    /// Of each lane's interval, wei.
    pub(super) prices: Vec<u128>,
    /// What its training may not exceed.
    pub(super) bounds: Bounds,
    pub(super) quote: Quote,
}

/// Fetches and publishes the states after so many intervals of a job, which end in such claims.
pub(super) async fn fetch(
    user: &User,
    (former, note): (&JobView, &JobNote),
    (from, claims): (u32, Claims),
) -> Result<Resumption> {
    say!("fetching the states after {from} of {} intervals ...", former.intervals);
    user.resume(former, note, (from, claims)).await.map_err(|error| explained(error, from))
}

/// The same, to be cut into other stages, if it can be.
pub(super) async fn uncut(user: &User, resumption: &Resumption) -> Option<Uncut> {
    user.uncut(resumption).await.unwrap_or_else(|error| {
        say!("its stages stay as they are: {error}");
        None
    })
}

impl Rest {
    /// Chooses workers for the rest of a job after so many of its intervals, and cuts it anew if it can be and they
    /// want it. Of the deposit no more is put up than this share, unless the rest needs more.
    pub(super) async fn hire(
        hiring: &mut Hiring<'_>,
        (former, from): (&JobView, u32),
        (resumption, uncut): (Resumption, Option<Uncut>),
        share: U256,
        shutdown: &CancellationToken,
    ) -> Result<Self> {
        let (intervals, per_interval) = (former.intervals.saturating_sub(from), former.steps_per_interval);
        let recut = match &uncut {
            Some(uncut) => suited(hiring, &resumption, uncut, per_interval, shutdown).await?,
            None => None,
        };
        let is_recut = recut.is_some();
        let Resumption { programs, published, bounds } = recut.unwrap_or(resumption);
        ensure!(
            programs.len() == usize::from(hiring.stages),
            "job {} cannot be cut anew, as it was posted by an earlier version, or its files are lost: leave out --stages, or \
             give {}",
            former.id,
            programs.len()
        );
        let price = |stage: usize, per_gmac| {
            programs.get(stage).and_then(|program| price_per_interval(program, per_interval, per_gmac))
        };
        hiring.fit_programs(shutdown, needs(&programs, per_interval)).await?;
        let mut prices = hiring.prices(price)?;
        // Larger stages cost more, and whoever asked for smaller ones could not know.
        while is_recut && hiring.raise_stake(&prices).await? {
            hiring.fit_programs(shutdown, needs(&programs, per_interval)).await?;
            prices = hiring.prices(price)?;
        }
        hiring.afford_rest(&prices, intervals, share)?;
        let first_step = former.lineage.first_step + from * per_interval;
        let estimate: U256 = prices.iter().map(|price| U256::from(intervals).saturating_mul(U256::from(*price))).sum();
        let quote = Quote {
            continues: former.id,
            steps_done: first_step,
            steps: intervals * per_interval,
            intervals,
            stages: hiring.stages,
            token: hiring.token_name(),
            deposit: Wei(hiring.deposit),
            estimate: Wei(estimate),
        };
        let work = Work::training(&published, (intervals, per_interval), Some((former.id, first_step)));
        Ok(Self { work, note: published.note, prices, bounds, quote })
    }
}

/// Memory that each of these programs takes, with so many steps in an interval, bytes.
fn needs(programs: &[CheckedProgram], steps: u32) -> Vec<u64> {
    programs.iter().map(|program| Footprint::training(program, steps).alone()).collect()
}

/// What is left in other stages; none where those that it had suit the workers.
async fn suited(
    hiring: &mut Hiring<'_>,
    rest: &Resumption,
    uncut: &Uncut,
    steps: u32,
    shutdown: &CancellationToken,
) -> Result<Option<Resumption>> {
    let of_stages = needs(&rest.programs, steps);
    let as_before = |memories: &[u64]| Ok(holds(memories, &of_stages).then_some(()));
    // A planner knows a chain of stages. Shares stand in one, and compute side by side.
    let by_memory = hiring.args().objective == Aim::Price || uncut.shares() > 1;
    let any_link = hiring.args().min_bandwidth.is_none();
    ensure!(
        !by_memory || any_link,
        "stages that share a step's sequences are not placed by bandwidth: leave out --min-bandwidth"
    );
    ensure!(!by_memory || hiring.said.is_some(), "stages that share a step's sequences are not chosen: give --stages");
    if by_memory && hiring.fit_now(as_before)?.is_some() {
        return Ok(None);
    }
    let work = tensorlink_user::placing::Work::resumed(&rest.published.note.name, &uncut.layers()?, steps);
    let ranges = if by_memory {
        let stages = usize::from(hiring.stages);
        let fits = |memories: &[u64]| match work.cut(memories) {
            _ if holds(memories, &of_stages) => Ok(Some(uncut.former().to_vec())),
            Err(PartitionError::DoesNotFit { .. }) => Ok(None),
            cut => Ok(Some(cut?)),
        };
        let least = || vec![least_even(stages, |memories| work.cut(memories).is_ok()); stages];
        hiring.fit(shutdown, least, fits).await?
    } else {
        match hiring.place_now(&work, 1).await? {
            Ok(ranges) => ranges,
            // A planner looks at no dear workers, and at an estimate of what they need.
            Err(_) if any_link && hiring.fit_now(as_before)?.is_some() => return Ok(None),
            Err(_) => hiring.place(shutdown, &work, 1).await?,
        }
    };
    if ranges == uncut.former() {
        return Ok(None);
    }
    let cut: Vec<String> = ranges.iter().map(|layers| format!("{}..{}", layers.start, layers.end)).collect();
    say!("cutting the model anew, by layers {} ...", cut.join(", "));
    Ok(Some(hiring.user.recut(rest, uncut, &ranges).await?))
}

/// What can be done where nobody gives a state.
fn explained(error: ResumeError, from: u32) -> anyhow::Error {
    let withheld = from > 0 && matches!(error, ResumeError::Result(ResultError::Withheld { .. }));
    let error = anyhow::Error::from(error);
    if !withheld {
        return error;
    }
    error.context(format!(
        "the training cannot go on after {from} intervals: try again when a worker that has the states is back, or give \
         --from and a smaller number; with --from 0 it begins anew"
    ))
}

pub(super) fn show(quote: &Quote) -> String {
    output::table(&[
        ("continues", format!("job {} after {} steps", quote.continues, quote.steps_done)),
        ("steps", format!("{} in {} intervals", quote.steps, quote.intervals)),
        ("stages", quote.stages.to_string()),
        (
            "price",
            format!(
                "about {} {} of {} {} in escrow; the rest comes back",
                quote.estimate, quote.token, quote.deposit, quote.token
            ),
        ),
    ])
}
