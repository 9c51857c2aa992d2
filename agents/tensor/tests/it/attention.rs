//! Products of transformers around every edge of the kernels' blocks, against the scalar reference.

use tensorlink_num::arbitrary::Dice;
use tensorlink_num::{Tensor, execute as reference};
use tensorlink_program::{Engine, StepContext};
use tensorlink_tensor::{Device, ElementKernel, Int8Kernel, Int16Kernel, TorchEngine};
use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};

use crate::device;

fn engines() -> Vec<TorchEngine> {
    let mut engines = device::with([
        (Int8Kernel::F32Chunks, Int16Kernel::F64, ElementKernel::HostBaseline),
        (Int8Kernel::F64, Int16Kernel::F64, ElementKernel::Torch),
        (Int8Kernel::IntMm, Int16Kernel::Int8Halves, ElementKernel::Torch),
    ]);
    // Both of the host's, or the only one of a GPU.
    let least = if device::device() == Device::Cpu { 2 } else { 1 };
    assert!(engines.len() >= least, "f32 and f64 are exact anywhere: {engines:?}");
    engines.extend(own());
    engines
}

/// Engines with our own products, as far as this processor has what they use.
fn own() -> Vec<TorchEngine> {
    device::with([
        (Int8Kernel::Amx, Int16Kernel::Amx, ElementKernel::Host),
        (Int8Kernel::Vnni, Int16Kernel::Vnni, ElementKernel::Host),
        (Int8Kernel::Avx2, Int16Kernel::Avx2, ElementKernel::Host),
    ])
}

fn ty(bits: u8, exponent: i16, dims: &[u32]) -> TensorType {
    TensorType::new(bits, exponent, dims).unwrap()
}

fn check(engines: &[TorchEngine], opcode: Opcode, operands: &[&Tensor], attributes: &[i64], output: TensorType) {
    let operand = |(i, t): (usize, &&Tensor)| Operand { source: Source::State(i as u32), ty: t.ty().clone() };
    let operands_named = operands.iter().enumerate().map(operand).collect();
    let operator = Operator { opcode, operands: operands_named, attributes: attributes.to_vec(), output };
    let context = StepContext::default();
    let due = reference(&operator, operands, &context).unwrap_or_else(|error| panic!("{operator}: {error}"));
    for engine in engines {
        let there: Vec<_> = operands.iter().map(|t| engine.import(t).unwrap()).collect();
        let there: Vec<_> = there.iter().collect();
        let out = engine.execute(&operator, &there, &context).unwrap_or_else(|error| panic!("{operator}: {error}"));
        assert_eq!(engine.export(&out).unwrap(), due, "{} on {operator}", engine.describe());
    }
}

/// Both products of attention, of so many tokens and keys and so deep heads, some of which share keys and values.
fn check_heads(
    engines: &[TorchEngine],
    dice: &mut Dice,
    (tokens, keys, depth): (u32, u32, u32),
    (heads, kv_heads): (u32, u32),
) {
    let q = dice.tensor(&ty(12, 0, &[tokens, heads * depth])).unwrap();
    let k = dice.tensor(&ty(12, 0, &[keys, kv_heads * depth])).unwrap();
    check(engines, Opcode::HeadScores, &[&q, &k], &[heads.into(), 9], ty(16, -9, &[heads, tokens, keys]));
    let p = dice.tensor(&ty(16, 0, &[heads, tokens, keys])).unwrap();
    let v = dice.tensor(&ty(12, 0, &[kv_heads * depth, keys])).unwrap();
    check(engines, Opcode::HeadMix, &[&p, &v], &[heads.into(), 15], ty(16, -15, &[tokens, heads * depth]));
}

/// Heads that share keys and values, tokens few and many, lanes that are emptied and operands that are sliced.
#[test]
fn heads_of_every_shape() {
    let engines = engines();
    let mut dice = Dice::new(1);
    let shapes = [
        (1, 1, 1, 1, 1),
        (1, 70, 64, 4, 2),
        (3, 17, 8, 2, 1),
        (12, 65, 33, 2, 2),
        (40, 100, 64, 6, 3),
        (17, 130, 20, 3, 1),
    ];
    for (tokens, keys, depth, heads, kv_heads) in shapes {
        for (bits_a, bits_b, bits_y, shift) in
            [(8, 8, 16, 5), (8, 8, 60, 0), (12, 12, 16, 9), (16, 12, 16, 15), (16, 16, 40, 3), (10, 9, 8, -2)]
        {
            let q = dice.tensor(&ty(bits_a, 0, &[tokens, heads * depth])).unwrap();
            let k = dice.tensor(&ty(bits_b, 0, &[keys, kv_heads * depth])).unwrap();
            let attributes = [heads.into(), shift];
            let scores = ty(bits_y, -shift as i16, &[heads, tokens, keys]);
            check(&engines, Opcode::HeadScores, &[&q, &k], &attributes, scores);
            let p = dice.tensor(&ty(bits_a, 0, &[heads, tokens, keys])).unwrap();
            let v = dice.tensor(&ty(bits_b, 0, &[kv_heads * depth, keys])).unwrap();
            let mixed = ty(bits_y, -shift as i16, &[tokens, heads * depth]);
            check(&engines, Opcode::HeadMix, &[&p, &v], &attributes, mixed);
        }
    }
}

