//! A language model's exact training step against libtorch's autograd, in `f32` and with bfloat16's autocast:
//! `cargo bench -p tensorlink-tensor --bench step`, one thread.
//!
//! 15 M weights, 4 sequences of 128 tokens; `LAYERS=17 WIDTH=1024 HIDDEN=2816 HEADS=16 VOCABULARY=4096 SEQUENCES=8` are
//! the 208 M of the benchmarks, which want 18 GB. `BITS=16` are operands of 16 bits, `ROUNDS=9` steps of each instead
//! of 5. With `-- --profile` the time of the exact steps is told by kind of operator; with `-- --calibration` two steps
//! of calibration by libtorch are timed instead, against those of the plain interpretation.

// One stopwatch for these and for `tensorlink bench`, and one model.
#[path = "../../bench/src/step.rs"]
#[allow(dead_code, reason = "not all of it is for a step alone")]
mod step;
#[path = "../../bench/src/time.rs"]
#[allow(dead_code, reason = "not all of it is for a step")]
mod time;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use tensorlink_num::Tensor;
use tensorlink_program::{Chain, Engine, EngineError, FusedAttention, StepContext};
use tensorlink_tensor::float::{FloatRun, Precision};
use tensorlink_tensor::{Device, TorchEngine, TorchTensor};
use tensorlink_training::calibrate::LEAST_STEPS;
use tensorlink_types::Operator;

use self::step::{Contest, Shape, Subject};
use self::time::{median, millis, once};

fn setting(name: &str, otherwise: u32) -> u32 {
    std::env::var(name).map_or(otherwise, |value| value.parse().expect("a number"))
}

fn shape() -> Shape {
    let small = Shape::SMALL;
    Shape {
        width: setting("WIDTH", small.width),
        layers: setting("LAYERS", small.layers),
        heads: setting("HEADS", small.heads),
        hidden: setting("HIDDEN", small.hidden),
        vocabulary: setting("VOCABULARY", small.vocabulary),
        sequences: setting("SEQUENCES", small.sequences),
        bits: setting("BITS", small.bits.into()).try_into().expect("8 or 16"),
        ..small
    }
}

fn main() {
    tch::set_num_threads(1);
    if std::env::args().any(|argument| argument == "--calibration") {
        return calibration();
    }
    let engine = TorchEngine::new(Device::Cpu).expect("an engine on the host");
    let subject = Subject::new(shape()).expect("a model");
    println!("{}; {} M weights", engine.describe(), subject.training.parameters() / 1_000_000);
    let engine = Profiled { engine, times: RefCell::default() };
    let mut contest = Contest::new(&subject, Device::Cpu, || &engine).expect("room for all three");
    drop(subject);

    let rounds = setting("ROUNDS", 5);
    let mut times: [Vec<Duration>; 3] = Default::default();
    for step in 0..=rounds {
        let taken = contest.step(step).expect("a step of each");
        // The first of each finds no memory to use again.
        if step == 0 {
            engine.times.borrow_mut().clear();
            continue;
        }
        times.iter_mut().zip(taken).for_each(|(times, taken)| times.push(taken));
    }
    let [exact, f32, bf16] = times.map(|mut times| median(&mut times));
    println!("exact {:.0} ms, f32 {:.0} ms, bf16 {:.0} ms", millis(exact), millis(f32), millis(bf16));
    let times = |theirs: Duration| theirs.as_secs_f64() / exact.as_secs_f64();
    println!("exact is {:.2} times as fast as f32, {:.2} times as bf16", times(f32), times(bf16));
    if std::env::args().any(|argument| argument == "--profile") {
        engine.report(rounds);
    }
}

