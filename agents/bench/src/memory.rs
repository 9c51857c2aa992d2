//! What a worker of all layers holds at most, from fetching its stage to continuing a text, beyond what its process
//! held before, against the weights in integers.

use anyhow::{Context, Result};

use super::figure::{Figure, Goal, Unit};
use super::serving::{Cluster, step};
use super::subject::text;
use super::{Bench, Row};

/// Most memory against weights.
const GOAL: f64 = 1.5;
/// Tokens of a text after the prompt.
const TOKENS: u32 = 16;

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let extent = bench.extent;
    let size = extent.size();
    let model = bench.quantized()?;
    let [_, count] = extent.lengths();
    let weights = model.bytes() as f64;
    let cluster = Cluster::start(bench, &model, 1, count + TOKENS + 1).await?;
    drop(model);
    let mut text_under_way = cluster.begin().await?;
    let (mut token, _) = step(&mut text_under_way, &text(count, size.vocabulary), false).await?;
    for left in (0..TOKENS).rev() {
        (token, _) = step(&mut text_under_way, &[token], left == 0).await?;
    }
    let all = cluster.memory()?;
    let (empty, full) = all.first().context("no worker")?;
    let beyond = |bytes: u64| bytes.saturating_sub(empty.now) as f64;
    let megabytes = |bytes: f64| format!("{:.0} MB", bytes / 1e6);
    let (peak, now) = (beyond(full.peak), beyond(full.now));
    let note = format!(
        "{} for {} of weights, {} once loaded; {} before",
        megabytes(peak),
        megabytes(weights),
        megabytes(now),
        megabytes(empty.now as f64)
    );
    let what = format!("most memory of a worker that reads {count} tokens, against its weights");
    let figure = Figure::new(Row::Memory, what, (peak / weights, Unit::Times), Some(Goal::AtMost(GOAL)));
    cluster.stop().await?;
    Ok(vec![figure.from(note)])
}