/// Probabilities that end in zeros, as causal ones do, and some that are nothing else.
#[test]
fn rows_that_end_in_zeros() {
    let engines = engines();
    let mut dice = Dice::new(2);
    let (heads, tokens, keys, depth) = (2u32, 50u32, 150u32, 16u32);
    for bits in [8, 12, 16] {
        let p = dice.tensor(&ty(bits, 0, &[heads, tokens, keys])).unwrap();
        let values = p.mantissas().to_vec();
        let seen = |i: usize| (i % keys as usize) < (i / keys as usize % tokens as usize) / 7 * 20;
        let values: Vec<i64> = values.iter().enumerate().map(|(i, x)| if seen(i) { *x } else { 0 }).collect();
        let p = Tensor::from_wide(p.ty().clone(), &values).unwrap();
        let v = dice.tensor(&ty(bits, 0, &[heads * depth, keys])).unwrap();
        check(&engines, Opcode::HeadMix, &[&p, &v], &[heads.into(), 0], ty(60, 0, &[tokens, heads * depth]));
    }
}

/// Scales at their limits, parts of rows, and results both narrow and wide.
#[test]
fn scaled_products_of_every_shape() {
    let engines = engines();
    let mut dice = Dice::new(3);
    for (m, n, k, offset, row) in
        [(1, 1, 1, 0, 1), (1, 100, 300, 7, 310), (5, 33, 64, 0, 64), (13, 49, 127, 3, 131), (40, 64, 66, 100, 200)]
    {
        for (bits, bits_y, shift) in
            [(8, 16, 36), (8, 24, 33), (8, 32, 34), (8, 8, 40), (8, 60, 0), (8, 24, -3), (16, 16, 50), (12, 33, 20)]
        {
            let a = dice.tensor(&ty(bits, 0, &[m, row])).unwrap();
            let b = dice.tensor(&ty(bits, 0, &[n, k])).unwrap();
            let (r, c) = (dice.tensor(&ty(12, 0, &[m])).unwrap(), dice.tensor(&ty(9, 0, &[n])).unwrap());
            let output = ty(bits_y, -shift as i16, &[m, n]);
            check(&engines, Opcode::ScaledMatMul, &[&a, &b, &r, &c], &[offset, shift], output);
        }
        let (a, b) = (ty(8, 0, &[m, row]), ty(8, 0, &[n, k]));
        let full = |ty: TensorType, x: i64| Tensor::from_wide(ty.clone(), &vec![x; ty.elements() as usize]).unwrap();
        let (r, c) = (full(ty(17, 0, &[m]), 65535), full(ty(17, 0, &[n]), -65535));
        let operands = [&full(a, 127), &full(b, -127), &r, &c];
        check(&engines, Opcode::ScaledMatMul, &operands, &[offset, 0], ty(63, 0, &[m, n]));
        check(&engines, Opcode::ScaledMatMul, &operands, &[offset, 44], ty(16, -44, &[m, n]));
    }
}

/// Products that libtorch computes a part at a time on the host, of whole rows and of some columns.
#[test]
fn products_of_several_parts() {
    let engines = engines();
    let mut dice = Dice::new(5);
    for (bits_a, bits_b, (m, n, k)) in [(8, 8, (601, 1200, 64)), (16, 8, (300, 1100, 200)), (16, 16, (270, 260, 4096))]
    {
        let (a, b) = (dice.tensor(&ty(bits_a, 0, &[m, k])).unwrap(), dice.tensor(&ty(bits_b, 0, &[n, k])).unwrap());
        let (r, c) = (dice.tensor(&ty(12, 0, &[m])).unwrap(), dice.tensor(&ty(9, 0, &[n])).unwrap());
        if bits_a == bits_b {
            check(&engines, Opcode::MatMul, &[&a, &b], &[9], ty(16, -9, &[m, n]));
        }
        check(&engines, Opcode::ScaledMatMul, &[&a, &b, &r, &c], &[0, 30], ty(16, -30, &[m, n]));
    }
    for tokens in [300, 20] {
        check_heads(&engines, &mut dice, (tokens, 400, 16), (12, 2));
    }
}

/// Work that is shared between threads, by heads, rows and columns, in parts that come out uneven.
#[test]
fn products_on_several_threads() {
    let engine = own();
    let mut dice = Dice::new(4);
    check_heads(&engine, &mut dice, (77, 203, 64), (5, 5));
    for (m, n) in [(1u32, 2100u32), (70, 150)] {
        let (a, b) = (dice.tensor(&ty(8, 0, &[m, 2048])).unwrap(), dice.tensor(&ty(8, 0, &[n, 2040])).unwrap());
        let (r, c) = (dice.tensor(&ty(16, 0, &[m])).unwrap(), dice.tensor(&ty(16, 0, &[n])).unwrap());
        check(&engine, Opcode::ScaledMatMul, &[&a, &b, &r, &c], &[5, 40], ty(16, -40, &[m, n]));
    }
}
