//! What is left of a training, ready to be posted as another job.

use anyhow::Result;
use serde::Serialize;
use tensorlink_node::bounds::Bounds;
use tensorlink_node::footprint::Footprint;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::price::price_per_interval;
use tensorlink_types::{JobId, U256};
use tensorlink_user::{Claims, JobNote, ResultError, ResumeError, Resumption, User};
use tokio_util::sync::CancellationToken;

use crate::amount::Wei;
use crate::commands::hiring::{Hiring, Work};
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

impl Rest {
    /// Chooses workers for the rest of a job after so many of its intervals. Of the deposit no more is put up than this
    /// share, unless the rest needs more.
    pub(super) async fn hire(
        hiring: &mut Hiring<'_>,
        (former, from): (&JobView, u32),
        Resumption { programs, published, bounds }: Resumption,
        share: U256,
        shutdown: &CancellationToken,
    ) -> Result<Self> {
        let (intervals, per_interval) = (former.intervals.saturating_sub(from), former.steps_per_interval);
        let needs = programs.iter().map(|program| Footprint::training(program, per_interval).alone());
        hiring.fit_programs(shutdown, needs.collect()).await?;
        let prices = hiring.prices(|stage, per_gmac| {
            programs.get(stage).and_then(|program| price_per_interval(program, per_interval, per_gmac))
        })?;
        hiring.afford_rest(&prices, intervals, share)?;
        let first_step = former.lineage.first_step + from * per_interval;
        let estimate: U256 = prices.iter().map(|price| U256::from(intervals).saturating_mul(U256::from(*price))).sum();
        let quote = Quote {
            continues: former.id,
            steps_done: first_step,
            steps: intervals * per_interval,
            intervals,
            token: hiring.token_name(),
            deposit: Wei(hiring.deposit),
            estimate: Wei(estimate),
        };
        let work = Work::training(&published, (intervals, per_interval), Some((former.id, first_step)));
        Ok(Self { work, note: published.note, prices, bounds, quote })
    }
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
        (
            "price",
            format!(
                "about {} {} of {} {} in escrow; the rest comes back",
                quote.estimate, quote.token, quote.deposit, quote.token
            ),
        ),
    ])
}
