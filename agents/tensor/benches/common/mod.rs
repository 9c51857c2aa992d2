//! An engine on one thread, tensors for it, and the race against libtorch.

// One stopwatch for these and for `tensorlink bench`.
#[path = "../../../bench/src/time.rs"]
mod time;

use std::time::Duration;

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::Dice;
use tensorlink_program::{Engine, StepContext};
use tensorlink_tensor::{Device, TorchEngine, TorchTensor};
use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};

pub(crate) use self::time::micros;

/// Rounds of each contestant.
const ROUNDS: usize = 31;

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
pub(crate) fn race<A, B>(ours: impl FnMut() -> A, theirs: impl FnMut() -> B) -> (Duration, Duration) {
    time::race(Device::Cpu, ROUNDS, ours, theirs)
}
