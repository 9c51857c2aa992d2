//! Exact elementwise operators against their `f32` counterparts:
//! `cargo bench -p tensorlink-tensor --bench elementwise`.
//!
//! The bar is the matrix product that feeds them: (512,768,3072) in int8 takes the time that the last column
//! divides by.

mod common;

use std::time::Duration;

use common::{engine, execute, float, micros, noise, operator, race, ty};
use tensorlink_num::tables::exp2_table;
use tensorlink_program::Engine;
use tensorlink_tensor::{TorchEngine, TorchTensor};
use tensorlink_types::{Opcode, TensorType};

/// The output of the matrix product.
const DIMS: [u32; 2] = [512, 3072];

fn main() {
    let engine = engine();
    println!("{}", engine.describe());
    let (a, b) = (noise(&engine, 8, &[512, 768], 1), noise(&engine, 8, &[3072, 768], 2));
    let output = TensorType::new(8, -12, &DIMS).expect("a valid type");
    let product = operator(Opcode::MatMul, &[&a, &b], &[12], output);
    let (bar, _) = race(|| execute(&engine, &product, &[&a, &b]), || ());
    println!("{:>28} {:>10} {:>10} {:>7} {:>9}", "operator", "exact µs", "f32 µs", "ratio", "of matmul");
    let report = |name: &str, (exact, f32): (Duration, Duration)| {
        let ratio = exact.as_secs_f64() / f32.as_secs_f64();
        let share = exact.as_secs_f64() / bar.as_secs_f64();
        println!("{name:>28} {:>10.1} {:>10.1} {ratio:>7.2} {share:>9.2}", micros(exact), micros(f32));
    };
    let (x, y) = (float(&DIMS), float(&DIMS));
    for bits in [8, 16, 24] {
        let tensor = noise(&engine, bits, &DIMS, 3);
        let scale = operator(Opcode::Scale, &[&tensor], &[1, 4], ty(8, &DIMS));
        report(
            &format!("rescale {bits} to 8 | mul"),
            race(|| execute(&engine, &scale, &[&tensor]), || x.f_mul_scalar(0.1).expect("a product")),
        );
        let combine = operator(Opcode::Combine, &[&tensor, &tensor], &[64, -3, 6], ty(bits, &DIMS));
        report(
            &format!("combine {bits}, {bits} | add"),
            race(|| execute(&engine, &combine, &[&tensor, &tensor]), || x.f_add(&y).expect("a sum")),
        );
    }
    for bits in [8, 16, 24] {
        let tensor = noise(&engine, bits, &DIMS, 4);
        let table = noise(&engine, 16, &[1025], 5);
        let attributes = [i64::from(bits) - 16, -(1 << 15), 6, 6];
        let lookup = operator(Opcode::Lookup, &[&tensor, &table], &attributes, ty(8, &DIMS));
        report(
            &format!("lookup {bits} to 8 | gelu"),
            race(|| execute(&engine, &lookup, &[&tensor, &table]), || x.gelu("none")),
        );
    }
    for bits in [8, 16] {
        let logits = noise(&engine, bits, &DIMS, 6);
        let softmax = Softmax::new(&engine);
        report(
            &format!("softmax {bits} | softmax"),
            race(|| softmax.run(&engine, &logits), || x.softmax(-1, tch::Kind::Float)),
        );
    }
}

/// RowMax, ExpNeg, RowSum, Normalize.
struct Softmax {
    table: TorchTensor,
}

impl Softmax {
    fn new(engine: &TorchEngine) -> Self {
        Self { table: engine.import(&exp2_table().expect("the table")).expect("room for it") }
    }

    fn run(&self, engine: &TorchEngine, logits: &TorchTensor) -> TorchTensor {
        let [rows, _] = DIMS;
        let wide = |bits, exponent, dims: &[u32]| TensorType::new(bits, exponent, dims).expect("a valid type");
        let max = operator(Opcode::RowMax, &[logits], &[0], ty(logits.ty().bits(), &[rows]));
        let max = execute(engine, &max, &[logits]);
        let exp = operator(Opcode::ExpNeg, &[logits, &max, &self.table], &[23637, 4, 0], wide(26, 24, &DIMS));
        let exp = execute(engine, &exp, &[logits, &max, &self.table]);
        let sum = operator(Opcode::RowSum, &[&exp], &[8], wide(32, 16, &[rows]));
        let sum = execute(engine, &sum, &[&exp]);
        let normal = operator(Opcode::Normalize, &[&exp, &sum], &[7], wide(16, 15, &DIMS));
        execute(engine, &normal, &[&exp, &sum])
    }
}
