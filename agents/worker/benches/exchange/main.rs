//! What sharing a step's sequences gains over a long line:
//! `OMP_NUM_THREADS=1 cargo bench -p tensorlink-worker --bench exchange`.
//!
//! A decoder learns the King James text, first on one worker with all sequences, then on two with half of them each, by
//! the worker's own code and network, with commitments. Between the two is a line of 100 Mbit/s and 20 ms each way
//! (`MEGABITS`, `DELAY` in ms). `WIDTH`, `LAYERS`, `CONTEXT` and `SEQUENCES` are the model's and its step's: gradients
//! cross once a step, however many sequences they are of. `cargo test --benches` takes a step or two of a tiny model.

#[path = "../support/mod.rs"]
mod support;

use std::error::Error;
use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::json;
use tensorlink_node::interval::{self, Span};
use tensorlink_num::Tensor;
use tensorlink_program::{CheckedProgram, StageExecutor};
use tensorlink_proof::commit::tensor_root;
use tensorlink_tensor::{Device, TorchEngine};
use tensorlink_training::calibrate::{Calibration, job_key};
use tensorlink_training::data::text::Text;
use tensorlink_training::model::language::Origin;
use tensorlink_training::{CompiledStage, Dataset, LanguageModel, Training, init};
use tensorlink_types::{Address, B256, TensorType};
use tensorlink_worker::training::boundary::{Neighbour, Neighbours};
use tensorlink_worker::training::link::Link;
use tensorlink_worker::training::schedule;
use tokio_util::sync::CancellationToken;

use self::support::line::Line;
use self::support::nodes::{Nodes, limit};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Of the time of two workers, the share that is work.
const GOAL: f64 = 0.8;

fn setting(name: &str, otherwise: u32) -> Result<u32> {
    Ok(std::env::var(name).map_or(Ok(otherwise), |value| value.parse()).map_err(|e| format!("{name}: {e}"))?)
}

/// A worker's part of the job.
struct Part {
    number: u16,
    parts: u16,
    stage: CompiledStage,
    state: Vec<Tensor>,
    neighbours: Neighbours,
}

/// What a part came to.
struct Done {
    /// Of each step but the first, which finds no memory to use again.
    steps: Vec<Duration>,
    state_root: B256,
}

impl Part {
    /// Takes steps, as a lane does in an interval.
    fn run(mut self, steps: u32) -> Result<Done> {
        let program = CheckedProgram::new(self.stage.program)?;
        let schedule = schedule::of_program(&program, self.number, self.parts);
        let engine = TorchEngine::new(Device::Cpu)?;
        let mut executor = StageExecutor::new(engine, program, &self.stage.constants, &self.state, job_key(1), [])?;
        let mut ends = Vec::new();
        let span = Span { first_step: 0, steps };
        let outcome = interval::run(&mut executor, span, &schedule, &mut self.neighbours, |_, _| {
            ends.push(Instant::now());
            Ok(())
        })?;
        let steps = ends.windows(2).filter_map(|pair| Some(pair.last()?.duration_since(*pair.first()?))).collect();
        Ok(Done { steps, state_root: outcome.state_root })
    }
}

/// The parts of a training, not yet connected.
fn parts(training: &Training, calibration: &Calibration, data: &Dataset) -> Result<Vec<Part>> {
    let cut = training.cut(&[u64::MAX / 64; 2])?;
    let compiled = training.compile(calibration, &data.training, &cut, tensor_root)?;
    let count = u16::try_from(compiled.len())?;
    let part = |(number, stage): (u16, CompiledStage)| {
        let state = init::state(&stage.program, &training.state)?;
        Ok(Part { number, parts: count, stage, state, neighbours: Neighbours::default() })
    };
    (0..count).zip(compiled).map(part).collect()
}

/// Connects two parts over a line.
async fn connect(parts: &mut [Part], line: Line, stop: &CancellationToken) -> Result<Nodes> {
    let nodes = Nodes::new(u16::try_from(parts.len())?, Some(line)).await?;
    for stage in 1..parts.len() {
        let (before, after) = nodes.connect(stage).await?;
        let [previous, next] = parts.get_disjoint_mut([stage - 1, stage])?;
        let neighbour = |stream, types: &[TensorType]| {
            Ok::<_, Box<dyn Error + Send + Sync>>(Neighbour {
                address: Address::ZERO,
                link: Link::new(stream, limit(types)?, stop),
            })
        };
        previous.neighbours.next = Some(neighbour(before, &previous.stage.program.from_next)?);
        next.neighbours.previous = Some(neighbour(after, &next.stage.program.from_previous)?);
    }
    Ok(nodes)
}

