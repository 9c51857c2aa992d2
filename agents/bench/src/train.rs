//! A training step of a decoder, against libtorch's autograd on the same shape, what hashing adds to it, and what an
//! audit takes.

use std::time::Duration;

use anyhow::{Context, Error, Result};
use tensorlink_node::files;
use tensorlink_node::interval::state_root_of;
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_roots;
use tensorlink_training::Schedule;
use tensorlink_types::TensorType;

use super::archive::Writing;
use super::audit::Audited;
use super::figure::{Figure, Goal, Unit};
use super::step::{Contest, Subject};
use super::time::{median, millis, once_everywhere};
use super::{Bench, Row};

/// Times as fast as libtorch in 32 bits, and under bfloat16's autocast.
const GOALS: [(&str, f64); 2] = [("f32", 1.5), ("bf16 autocast", 1.0)];
/// Share of the time that commitments may take.
const COMMITMENTS: f64 = 0.05;
/// Steps between two claims, unless the user sets others.
const INTERVAL: u32 = 50;
/// Rounds of hashing.
const HASHES: usize = 5;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Figure>> {
    let extent = bench.extent;
    let engine = bench.engine()?;
    let subject = Subject::new(extent.shape()).map_err(Error::from_boxed)?;
    let crossing = crossing(&subject)?;
    let audited = Audited::new(&subject)?;
    let millions = subject.training.parameters() / 1_000_000;
    let mut contest = Contest::new(&subject, engine.device(), || engine.clone()).map_err(Error::from_boxed)?;
    // Floats to begin with, in 64 bits, are the largest part of it.
    drop(subject);

    let mut times: [Vec<Duration>; 3] = Default::default();
    // The first step of each finds no memory to use again.
    for step in 0..=extent.steps() {
        let taken = contest.step(step).map_err(Error::from_boxed)?;
        if step > 0 {
            times.iter_mut().zip(taken).for_each(|(times, taken)| times.push(taken));
        }
    }
    let [exact, f32, bf16] = times.map(|mut times| median(&mut times));
    let faster = |((name, goal), theirs)| {
        let what = format!("a training step of {millions} M weights, times faster than {name}");
        Figure::faster(Row::Train, what, (exact, theirs), goal)
    };
    let mut figures: Vec<Figure> = GOALS.into_iter().zip([f32, bf16]).map(faster).collect();
    // Floats are not needed any more, and take much memory.
    let mut alone = contest.into_exact();
    let state = alone.state()?.pop().unwrap_or_default();
    let more = (extent.steps() + 1..).map(|step| Ok(alone.step(step, Schedule::OneByOne).map(drop)?));
    figures.extend(commitments(&state, &crossing, (exact, more), extent.rounds(HASHES))?);
    drop(alone);
    figures.extend(audited.figures(&engine, state, (exact, INTERVAL))?);
    Ok(figures)
}

/// Tensors that cross between the two halves of the model in a step.
fn crossing(subject: &Subject) -> Result<Vec<Tensor>> {
    let layers = subject.training.layers.len();
    let halves = subject.stages(&[0..layers / 2, layers / 2..layers]).map_err(Error::from_boxed)?;
    let [first, second] = halves.as_slice() else { return Ok(Vec::new()) };
    // What is hashed takes as long whatever is in it.
    let zeros = |ty: &TensorType| Tensor::from_wide(ty.clone(), &vec![0; ty.elements() as usize]);
    let types = second.program.from_previous.iter().chain(&first.program.from_next);
    types.map(zeros).collect::<Result<_, _>>().context("a tensor between two halves")
}

/// What two workers hash, each half of the model: both ends what crosses between them in a step, and each its state
/// once in an interval. And what they write to disk while the next interval is computed: each its state, and what
/// it received.
fn commitments(
    state: &[Tensor],
    crossing: &[Tensor],
    (step, mut steps): (Duration, impl Iterator<Item = Result<()>>),
    rounds: usize,
) -> Result<[Figure; 2]> {
    let received = files::file_len(crossing.iter().map(Tensor::ty)) * u64::from(INTERVAL);
    let writing = Writing::measure(rounds, state, received, || steps.next().unwrap_or(Ok(())))?;
    let state = time(rounds, || state_root_of(state));
    let crossing = time(rounds, || tensor_roots(crossing));
    let hashing = crossing * 2 + state / INTERVAL;
    let share = |added: Duration| added.as_secs_f64() / (step + added).as_secs_f64();
    let figure = |what: &str, added| {
        let what = format!("the same: share of {what} by 2 workers, intervals of {INTERVAL} steps");
        Figure::new(Row::Train, what, (share(added), Unit::Share), Some(Goal::AtMost(COMMITMENTS)))
    };
    let all = figure(
        "hashing, and of what auditors are shown, written to disk beside the next interval,",
        hashing + writing.added_to(step * INTERVAL) / INTERVAL,
    );
    let hashing = figure("hashing", hashing);
    let Writing { processor, elapsed, delay } = writing;
    let [state, crossing, step] = [state, crossing, step].map(millis);
    let [processor, elapsed, delay] = [processor, elapsed, delay].map(millis);
    Ok([
        hashing.from(format!("{state:.2} ms for the state, {crossing:.2} for what crosses; {step:.0} a step")),
        all.from(format!(
            "an interval is written in {elapsed:.0} ms, {processor:.0} of processors; the next is {delay:.0} longer"
        )),
    ])
}

/// The median of some rounds after a first one, which is not counted.
fn time<T>(rounds: usize, hash: impl Fn() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..=rounds).map(|_| once_everywhere(&hash)).skip(1).collect();
    median(&mut times)
}
