//! What a token takes through workers, against the engine alone in this process: time that passes for the user, who
//! carries the tensors between them over the network, here the loopback interface.

use std::time::{Duration, Instant};

use anyhow::Result;
use tensorlink_model::{CachedRunner, Session, Setting};
use tensorlink_tensor::TorchEngine;
use tensorlink_user::serving::Text;

use super::alone::{choose, choosing};
use super::figure::{Figure, Goal, Unit};
use super::serving::{Cluster, step};
use super::subject::{Which, text};
use super::time::{median, millis};
use super::{Bench, Row};

/// Time through two workers against the engine alone.
const GOAL: f64 = 1.15;
/// Turns of each, and tokens of a turn: a token finds the processor's caches as the last one of its kind left them.
const TURNS: usize = 15;
const TURN: usize = 4;

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for which in bench.decoders() {
        figures.extend(of(bench, which).await?);
    }
    Ok(figures)
}

async fn of(bench: &Bench<'_>, which: Which<'_>) -> Result<Vec<Figure>> {
    let extent = bench.extent;
    let engine = bench.engine()?;
    let (weights, model, mut runner) = tokio::task::block_in_place(|| -> Result<_> {
        let subject = which.open(extent, engine.device())?;
        let model = subject.quantized(Setting::default())?;
        let runner = choosing(engine, &model)?;
        Ok((subject.name, model, runner))
    })?;
    let vocabulary = model.architecture().vocabulary;
    let (turns, lengths) = (extent.rounds(TURNS), extent.lengths());
    let longest = lengths[1] + ((turns + 1) * TURN) as u32;
    let one = Cluster::start(bench, &model, 1, longest).await?;
    let two = Cluster::start(bench, &model, 2, longest).await?;
    drop(model);
    let mut figures = Vec::new();
    for count in lengths {
        let ids = text(count, vocabulary);
        let mut alone = tokio::task::block_in_place(|| Alone::begin(&mut runner, &ids))?;
        let (mut single, mut both) = (Decoding::begin(&one, &ids).await?, Decoding::begin(&two, &ids).await?);
        // The first turn of each is not counted.
        for turn in 0..=turns {
            tokio::task::block_in_place(|| alone.turn(turn > 0))?;
            single.turn(turn > 0).await?;
            both.turn(turn > 0).await?;
        }
        let [alone, single, both] =
            [&mut alone.times, &mut single.times, &mut both.times].map(|times| millis(median(times)));
        let figure = |what: &str, (ours, theirs): (f64, f64), goal| {
            let what = format!("{weights}: time of the token after {count} through {what}");
            let figure = Figure::new(Row::Pipeline, what, (ours / theirs, Unit::Times), goal);
            figure.from(format!("{ours:.2} ms against {theirs:.2}"))
        };
        figures.extend([
            figure("2 workers, against the engine alone", (both, alone), Some(Goal::AtMost(GOAL))),
            figure("1 worker, against the engine alone", (single, alone), None),
            figure("2 workers, against 1", (both, single), None),
        ]);
    }
    one.stop().await?;
    two.stop().await?;
    Ok(figures)
}

/// A text that the engine goes on with in this process.
struct Alone<'a> {
    runner: &'a mut CachedRunner<TorchEngine>,
    session: Session<TorchEngine>,
    /// The last token chosen.
    token: u32,
    times: Vec<Duration>,
}

impl<'a> Alone<'a> {
    fn begin(runner: &'a mut CachedRunner<TorchEngine>, ids: &[u32]) -> Result<Self> {
        let session = runner.session()?;
        let mut alone = Self { runner, session, token: 0, times: Vec::new() };
        alone.token = choose(alone.runner, &mut alone.session, ids)?;
        Ok(alone)
    }

    fn turn(&mut self, counts: bool) -> Result<()> {
        for _ in 0..TURN {
            let start = Instant::now();
            self.token = choose(self.runner, &mut self.session, &[self.token])?;
            if counts {
                self.times.push(start.elapsed());
            }
        }
        Ok(())
    }
}

/// A text that workers go on with.
struct Decoding {
    text: Text,
    /// The last token chosen.
    token: u32,
    times: Vec<Duration>,
}

impl Decoding {
    async fn begin(cluster: &Cluster, ids: &[u32]) -> Result<Self> {
        let mut text = cluster.begin().await?;
        let (token, _) = step(&mut text, ids, false).await?;
        Ok(Self { text, token, times: Vec::new() })
    }

    async fn turn(&mut self, counts: bool) -> Result<()> {
        for _ in 0..TURN {
            let (token, took) = step(&mut self.text, &[self.token], false).await?;
            self.token = token;
            if counts {
                self.times.push(took);
            }
        }
        Ok(())
    }
}
