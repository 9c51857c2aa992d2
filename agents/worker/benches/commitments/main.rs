//! What an honest worker's commitments cost: an interval with tensors hashed and logs signed, against one without,
//! in turns.
//!
//! `cargo bench -p tensorlink-worker` trains `examples/digits.json`, one stage a layer, by the worker's own code, first
//! over links in memory, then over streams of its network on the loopback interface, as `script/demo` does.
//! `cargo test --benches` runs a few short intervals. `cargo bench -p tensorlink-worker -- MODEL.json` takes another
//! model of the same data: hashing grows with the width of the layers, the arithmetic with its square, so wider layers
//! have smaller shares.
//!
//! Not counted on either side: writing the interval to disk, and the chain.

mod pipeline;
#[path = "../support/mod.rs"]
mod support;

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tensorlink_node::interval::{self, Boundaries, Span, Work};
use tensorlink_num::Tensor;
use tensorlink_program::StageExecutor;
use tensorlink_program::executor::ExecuteError;
use tensorlink_proof::commit::{Boundary, Contracts};
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_training::Model;
use tensorlink_types::Address;
use tensorlink_worker::training::metrics::{Measured, observed};
use tensorlink_worker::training::schedule;
use tokio_util::sync::CancellationToken;

use self::pipeline::{Links, Stage, Timed, example, pipeline};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Share of the time that commitments may take.
const GOAL: f64 = 0.05;

/// How much is trained.
#[derive(Clone, Copy)]
struct Plan {
    /// Intervals with commitments, and as many without.
    intervals: u32,
    /// Steps of an interval.
    steps: u32,
}

/// Where the time of a stage went.
#[derive(Default)]
struct Account {
    /// Time of each interval with commitments, and of each without.
    committed: Vec<Duration>,
    plain: Vec<Duration>,
    /// Of the intervals with commitments, in all.
    waiting: Duration,
    hashing: Duration,
    signing: Duration,
    /// Loss of the last interval; zero except on the last stage.
    loss: f64,
}

/// The steps of `span` as `interval::run` takes them, with nothing committed: what the arithmetic and the exchange
/// cost alone.
fn plain(
    executor: &mut StageExecutor<TorchEngine>,
    span: Span,
    schedule: &[Work],
    boundaries: &mut Timed,
    mut after_step: impl FnMut(u32, &mut StageExecutor<TorchEngine>) -> std::result::Result<(), ExecuteError>,
) -> Result<()> {
    let from_previous = executor.program().from_previous.clone();
    let from_next = executor.program().from_next.clone();
    let mut inputs = Vec::new();
    for step in span.first_step..span.first_step + span.steps {
        executor.begin_step(step)?;
        for work in schedule {
            let (from, ty, to, mb) = match *work {
                Work::Forward(mb) => (Boundary::FromPrevious, from_previous.get(mb as usize), Boundary::ToNext, mb),
                Work::Backward(mb) => (Boundary::FromNext, from_next.get(mb as usize), Boundary::ToPrevious, mb),
            };
            let input = match ty {
                Some(ty) => {
                    let data = boundaries.receive(from, step, mb)?;
                    inputs.extend_from_slice(&data);
                    Some(Tensor::from_bytes(ty.clone(), &data)?)
                }
                None => None,
            };
            let output = match work {
                Work::Forward(_) => executor.forward(mb, input.as_ref())?,
                Work::Backward(_) => executor.backward(mb, input.as_ref())?,
            };
            if let Some(output) = output {
                boundaries.send(to, step, mb, output.to_bytes().into())?;
            }
        }
        executor.update()?;
        after_step(step, executor)?;
    }
    black_box((executor.state()?, inputs));
    Ok(())
}

