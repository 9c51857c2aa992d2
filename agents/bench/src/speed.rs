//! How fast an engine computes on its device: what a worker tells everybody of itself.
//!
//! What is timed is the product that every projection of a model is, by the clock and on as many threads as the engine
//! takes. For a setting's multiply-adds it has many rows, as a text that is read or a step of training. For memory it
//! has one, by more weights than caches hold, each used once, as for one more token.

use std::time::{Duration, Instant};

use anyhow::Result;
use tensorlink_model::Setting;
use tensorlink_node::Speed;
use tensorlink_node::speed::Measured;
use tensorlink_num::{Mantissas, Tensor};
use tensorlink_program::{Engine, StepContext};
use tensorlink_tensor::{TorchEngine, TorchTensor};
use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType, Width};

use super::time::by_the_clock;

/// Rows, and rows and columns of the weights, from small on.
const PRODUCTS: [(u32, [u32; 2]); 5] =
    [(16, [1024, 1024]), (64, [2048, 2048]), (512, [2048, 2048]), (1024, [4096, 4096]), (4096, [4096, 4096])];
/// A product that takes as long says how fast the device is; a shorter one is followed by the next.
const PRODUCT: Duration = Duration::from_millis(10);
/// Matrices, and their rows and columns, that one row is multiplied by: 128 MiB in all, and 512 MiB.
const READS: [(usize, [u32; 2]); 2] = [(32, [2048, 2048]), (8, [16_384, 4096])];
/// As for products: 128 MiB in this time are 67 GB a second.
const READ: Duration = Duration::from_millis(2);

/// The shortest of so many times counts, or of those that fit into so much time.
const TIMES: usize = 5;
const PATIENCE: Duration = Duration::from_millis(60);

/// Values that repeat in operands: their number is a prime, so that rows differ.
const VALUES: i64 = 4093;
/// Bits of what projections give, of their shifts of rows, and of their scales of columns.
const OUTPUT_BITS: u8 = 24;
const SHIFT_BITS: u8 = 8;
const SCALE_BITS: u8 = 18;

/// Measures an engine; takes most of a second, and keeps the device busy meanwhile.
///
/// # Errors
/// When the device fails, or what was measured cannot be.
pub fn measure(engine: &TorchEngine) -> Result<Speed> {
    let measured = Measured {
        fast: multiply_adds(engine, Setting::Fast)?,
        standard: multiply_adds(engine, Setting::Standard)?,
        reference: multiply_adds(engine, Setting::Reference)?,
        memory: memory(engine)?,
    };
    Ok(measured.try_into()?)
}

/// Multiply-adds a second of a setting's products.
fn multiply_adds(engine: &TorchEngine, setting: Setting) -> Result<u64> {
    let mut rate = 0;
    for (rows, [outputs, inputs]) in PRODUCTS {
        let product = Product::new(engine, rows, [outputs, inputs], setting)?;
        let weights = product.weights()?;
        // The first of its kind prepares what later ones use.
        product.compute(&weights)?;
        let took = shortest(engine, || product.compute(&weights).map(drop))?;
        rate = per_second(u64::from(rows) * u64::from(outputs) * u64::from(inputs), took);
        if took >= PRODUCT {
            break;
        }
    }
    Ok(rate)
}

/// Bytes of weights a second, in the default setting.
fn memory(engine: &TorchEngine) -> Result<u64> {
    let mut rate = 0;
    for (count, shape) in READS {
        let product = Product::new(engine, 1, shape, Setting::default())?;
        let weights = (0..count).map(|_| product.weights()).collect::<Result<Vec<_>>>()?;
        weights.iter().take(1).try_for_each(|weights| product.compute(weights).map(drop))?;
        let all = || weights.iter().try_for_each(|weights| product.compute(weights).map(drop));
        let took = shortest(engine, all)?;
        rate = per_second(count as u64 * product.weights.byte_len(), took);
        if took >= READ {
            break;
        }
    }
    Ok(rate)
}

/// Rounded down; of a time that no clock has measured, as if it were a nanosecond.
fn per_second(amount: u64, time: Duration) -> u64 {
    (amount as f64 / time.as_secs_f64().max(1e-9)) as u64
}

fn shortest(engine: &TorchEngine, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let (begun, mut best) = (Instant::now(), Duration::MAX);
    for _ in 0..TIMES {
        let mut done = Ok(());
        best = best.min(by_the_clock(engine.device(), || done = work()));
        done?;
        if begun.elapsed() >= PATIENCE {
            break;
        }
    }
    Ok(best)
}

/// Rows by weights, as a projection multiplies them.
struct Product<'e> {
    engine: &'e TorchEngine,
    operator: Operator,
    weights: TensorType,
    rows: TorchTensor,
    shifts: TorchTensor,
    scales: TorchTensor,
}