/// Runs parts beside each other; tells the median of a step, and the state that all of them have.
async fn run(parts: Vec<Part>, steps: u32) -> Result<(Duration, B256)> {
    let tasks: Vec<_> = parts.into_iter().map(|part| tokio::task::spawn_blocking(move || part.run(steps))).collect();
    let (mut times, mut root) = (Vec::new(), None);
    for task in tasks {
        let done = task.await??;
        times.extend(done.steps);
        if *root.get_or_insert(done.state_root) != done.state_root {
            return Err("workers came to different states".into());
        }
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().ok_or("no step was measured")?;
    Ok((median, root.ok_or("no worker")?))
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<()> {
    // `cargo bench` passes --bench; anything else is a test of the bench itself.
    let bench = std::env::args().any(|argument| argument == "--bench");
    let [width, layers, context, sequences, steps] = if bench { [256, 4, 128, 64, 6] } else { [16, 1, 16, 2, 2] };
    let (width, layers) = (setting("WIDTH", width)?, setting("LAYERS", layers)?);
    let (sequences, steps) = (setting("SEQUENCES", sequences)?, setting("STEPS", steps)?);
    let context = setting("CONTEXT", context)?;
    let line = Line {
        rate: f64::from(setting("MEGABITS", 100)?) * 1e6,
        delay: Duration::from_millis(setting("DELAY", 20)?.into()),
    };
    let file = json!({
        "name": "exchange",
        "decoder": { "width": width, "layers": layers, "heads": 4, "kv_heads": 4,
            "hidden": width * 8 / 3, "context": context },
        "optimizer": { "learning_rate": 0.001, "warmup": 1, "weight_decay": 0.1, "clip": 1.0 },
        "sequences": sequences, "steps": steps, "operand_bits": 8, "seed": 1
    });
    let model = LanguageModel::parse("exchange", file.to_string().as_bytes())?;
    let Origin::Decoder(decoder) = model.origin() else { return Err("the model above has a decoder".into()) };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kjv-1100k.txt.gz");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path)?).read_to_end(&mut text)?;
    let data = Text::parse(&text)?.split(model.context())?;
    let rows = data.training.features.ty().dims().first().copied().unwrap_or_default();
    let alone = Training::of_language(&model, decoder, u32::try_from(data.classes.len())?, rows)?;
    let calibration = alone.calibrate(&data.training, 2, 1)?;
    let shared = alone.clone().shared(2)?;
    let all = 0..alone.layers.len();
    let whole = alone.compile(&calibration, &data.training, std::slice::from_ref(&all), tensor_root)?;
    let whole = whole.into_iter().map(|stage| {
        let state = init::state(&stage.program, &alone.state)?;
        Ok(Part { number: 0, parts: 1, stage, state, neighbours: Neighbours::default() })
    });
    let whole = whole.collect::<Result<Vec<Part>>>()?;
    let mut halves = parts(&shared, &calibration, &data)?;
    let bytes: u64 = halves.iter().flat_map(|part| &part.stage.program.from_previous).map(TensorType::byte_len).sum();
    println!(
        "{} weights, {sequences} sequences of {context} tokens a step; {:.1} MiB of gradients each way",
        alone.parameters(),
        bytes as f64 / f64::from(1 << 20)
    );

    let (one, expected) = run(whole, steps + 1).await?;
    let stop = CancellationToken::new();
    // The nodes live as long as their streams.
    let _nodes = connect(&mut halves, line, &stop).await?;
    let (two, root) = run(halves, steps + 1).await?;
    if root != expected {
        return Err("two workers came to another state than one".into());
    }
    let efficiency = one.as_secs_f64() / two.as_secs_f64() / 2.0;
    println!("one worker {:.2} s a step, two {:.2} s: the same state in the end", one.as_secs_f64(), two.as_secs_f64());
    let verdict = if efficiency >= GOAL { "met" } else { "missed" };
    println!(
        "efficiency {:.0} % at {:.0} Mbit/s, {} ms: goal of {:.0} % {verdict}",
        100.0 * efficiency,
        line.rate / 1e6,
        line.delay.as_millis(),
        100.0 * GOAL
    );
    Ok(())
}
