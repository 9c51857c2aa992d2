//! Timing two things against each other on a machine that is doing other work too: rounds alternate between them, what
//! counts is the processor time of this one thread, and the medians are compared.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tensorlink_graph::{Engine, StepContext};
use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::Dice;
use tensorlink_tensor::{Device, TorchEngine, TorchTensor};
use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};

/// Rounds of each contestant.
const ROUNDS: usize = 31;
/// A round repeats its contestant for about this long.
const ROUND: Duration = Duration::from_millis(20);

/// The engine under test, on one thread, libtorch included.
pub(crate) fn engine() -> TorchEngine {
    tch::set_num_threads(1);
    TorchEngine::new(Device::Cpu).expect("an engine on the host")
}

pub(crate) fn ty(bits: u8, dims: &[u32]) -> TensorType {
    TensorType::new(bits, 0, dims).expect("a valid type")
}

/// Noise of the type, on the engine.
pub(crate) fn noise(engine: &TorchEngine, bits: u8, dims: &[u32], seed: u64) -> TorchTensor {
    let ty = ty(bits, dims);
    let mut dice = Dice::new(seed);
    let values: Vec<i64> = (0..ty.elements()).map(|_| dice.range(-ty.limit(), ty.limit())).collect();
    engine.import(&Tensor::from_wide(ty, &values).expect("mantissas in range")).expect("room for it")
}

pub(crate) fn float(dims: &[u32]) -> tch::Tensor {
    let dims: Vec<i64> = dims.iter().map(|d| i64::from(*d)).collect();
    tch::Tensor::randn(dims.as_slice(), (tch::Kind::Float, tch::Device::Cpu))
}

pub(crate) fn operator(opcode: Opcode, operands: &[&TorchTensor], attributes: &[i64], output: TensorType) -> Operator {
    let named = (0u32..).zip(operands).map(|(i, t)| Operand { source: Source::State(i), ty: t.ty().clone() });
    Operator { opcode, operands: named.collect(), attributes: attributes.to_vec(), output }
}

pub(crate) fn execute(engine: &TorchEngine, operator: &Operator, operands: &[&TorchTensor]) -> TorchTensor {
    engine.execute(operator, operands, &StepContext::default()).expect("an accepted operator")
}

/// Median times of one call of each contestant.
pub(crate) fn race<A, B>(mut ours: impl FnMut() -> A, mut theirs: impl FnMut() -> B) -> (Duration, Duration) {
    fn timed<T>(f: &mut impl FnMut() -> T, calls: u32) -> Duration {
        let start = processor_time();
        for _ in 0..calls {
            black_box(f());
        }
        (processor_time() - start) / calls
    }
    let calls = |once: Duration| (ROUND.as_nanos() / once.as_nanos().max(1)).clamp(1, 10_000) as u32;
    timed(&mut ours, 1);
    timed(&mut theirs, 1);
    let (calls_ours, calls_theirs) = (calls(timed(&mut ours, 1)), calls(timed(&mut theirs, 1)));
    let mut times: (Vec<_>, Vec<_>) = Default::default();
    for _ in 0..ROUNDS {
        times.0.push(timed(&mut ours, calls_ours));
        times.1.push(timed(&mut theirs, calls_theirs));
    }
    times.0.sort();
    times.1.sort();
    (times.0[ROUNDS / 2], times.1[ROUNDS / 2])
}

/// Time this thread has spent on a processor.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
