//! What an honest worker's commitments cost: hashing tensors and signing logs, against all the time an interval takes.
//!
//! `cargo bench -p tensorlink-worker` trains `examples/digits.json`, one stage a layer, by the worker's own code over links in
//! memory, and prints each stage's shares: of the whole interval, which is what the worker itself reports, and of the interval
//! without the waits for its neighbours, which is the stricter of the two. `cargo test --benches` runs two short intervals.
//! `cargo bench -p tensorlink-worker -- MODEL.json` takes another model of the same data: hashing grows with the width of the
//! layers, the arithmetic with its square, so wider layers have smaller shares.
//!
//! Not counted on either side: writing the interval to disk, and the chain.

use std::error::Error;
use std::io::Read;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tensorlink_graph::calibrate::{calibrate, job_key};
use tensorlink_graph::{CheckedProgram, Margins, Model, StageExecutor, StageInfo, Table, compile, init};
use tensorlink_node::Identity;
use tensorlink_node::interval::{self, Boundary, Span, Work};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::{Contracts, Edge, tensor_root};
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_types::{Address, JobId, JobKey, Lane, TensorType};
use tensorlink_worker::boundary::{Neighbour, Neighbours};
use tensorlink_worker::link::{Link, LinkError};
use tensorlink_worker::metrics::{Measured, observed};
use tensorlink_worker::schedule::one_forward_one_backward;
use tokio_util::sync::CancellationToken;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Share of the time that commitments may take.
const GOAL: f64 = 0.05;
/// Bytes on the way between two stages, as on a network stream.
const IN_FLIGHT: usize = 1 << 20;

/// How much is trained.
#[derive(Clone, Copy)]
struct Plan {
    intervals: u32,
    /// Steps of an interval.
    steps: u32,
}

/// Neighbours, and the time spent waiting for them.
struct Timed {
    neighbours: Neighbours,
    waiting: Duration,
}

impl Boundary for Timed {
    type Error = LinkError;

    fn receive(&mut self, edge: Edge, step: u32, micro_batch: u32) -> std::result::Result<Bytes, LinkError> {
        let start = Instant::now();
        let data = self.neighbours.receive(edge, step, micro_batch);
        self.waiting += start.elapsed();
        data
    }

    fn send(&mut self, edge: Edge, step: u32, micro_batch: u32, data: Bytes) -> std::result::Result<(), LinkError> {
        let start = Instant::now();
        let sent = self.neighbours.send(edge, step, micro_batch, data);
        self.waiting += start.elapsed();
        sent
    }
}

/// Where the time of a stage went.
#[derive(Default)]
struct Account {
    total: Duration,
    waiting: Duration,
    hashing: Duration,
    signing: Duration,
    /// Loss of the last interval; zero except on the last stage.
    loss: f64,
}

/// What a worker of one stage has.
struct Stage {
    lane: Lane,
    stages: u16,
    program: CheckedProgram,
    info: StageInfo,
    constants: Vec<Tensor>,
    state: Vec<Tensor>,
    key: JobKey,
    identity: Identity,
    border: Timed,
}

impl Stage {
    /// Works through all intervals, as `LaneTask` does on its thread. The first is not counted: memory and caches are cold.
    fn run(mut self, plan: Plan, contracts: &Contracts) -> Result<Account> {
        let schedule: Vec<Work> = one_forward_one_backward(self.lane.stage, self.stages, self.program.micro_batches);
        let engine = TorchEngine::new(Device::Cpu)?;
        let seen = observed(&self.info);
        let mut executor = StageExecutor::new(engine, self.program, &self.constants, &self.state, self.key, seen)?;
        let mut account = Account::default();
        for interval in 0..plan.intervals {
            self.border.waiting = Duration::ZERO;
            let start = Instant::now();
            let mut measured = Measured::default();
            let span = Span { first_step: interval * plan.steps, steps: plan.steps };
            let outcome = interval::run(&mut executor, span, &schedule, &mut self.border, |_, executor| {
                measured.take(executor, &self.info)
            })?;
            let exchange = Instant::now();
            let neighbours = &mut self.border.neighbours;
            let signing = neighbours.exchange_logs(self.lane, interval, &outcome.logs, &self.identity, contracts)?;
            let (total, exchanging) = (start.elapsed(), exchange.elapsed());
            account.loss = measured.metrics.loss();
            if interval > 0 {
                account.total += total;
                account.waiting += self.border.waiting + exchanging.saturating_sub(signing);
                account.hashing += outcome.hashing;
                account.signing += signing;
            }
        }
        Ok(account)
    }
}

/// A file of the examples.
fn example(name: &str) -> Result<Vec<u8>> {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    Ok(std::fs::read(&path).map_err(|e| format!("{path}: {e}"))?)
}

fn limit(ty: &Option<TensorType>) -> Result<usize> {
    Ok(usize::try_from(ty.as_ref().map_or(0, TensorType::byte_len))?)
}