impl Stage {
    /// Works through all intervals, as `LaneTask` does on its thread. The first is not counted: memory and caches
    /// are cold.
    fn run(mut self, plan: Plan, contracts: &Contracts) -> Result<Account> {
        let schedule: Vec<Work> = schedule::of_program(&self.program, self.lane.stage, self.stages);
        let engine = TorchEngine::new(Device::Cpu)?;
        let seen = observed(&self.info);
        let mut executor = StageExecutor::new(engine, self.program, &self.constants, &self.state, self.key, seen)?;
        let (boundaries, mut account) = (&mut self.boundaries, Account::default());
        for interval in 0..1 + 2 * plan.intervals {
            boundaries.waiting = Duration::ZERO;
            let span = Span { first_step: interval * plan.steps, steps: plan.steps };
            let mut measured = Measured::default();
            let take = |_, executor: &mut StageExecutor<TorchEngine>| measured.take(executor, &self.info);
            let start = Instant::now();
            if interval % 2 == 1 {
                plain(&mut executor, span, &schedule, boundaries, take)?;
                account.plain.push(start.elapsed());
                continue;
            }
            let outcome = interval::run(&mut executor, span, &schedule, boundaries, take)?;
            let exchange = Instant::now();
            let (_, signing) =
                boundaries.neighbours.exchange_logs(self.lane, interval, &outcome.logs, &self.identity, contracts)?;
            let (total, exchanging) = (start.elapsed(), exchange.elapsed());
            account.loss = measured.metrics.loss();
            if interval > 0 {
                account.committed.push(total);
                account.waiting += boundaries.waiting + exchanging.saturating_sub(signing);
                account.hashing += outcome.hashing;
                account.signing += signing;
            }
        }
        Ok(account)
    }
}

/// Milliseconds.
fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<()> {
    // `cargo bench` passes --bench; anything else is a test of the bench itself.
    let bench = std::env::args().any(|argument| argument == "--bench");
    // 50 steps are the command line's default.
    let plan = if bench { Plan { intervals: 120, steps: 50 } } else { Plan { intervals: 1, steps: 2 } };
    let nowhere = Address::ZERO;
    let contracts = Contracts {
        chain_id: 1,
        jobs: nowhere,
        checkpoints: nowhere,
        channels: nowhere,
        disputes: nowhere,
        custody: nowhere,
    };
    let model = match std::env::args().skip(1).find(|argument| !argument.starts_with("--")) {
        Some(path) => Model::parse(&path, &std::fs::read(&path).map_err(|e| format!("{path}: {e}"))?)?,
        None => Model::parse("digits.json", &example("digits.json")?)?,
    };
    println!("engine: libtorch and our kernels on {}; every stage in this process", Device::Cpu);
    println!("{}: {} intervals of {} steps each way after one to warm up", model.name(), plan.intervals, plan.steps);
    println!("medians in ms an interval; means for waiting, hashing (most of it beside the steps) and signing");
    for links in [Links::Memory, Links::Loopback] {
        let (worst, loss) = measure(&model, links, plan, &contracts).await?;
        println!("training loss of the last interval: {loss:.4}");
        let verdict = match links {
            Links::Memory => "no network to share the time with, so the most it can be",
            Links::Loopback if worst <= GOAL => "goal of 5 % met",
            Links::Loopback => "goal of 5 % missed",
        };
        println!("commitments add {:.2} % to a step on the worst stage: {verdict}", 100.0 * worst);
    }
    Ok(())
}

/// Trains the pipeline; returns what commitments add on the worst stage, and the loss of the last interval.
async fn measure(model: &Model, links: Links, plan: Plan, contracts: &Contracts) -> Result<(f64, f64)> {
    let stop = CancellationToken::new();
    // The nodes live as long as their streams.
    let (stages, _nodes) = pipeline(model, links, &stop).await?;
    let contracts = *contracts;
    let tasks: Vec<_> =
        stages.into_iter().map(|stage| tokio::task::spawn_blocking(move || stage.run(plan, &contracts))).collect();
    println!("\n{links:<8}  committed   plain  overhead  waiting  hashing  signing");
    let (mut worst, mut loss) = (f64::NEG_INFINITY, 0.0);
    for (number, task) in tasks.into_iter().enumerate() {
        let account = task.await??;
        let (committed, plain) = (ms(median(account.committed)), ms(median(account.plain)));
        let [waiting, hashing, signing] =
            [account.waiting, account.hashing, account.signing].map(|time| ms(time) / f64::from(plan.intervals));
        let overhead = committed / plain - 1.0;
        println!(
            "stage {number:<2} {committed:>11.2} {plain:>7.2} {:>7.2} % {waiting:>8.2} {hashing:>8.2} {signing:>8.2}",
            100.0 * overhead
        );
        worst = worst.max(overhead);
        loss += account.loss;
    }
    Ok((worst, loss))
}
