//! Operators of training against their `f32` counterparts in libtorch:
//! `cargo bench -p tensorlink-tensor --bench training`.
//!
//! Tensors of a layer's weights, larger than the caches: what counts is bytes moved, of which exact state has more than
//! `f32` has.

mod common;

use std::time::Duration;

use common::{engine, execute, float, micros, noise, operator, race, ty};
use tensorlink_program::Engine;
use tensorlink_tensor::{TorchEngine, TorchTensor};
use tensorlink_types::{Opcode, TensorType};

/// Weights of a layer.
const DIMS: [u32; 2] = [1024, 4096];

fn main() {
    let engine = engine();
    println!("{}", engine.describe());
    println!("{:>34} {:>10} {:>10} {:>7} {:>7}", "operator", "exact µs", "f32 µs", "ratio", "GB/s");
    elementwise(&engine);
    optimizer(&engine);
    rows(&engine);
    moves(&engine);
    random(&engine);
}

fn of(bits: u8, exponent: i16, dims: &[u32]) -> TensorType {
    TensorType::new(bits, exponent, dims).expect("a valid type")
}

/// One line; bytes are those of operands and result, each once.
fn report<T>(
    engine: &TorchEngine,
    name: &str,
    exact: (Opcode, &[&TorchTensor], &[i64], TensorType),
    theirs: impl FnMut() -> T,
) {
    let (opcode, operands, attributes, output) = exact;
    let operator = operator(opcode, operands, attributes, output);
    let bytes: u64 = operands.iter().map(|operand| operand.ty().byte_len()).sum::<u64>() + operator.output.byte_len();
    let (exact, f32): (Duration, Duration) = race(|| execute(engine, &operator, operands), theirs);
    let (ratio, rate) = (exact.as_secs_f64() / f32.as_secs_f64(), bytes as f64 / exact.as_secs_f64() / 1e9);
    println!("{name:>34} {:>10.1} {:>10.1} {ratio:>7.2} {rate:>7.1}", micros(exact), micros(f32));
}

fn elementwise(engine: &TorchEngine) {
    let [rows, _] = DIMS;
    let (x, y, column) = (float(&DIMS), float(&DIMS), float(&[rows, 1]));
    let sum = || x.f_add(&y).expect("a sum");
    let product = || x.f_mul(&y).expect("a product");
    let of_rows = || x.f_mul(&column).expect("a product");
    for (bits, other) in [(16, 16), (32, 16), (32, 32), (62, 32)] {
        let (a, b) = (noise(engine, bits, &DIMS, 1), noise(engine, other, &DIMS, 2));
        let (few, one) = (noise(engine, 16, &[rows], 3), noise(engine, 16, &[1], 4));
        let (shift, factor) = (14, if bits > 32 { 1 } else { 1 << 12 });
        let combine: &[i64] = &[factor, -factor, shift];
        let ty = |bits| of(bits, 0, &DIMS);
        report(engine, &format!("combine {bits}, {other} | add"), (Opcode::Combine, &[&a, &b], combine, ty(bits)), sum);
        report(
            engine,
            &format!("row combine {bits} | add"),
            (Opcode::RowCombine, &[&a, &one], combine, ty(bits)),
            || x.f_add_scalar(0.1).expect("a sum"),
        );
        if bits <= 32 {
            let out = || of(bits, -14, &DIMS);
            if bits + other <= 62 {
                report(
                    engine,
                    &format!("mul {bits}, {other} | mul"),
                    (Opcode::Mul, &[&a, &b], &[shift], out()),
                    product,
                );
            }
            report(engine, &format!("row mul {bits} | mul"), (Opcode::RowMul, &[&a, &few], &[shift], out()), of_rows);
        }
    }
}

fn optimizer(engine: &TorchEngine) {
    let (x, y) = (float(&DIMS), float(&DIMS).abs());
    let adam = || {
        let root = y.f_sqrt()?.f_add_scalar(1e-8)?;
        x.f_div(&root)
    };
    for (m, v, out, bits) in [(32, 62, 16, 15), (32, 32, 16, 15), (32, 62, 32, 24), (60, 62, 32, 0)] {
        let (a, b) = (noise(engine, m, &DIMS, 5), noise(engine, v, &DIMS, 6));
        let output = of(out, bits, &DIMS);
        let attributes: &[i64] = &[bits.into(), 1 << 10];
        report(
            engine,
            &format!("ratio {m}, {v} to {out} | sqrt, div"),
            (Opcode::Ratio, &[&a, &b], attributes, output),
            adam,
        );
    }
    let s = noise(engine, 62, &[4096], 7);
    let few = float(&[4096]);
    report(engine, "shrink 62 | rsqrt", (Opcode::Shrink, &[&s], &[1 << 20, 24], of(26, 24, &[4096])), || few.rsqrt());
}

