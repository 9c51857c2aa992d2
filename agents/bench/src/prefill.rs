//! Reading a text from nothing, logits of every token, against libtorch in 32-bit and bfloat16 floats.

use anyhow::{Result, ensure};
use tensorlink_model::tokens;

use super::figure::Figure;
use super::floats::{Contestants, contestants};
use super::subject::{Which, text};
use super::time::race;
use super::{Bench, Row};

/// Times faster than each of the [`Floats`](super::floats::Floats).
const GOALS: [f64; 3] = [2.5, 2.5, 1.0];

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let of = bench.decoders().into_iter().map(|which| of(bench, which)).collect::<Result<Vec<_>>>()?;
    Ok(of.concat())
}

fn of(bench: &Bench<'_>, which: Which<'_>) -> Result<Vec<Figure>> {
    let extent = bench.extent;
    let Contestants { name: weights, vocabulary, device, runner, host, floats } = contestants(bench, which)?;
    let mut figures = Vec::new();
    for count in extent.lengths() {
        let ids = text(count, vocabulary);
        let input = tokens(&ids)?;
        // Whether they can be computed at all, and to the same bits everywhere.
        let logits = runner.run(&input)?;
        if let Some(host) = &host {
            ensure!(
                host.run(&input)? == logits,
                "{device} computes other bits than the host: a text of {count} tokens"
            );
        }
        let rounds = extent.rounds((2000 / (count as usize + 20)).clamp(5, 31));
        for ((name, peer), goal) in floats.each().zip(GOALS) {
            peer.forward(&ids, None)?;
            let times = race(device, rounds, || runner.run(&input), || peer.forward(&ids, None));
            let what = format!("{weights}: a text of {count} tokens, times faster than {name}");
            figures.push(Figure::faster(Row::Prefill, what, times, goal));
        }
    }
    Ok(figures)
}
