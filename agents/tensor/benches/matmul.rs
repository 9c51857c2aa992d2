//! Exact matrix products, rescale included, against libtorch's `f32`:
//! `cargo bench -p tensorlink-tensor --bench matmul`.

mod common;

use common::{engine, execute, float, micros, noise, operator, race};
use tensorlink_program::Engine;
use tensorlink_types::{Opcode, TensorType};

/// Shapes (M, K, N) with goals: a layer over a batch, and over one row.
const SHAPES: [(u32, u32, u32); 2] = [(512, 768, 3072), (1, 4096, 4096)];
/// Shapes that are watched: smaller layers, where packing and rounding weigh more.
const OTHERS: [(u32, u32, u32); 3] = [(512, 768, 768), (1, 768, 3072), (32, 784, 128)];

/// Largest share of `f32`'s time, for int8 and int16.
const GOALS: [(u8, f64); 2] = [(8, 0.30), (16, 0.60)];

fn main() {
    let engine = engine();
    println!("{}", engine.describe());
    println!("{:>16} {:>6} {:>10} {:>10} {:>7}  goal", "M,K,N", "bits", "exact µs", "f32 µs", "ratio");
    for (i, (m, k, n)) in SHAPES.into_iter().chain(OTHERS).enumerate() {
        let (x, w) = (float(&[m, k]), float(&[n, k]).tr());
        for (bits, goal) in GOALS {
            let (a, b) = (noise(&engine, bits, &[m, k], 1), noise(&engine, bits, &[n, k], 2));
            let shift = i64::from(bits) + 4;
            let output = TensorType::new(bits, -(shift as i16), &[m, n]).expect("a valid type");
            let product = operator(Opcode::MatMul, &[&a, &b], &[shift], output);
            let (exact, f32) = race(|| execute(&engine, &product, &[&a, &b]), || x.mm(&w));
            let ratio = exact.as_secs_f64() / f32.as_secs_f64();
            let verdict = match (i < SHAPES.len(), ratio <= goal) {
                (true, true) => format!("{goal:.2} met"),
                (true, false) => format!("{goal:.2} missed"),
                (false, _) => "-".to_owned(),
            };
            let (exact, f32) = (micros(exact), micros(f32));
            let shape = format!("{m},{k},{n}");
            println!("{shape:>16} {bits:>6} {exact:>10.1} {f32:>10.1} {ratio:>7.3}  {verdict}");
        }
    }
}