impl<'e> Product<'e> {
    fn new(engine: &'e TorchEngine, rows: u32, [outputs, inputs]: [u32; 2], setting: Setting) -> Result<Self> {
        let bits = match setting {
            Setting::Fast => 8,
            Setting::Standard | Setting::Reference => 16,
        };
        let types = [
            TensorType::new(bits, 0, &[rows, inputs])?,
            TensorType::new(setting.weight_bits(), 0, &[outputs, inputs])?,
            TensorType::new(SHIFT_BITS, 0, &[rows])?,
            TensorType::new(SCALE_BITS, 0, &[outputs])?,
        ];
        // As many places as sums of this length need at most.
        let places = bits + setting.weight_bits() + SCALE_BITS + 12 - OUTPUT_BITS;
        let output = TensorType::new(OUTPUT_BITS, -i16::from(places), &[rows, outputs])?;
        let operands = (0u32..).zip(&types).map(|(i, ty)| Operand { source: Source::State(i), ty: ty.clone() });
        let operator = Operator {
            opcode: Opcode::ShiftedMatMul,
            operands: operands.collect(),
            attributes: vec![0, places.into()],
            output,
        };
        let [rows, weights, shifts, scales] = types;
        let import = |tensor: Result<Tensor>| Ok::<_, anyhow::Error>(engine.import(&tensor?)?);
        let none = vec![0; usize::try_from(shifts.elements())?];
        Ok(Self {
            engine,
            operator,
            weights,
            rows: import(filled(rows))?,
            shifts: import(Tensor::from_wide(shifts, &none).map_err(Into::into))?,
            scales: import(filled(scales))?,
        })
    }

    /// Weights in memory of their own.
    fn weights(&self) -> Result<TorchTensor> {
        Ok(self.engine.import(&filled(self.weights.clone())?)?)
    }

    fn compute(&self, weights: &TorchTensor) -> Result<TorchTensor> {
        let operands = [&self.rows, weights, &self.shifts, &self.scales];
        Ok(self.engine.execute(&self.operator, &operands, &StepContext::default())?)
    }
}

/// A tensor of values from end to end of what its type holds.
fn filled(ty: TensorType) -> Result<Tensor> {
    fn repeated<T: Copy>(values: Vec<T>, elements: usize) -> Vec<T> {
        let mut all = values.repeat(elements.div_ceil(values.len()));
        all.truncate(elements);
        all
    }
    let (limit, elements) = (ty.limit(), usize::try_from(ty.elements())?);
    let values = (0..VALUES).map(|n| n * limit * 2 / (VALUES - 1) - limit);
    // SAFETY of the casts: no value is beyond what the type's bits hold.
    let mantissas = match ty.width() {
        Width::I8 => Mantissas::I8(repeated(values.map(|value| value as i8).collect(), elements)),
        Width::I16 => Mantissas::I16(repeated(values.map(|value| value as i16).collect(), elements)),
        Width::I32 => Mantissas::I32(repeated(values.map(|value| value as i32).collect(), elements)),
        Width::I64 => Mantissas::I64(repeated(values.collect(), elements)),
    };
    Ok(Tensor::new(ty, mantissas)?)
}

#[cfg(test)]
mod tests {
    use tensorlink_num::execute;
    use tensorlink_tensor::Device;

    use super::*;

    #[test]
    fn what_is_timed_are_products_as_the_reference_has_them() {
        let engine = TorchEngine::new(Device::Cpu).unwrap();
        for setting in Setting::ALL {
            let product = Product::new(&engine, 3, [5, 4096], setting).unwrap();
            let weights = product.weights().unwrap();
            let given = [&product.rows, &weights, &product.shifts, &product.scales].map(|t| engine.export(t).unwrap());
            let due = execute(&product.operator, &given.each_ref(), &StepContext::default()).unwrap();
            let found = engine.export(&product.compute(&weights).unwrap()).unwrap();
            assert_eq!(found, due, "{setting}");
            assert!(found.mantissas().to_vec().iter().any(|value| *value != 0), "{setting}: nothing was multiplied");
        }
    }

    #[test]
    fn operands_reach_both_ends_of_what_their_bits_hold() {
        for (bits, limit) in [(8, 127), (16, 32_767), (18, 131_071)] {
            let filled = filled(TensorType::new(bits, 0, &[5000]).unwrap()).unwrap();
            let ends = [0, 4092, 4093].map(|at| filled.mantissas().get(at).unwrap());
            assert_eq!(ends, [-limit, limit, -limit], "{bits} bits");
        }
    }

    #[test]
    fn twice_the_work_in_a_time_is_twice_the_rate() {
        let second = Duration::from_secs(1);
        assert_eq!([per_second(7, second), per_second(14, second), per_second(7, second / 2)], [7, 14, 14]);
        assert_eq!(per_second(7, Duration::ZERO), 7_000_000_000);
    }
}