/// Cuts the example into stages and connects them. Within a runtime.
fn pipeline(model: &Model, stop: &CancellationToken) -> Result<Vec<Stage>> {
    let mut csv = Vec::new();
    flate2::read::GzDecoder::new(example("digits.csv.gz")?.as_slice()).read_to_end(&mut csv)?;
    let data = Table::parse(&csv)?.split(model.operand_bits(), model.seed())?;
    let network = model.network(u32::try_from(data.scales.len())?, u32::try_from(data.classes.len())?)?;
    let weights = init::gaussian(&network, model.seed());
    let margins = Margins::for_operands(model.operand_bits());
    let calibration = calibrate(&network, &weights, &data.training, model.steps(), model.seed(), margins)?;
    let cuts: Vec<_> = (0..network.layers.len()).map(|layer| layer..layer + 1).collect();
    let compiled = compile(&network, &calibration.exponents, &data.training, &cuts, tensor_root)?;

    let count = u16::try_from(compiled.len())?;
    let mut stages: Vec<Stage> = Vec::new();
    for (number, stage) in (0..count).zip(compiled) {
        let state = init::state(&stage.program, &stage.info, &weights)?;
        let identity = Identity::new(&[u8::try_from(number + 1)?; 32])?;
        let mut neighbours = Neighbours::default();
        if let Some(previous) = stages.last_mut() {
            let (before, after) = tokio::io::duplex(IN_FLIGHT);
            let link = Link::new(Box::new(before), limit(&previous.program.from_next)?, stop);
            previous.border.neighbours.next = Some(Neighbour { address: identity.address(), link });
            let link = Link::new(Box::new(after), limit(&stage.program.from_previous)?, stop);
            neighbours.previous = Some(Neighbour { address: previous.identity.address(), link });
        }
        stages.push(Stage {
            lane: Lane { job: JobId(1), stage: number, replica: 0 },
            stages: count,
            program: CheckedProgram::new(stage.program)?,
            info: stage.info,
            constants: stage.constants,
            state,
            key: job_key(model.seed()),
            identity,
            border: Timed { neighbours, waiting: Duration::ZERO },
        });
    }
    Ok(stages)
}

fn share(part: Duration, whole: Duration) -> f64 {
    part.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<()> {
    // `cargo bench` passes --bench; anything else is a test of the bench itself.
    let bench = std::env::args().any(|argument| argument == "--bench");
    // 50 steps are the command line's default.
    let plan = if bench { Plan { intervals: 9, steps: 50 } } else { Plan { intervals: 2, steps: 2 } };
    let contracts = Contracts { chain_id: 1, jobs: Address::ZERO, checkpoints: Address::ZERO, disputes: Address::ZERO };
    let stop = CancellationToken::new();
    let model = match std::env::args().skip(1).find(|argument| !argument.starts_with("--")) {
        Some(path) => Model::parse(&path, &std::fs::read(&path).map_err(|e| format!("{path}: {e}"))?)?,
        None => Model::parse("digits.json", &example("digits.json")?)?,
    };
    let stages = pipeline(&model, &stop)?;
    println!("engine: libtorch and our kernels on {}, {} stages in one process", Device::Cpu, stages.len());
    println!("{}: {} intervals of {} steps after one to warm up", model.name(), plan.intervals - 1, plan.steps);

    let tasks: Vec<_> =
        stages.into_iter().map(|stage| tokio::task::spawn_blocking(move || stage.run(plan, &contracts))).collect();
    let (mut all, mut worst) = (Account::default(), (0_f64, 0_f64));
    println!("stage  ms/interval  waiting  hashing  signing   of all  of all but waiting");
    let print = |name: &str, a: &Account, per: u32| {
        let (commitments, busy) = (a.hashing + a.signing, a.total.saturating_sub(a.waiting));
        let (of_all, of_busy) = (share(commitments, a.total), share(commitments, busy));
        println!(
            "{name:<5} {:>12.1} {:>8.1} {:>8.2} {:>8.2} {:>7.2} % {:>17.2} %",
            a.total.as_secs_f64() * 1e3 / f64::from(per),
            a.waiting.as_secs_f64() * 1e3 / f64::from(per),
            a.hashing.as_secs_f64() * 1e3 / f64::from(per),
            a.signing.as_secs_f64() * 1e3 / f64::from(per),
            100.0 * of_all,
            100.0 * of_busy,
        );
        (of_all, of_busy)
    };
    for (number, task) in tasks.into_iter().enumerate() {
        let account = task.await??;
        let shares = print(&number.to_string(), &account, plan.intervals - 1);
        worst = (worst.0.max(shares.0), worst.1.max(shares.1));
        all.total += account.total;
        all.waiting += account.waiting;
        all.hashing += account.hashing;
        all.signing += account.signing;
        all.loss += account.loss;
    }
    print("sum", &all, plan.intervals - 1);
    println!("training loss of the last interval: {:.4}", all.loss);
    for (worst, of) in [(worst.0, "all"), (worst.1, "all but waiting")] {
        let verdict = if worst <= GOAL { "met" } else { "missed" };
        println!("goal of {:.0} % of {of}: {verdict}, the worst stage has {:.2} %", 100.0 * GOAL, 100.0 * worst);
    }
    Ok(())
}
