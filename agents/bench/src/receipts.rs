//! What receipts cost: texts that end with receipts and are paid by vouchers, against the same texts abandoned after
//! their last token, for which nobody hashes, signs, writes or checks anything.
//!
//! That is the difference that a user waits for: both go through the same two workers and the same network, in turns.
//! Vouchers are sent while the next text is under way, so the processor time of everybody together counts besides, a
//! pause after each text included. Not in it: two messages that tell the workers of an abandoned text, in place of the
//! two vouchers.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::figure::{Figure, Goal, Unit};
use super::serving::{Cluster, step};
use super::subject::text;
use super::time::{median, millis};
use super::{Bench, Row};

/// Share of the time that receipts may add.
const GOAL: f64 = 0.02;
/// Texts of each kind.
const ROUNDS: usize = 15;
/// Tokens of a continued text after the prompt.
const TOKENS: u32 = 64;
/// After a text: for vouchers to be paid.
const PAUSE: Duration = Duration::from_millis(50);

/// Times of texts of one kind.
#[derive(Default)]
struct Times {
    /// That passed, of each.
    passed: Vec<Duration>,
    /// Of all processors, of all texts.
    processor: Duration,
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let extent = bench.extent;
    let size = extent.size();
    let model = bench.quantized()?;
    let tokens = if extent.quick { 2 } else { TOKENS };
    let [short, long] = extent.lengths();
    let cluster = Cluster::start(bench, &model, 2, long + tokens).await?;
    drop(model);
    let texts = [
        (format!("{short} tokens read"), short, 0),
        (format!("{long} tokens read"), long, 0),
        (format!("{short} tokens read and {tokens} more"), short, tokens),
    ];
    let mut figures = Vec::new();
    for (what, count, more) in texts {
        let (mut with, mut without) = (Times::default(), Times::default());
        for round in 0..=extent.rounds(ROUNDS) {
            // A text of its own: what a worker has on disk it would not write again.
            let mut ids = text(count, size.vocabulary);
            ids.rotate_left(round % count as usize);
            // The first round of both is not counted.
            let mut spare = Times::default();
            let times = if round > 0 { &mut with } else { &mut spare };
            one(&cluster, (&ids, more), true, times).await?;
            let times = if round > 0 { &mut without } else { &mut spare };
            one(&cluster, (&ids, more), false, times).await?;
        }
        let (ours, theirs) = (millis(median(&mut with.passed)), millis(median(&mut without.passed)));
        let goal = Some(Goal::AtMost(GOAL));
        let passed = Figure::new(
            Row::Receipts,
            format!("{what}, 2 workers: time that receipts add"),
            (ours / theirs - 1.0, Unit::Share),
            goal,
        );
        figures.push(passed.from(format!("{ours:.2} ms against {theirs:.2}")));
        let (ours, theirs) = (with.processor.as_secs_f64(), without.processor.as_secs_f64());
        let processor = Figure::new(
            Row::Receipts,
            "the same: processor time of everybody, vouchers included",
            (ours / theirs - 1.0, Unit::Share),
            goal,
        );
        figures.push(processor.from(format!("{ours:.2} s against {theirs:.2}")));
    }
    cluster.stop().await?;
    Ok(figures)
}

/// A text, read and continued by so many tokens.
async fn one(cluster: &Cluster, (ids, more): (&[u32], u32), receipts: bool, times: &mut Times) -> Result<()> {
    let (processor, start) = (cluster.processor_time()?, Instant::now());
    let mut text = cluster.begin().await?;
    let (mut token, _) = step(&mut text, ids, receipts && more == 0).await?;
    for left in (0..more).rev() {
        (token, _) = step(&mut text, &[token], receipts && left == 0).await?;
    }
    times.passed.push(start.elapsed());
    drop(text);
    tokio::time::sleep(PAUSE).await;
    times.processor += cluster.processor_time()?.saturating_sub(processor);
    Ok(())
}