/// Calibration by libtorch against the plain interpretation.
fn calibration() {
    let (training, text) = (shape().training().expect("a training"), shape().text().expect("a text"));
    let plain = || training.calibrate(&text, LEAST_STEPS, 1).expect("a calibration");
    let by_libtorch = || {
        let start = |graph, floats, state| {
            FloatRun::new(graph, &floats, state, (Device::Cpu, Precision::F32)).map_err(Into::into)
        };
        training.calibrate_by(start, &text, LEAST_STEPS, 1).expect("a calibration")
    };
    // The first finds no memory to use again.
    by_libtorch();
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..setting("ROUNDS", 3) {
        theirs.push(once(Device::Cpu, plain));
        ours.push(once(Device::Cpu, by_libtorch));
    }
    let (theirs, ours) = (median(&mut theirs), median(&mut ours));
    println!("{} M weights, {LEAST_STEPS} steps of calibration", training.parameters() / 1_000_000);
    println!("plain {:.0} ms, libtorch {:.0} ms", millis(theirs), millis(ours));
    println!("libtorch is {:.1} times as fast", theirs.as_secs_f64() / ours.as_secs_f64());
}

/// An engine whose operators are timed, by kind: how often, and for how long.
struct Profiled {
    engine: TorchEngine,
    times: RefCell<BTreeMap<String, (u32, Duration)>>,
}

impl Profiled {
    fn timed<T>(&self, kind: String, f: impl FnOnce() -> T) -> T {
        let mut result = None;
        let taken = once(Device::Cpu, || result = Some(f()));
        let mut times = self.times.borrow_mut();
        let (count, time) = times.entry(kind).or_default();
        (*count, *time) = (*count + 1, *time + taken);
        result.expect("it ran")
    }

    /// What takes longest, first.
    fn report(&self, rounds: u32) {
        let times = self.times.borrow();
        let all: Duration = times.values().map(|(_, time)| *time).sum();
        println!("{:.0} ms in operators, of each step:", millis(all / rounds));
        let mut times: Vec<_> = times.iter().collect();
        times.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
        for (kind, (count, time)) in times {
            let share = time.as_secs_f64() / all.as_secs_f64() * 100.0;
            println!("{:>9.1} ms {share:>5.1} % {:>5} × {kind}", millis(*time / rounds), count / rounds);
        }
    }
}

/// Opcode, bits of operands and of the result, and its shape.
fn kind(operator: &Operator) -> String {
    let bits: Vec<String> = operator.operands.iter().map(|operand| operand.ty.bits().to_string()).collect();
    format!("{:?} {} -> {} {:?}", operator.opcode, bits.join(" "), operator.output.bits(), operator.output.dims())
}

impl Engine for Profiled {
    type Tensor = TorchTensor;

    fn describe(&self) -> String {
        self.engine.describe()
    }

    fn import(&self, tensor: &Tensor) -> Result<TorchTensor, EngineError> {
        self.engine.import(tensor)
    }

    fn export(&self, tensor: &TorchTensor) -> Result<Tensor, EngineError> {
        self.timed("export".to_owned(), || self.engine.export(tensor))
    }

    fn execute(
        &self,
        operator: &Operator,
        operands: &[&TorchTensor],
        context: &StepContext,
    ) -> Result<TorchTensor, EngineError> {
        self.timed(kind(operator), || self.engine.execute(operator, operands, context))
    }

    fn attend(
        &self,
        attention: &FusedAttention<&Operator>,
        operands: [&TorchTensor; 4],
        context: &StepContext,
    ) -> Result<TorchTensor, EngineError> {
        self.timed("attention".to_owned(), || self.engine.attend(attention, operands, context))
    }

    fn chain(
        &self,
        chain: &Chain<&Operator>,
        operands: &[&TorchTensor],
        context: &StepContext,
    ) -> Result<Vec<TorchTensor>, EngineError> {
        let opcodes: Vec<String> = chain.links().iter().map(|link| format!("{:?}", link.operator.opcode)).collect();
        let dims = chain.links().last().map(|link| link.operator.output.dims());
        let kind = format!("{} {dims:?}", opcodes.join(", "));
        self.timed(kind, || self.engine.chain(chain, operands, context))
    }
}