fn rows(engine: &TorchEngine) {
    let [rows, _] = DIMS;
    let (x, column) = (float(&DIMS), float(&[rows, 1]));
    for bits in [8, 16, 32] {
        let a = noise(engine, bits, &DIMS, 8);
        let max = || of(bits, 0, &[rows]);
        report(engine, &format!("row sum {bits} | sum"), (Opcode::RowSum, &[&a], &[0], of(46, 0, &[rows])), || {
            x.f_sum_dim_intlist(&[1i64][..], false, tch::Kind::Float)
        });
        report(engine, &format!("row max {bits} | amax"), (Opcode::RowMax, &[&a], &[0], max()), || {
            x.amax([1i64], false)
        });
        report(engine, &format!("row abs max {bits} | norm inf"), (Opcode::RowAbsMax, &[&a], &[], max()), || {
            x.f_norm_scalaropt_dim(f64::INFINITY, [1i64], false)
        });
        let z = noise(engine, 24, &[rows], 9);
        for out in [8, 16] {
            if bits > 8 {
                let name = format!("normalize {bits} to {out} | div");
                let places = i64::from(out) - 1;
                let output = of(out, i16::from(out) - 1, &DIMS);
                report(engine, &name, (Opcode::Normalize, &[&a, &z], &[places], output), || x.f_div(&column));
            }
        }
    }
    let a = noise(engine, 16, &DIMS, 10);
    let inverse: &[i64] = &[1, 1 << 20, 20];
    report(engine, "inverse norm 16 | var", (Opcode::InverseNorm, &[&a], inverse, of(32, 30, &[rows])), || {
        x.f_var_dim(&[1i64][..], false, false)
    });
    let a = noise(engine, 16, &[1024, 2048], 11);
    let heads = float(&[1024, 4, 4, 128]);
    report(
        engine,
        "group sum 16, 4 of 16 heads | sum",
        (Opcode::GroupSum, &[&a], &[16, 2], of(16, -2, &[1024, 512])),
        || heads.f_sum_dim_intlist(&[2i64][..], false, tch::Kind::Float),
    );
}

fn moves(engine: &TorchEngine) {
    let [rows, row] = DIMS;
    for bits in [8, 16, 32, 64] {
        let x = float(&DIMS);
        let a = noise(engine, bits, &DIMS, 12);
        let output = ty(bits, &[row, rows]);
        report(engine, &format!("transpose {bits} | transpose"), (Opcode::Transpose, &[&a], &[], output), || {
            x.f_transpose(0, 1)?.f_contiguous()
        });
    }
    // A prime number of rows and columns.
    let (a, x) = (noise(engine, 8, &[1021, 4093], 13), float(&[1021, 4093]));
    report(engine, "transpose 8, odd | transpose", (Opcode::Transpose, &[&a], &[], ty(8, &[4093, 1021])), || {
        x.f_transpose(0, 1)?.f_contiguous()
    });
    let a = noise(engine, 16, &DIMS, 14);
    let x = float(&DIMS);
    report(engine, "slice 16 | narrow", (Opcode::Slice, &[&a], &[1024], ty(16, &[rows, 1024])), || {
        x.f_narrow(1, 1024, 1024)?.f_contiguous()
    });
    let (entries, width, tokens) = (8192u32, 1024u32, 1024u32);
    let g = noise(engine, 32, &[width, tokens], 15);
    let ids = noise(engine, 14, &[tokens], 16);
    let gradient = float(&[tokens, width]);
    let places = tch::Tensor::randint(i64::from(entries), [i64::from(tokens)], (tch::Kind::Int64, tch::Device::Cpu));
    let output = ty(32, &[entries, width]);
    report(engine, "gather grad 32 | index_add", (Opcode::GatherGrad, &[&g, &ids], &[0], output), || {
        let none = tch::Tensor::f_zeros([i64::from(entries), i64::from(width)], (tch::Kind::Float, tch::Device::Cpu))?;
        none.f_index_add(0, &places, &gradient)
    });
}

fn random(engine: &TorchEngine) {
    let [rows, _] = DIMS;
    let (x, column) = (float(&DIMS), float(&[rows, 1]));
    let a = noise(engine, 16, &DIMS, 17);
    let attributes: &[i64] = &[3 << 30, 1, 1365, 10];
    report(engine, "dropout 16 | dropout", (Opcode::Dropout, &[&a], attributes, ty(16, &DIMS)), || {
        x.f_dropout(0.25, true)
    });
    let (p, z) = (noise(engine, 32, &DIMS, 18), noise(engine, 24, &[rows], 19));
    report(engine, "dither 32 to 8 | div, rand, floor", (Opcode::Dither, &[&p, &z], &[7, 1], of(8, 7, &DIMS)), || {
        x.f_div(&column)?.f_add(&x.f_rand_like()?)?.f_floor()
    });
}
