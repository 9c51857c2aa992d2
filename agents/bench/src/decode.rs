//! One more token after so many, keys and values being kept on both sides, against libtorch's floats; eight texts at
//! once against one.

use std::cell::RefCell;

use anyhow::Result;
use tensorlink_model::{CachedRunner, DecodeError, Session, Turn, tokens};
use tensorlink_num::Tensor;
use tensorlink_tensor::TorchEngine;

use super::figure::{Figure, Unit};
use super::floats::{Contestants, contestants};
use super::subject::{Which, text};
use super::time::{millis, race};
use super::{Bench, Row};

/// Times faster than each of the [`Floats`](super::floats::Floats).
const GOALS: [f64; 3] = [3.0, 3.0, 1.5];
/// Texts side by side.
const TEXTS: usize = 8;
/// Any token.
const NEXT: u32 = 7;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let of = bench.decoders().into_iter().map(|which| of(bench, which)).collect::<Result<Vec<_>>>()?;
    Ok(of.concat())
}

fn of(bench: &Bench<'_>, which: Which<'_>) -> Result<Vec<Figure>> {
    let extent = bench.extent;
    let Contestants { name: weights, vocabulary, device, runner, floats, .. } = contestants(bench, which)?;
    let mut runner = CachedRunner::sharing(runner)?;
    let (mut figures, rounds) = (Vec::new(), extent.rounds(15));
    for past in extent.lengths() {
        let ids = text(past, vocabulary);
        let mut sessions = texts(&mut runner, &ids)?;
        next(&mut runner, &mut sessions, past)?;
        for ((name, peer), goal) in floats.each().zip(GOALS) {
            let mut cache = peer.cache(past as usize + 1)?;
            peer.prefill(&ids, &mut cache)?;
            let theirs = || {
                cache.truncate(past as usize);
                peer.decode(NEXT, &mut cache)
            };
            let times = race(device, rounds, || next(&mut runner, &mut sessions[..1], past), theirs);
            let what = format!("{weights}: the token after {past}, times faster than {name}");
            figures.push(Figure::faster(Row::Decode, what, times, goal));
        }
        let mut alone = texts(&mut runner, &ids)?;
        let shared = RefCell::new(&mut runner);
        let (all, one) = race(
            device,
            rounds,
            || next(&mut shared.borrow_mut(), &mut sessions, past),
            || next(&mut shared.borrow_mut(), &mut alone[..1], past),
        );
        let (all, one) = (millis(all), millis(one));
        let what = format!("{weights}: the token after {past}, {TEXTS} texts at once: tokens in the same time");
        let figure = Figure::new(Row::Decode, what, (TEXTS as f64 * one / all, Unit::Times), None);
        figures.push(figure.from(format!("{all:.2} ms against {one:.2} for one")));
    }
    Ok(figures)
}

/// Texts that begin alike.
fn texts(runner: &mut CachedRunner<TorchEngine>, ids: &[u32]) -> Result<Vec<Session<TorchEngine>>> {
    let rows = tokens(ids)?;
    let text = |_| {
        let mut session = runner.session()?;
        runner.advance(&mut [Turn { session: &mut session, rows: &rows, controls: None }])?;
        Ok(session)
    };
    (0..TEXTS).map(text).collect()
}

/// One more token of each text, after so many.
fn next(
    runner: &mut CachedRunner<TorchEngine>,
    sessions: &mut [Session<TorchEngine>],
    past: u32,
) -> Result<Vec<Tensor>> {
    let rows = tokens(&[NEXT])?;
    sessions.iter_mut().try_for_each(|session| session.cut_back(past))?;
    let turn = |session| Turn { session, rows: &rows, controls: None };
    let computed: Result<_, DecodeError> = runner.advance(&mut sessions.iter_mut().map(turn).collect::<Vec<_>>());
    Ok(computed?)
}
