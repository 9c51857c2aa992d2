//! Every kernel that runs on this machine, against the scalar reference.

use tensorlink_num::arbitrary::{Case, Dice, case_of};
use tensorlink_num::{Tensor, execute as reference};
use tensorlink_program::{Engine, EngineError, StepContext, conformance};
use tensorlink_tensor::{Device, ElementKernel, Int8Kernel, Int16Kernel, TorchEngine};
use tensorlink_training::conformance::training;
use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};

use proptest::prelude::*;

use crate::device;

/// Engines with every kernel that is exact here; each kernel appears once at least.
fn engines() -> Vec<TorchEngine> {
    use ElementKernel::{Host, HostBaseline, Torch};
    let engines = device::with([
        (Int8Kernel::Amx, Int16Kernel::Amx, Host),
        (Int8Kernel::Vnni, Int16Kernel::Vnni, Host),
        (Int8Kernel::Avx2, Int16Kernel::Avx2, Host),
        (Int8Kernel::IntMm, Int16Kernel::Int8Halves, Torch),
        (Int8Kernel::F32Chunks, Int16Kernel::F64, HostBaseline),
        (Int8Kernel::F64, Int16Kernel::F64, Torch),
        (Int8Kernel::IntMm, Int16Kernel::Int8Halves, Host),
    ]);
    // `f32` and `f64` products are exact on any processor, `f64` ones and `_int_mm` on a GPU.
    assert!(engines.len() >= 2, "the kernels that need nothing special do not pass: {engines:?}");
    engines
}

fn run(engine: &TorchEngine, operator: &Operator, operands: &[&Tensor], context: &StepContext) -> Tensor {
    let there: Vec<_> = operands.iter().map(|t| engine.import(t).unwrap()).collect();
    let there: Vec<_> = there.iter().collect();
    let out = engine.execute(operator, &there, context).unwrap_or_else(|error| panic!("{operator}: {error}"));
    engine.export(&out).unwrap()
}

fn agree(engines: &[TorchEngine], case: &Case) {
    let Case { operator, context, .. } = case;
    let operands = case.operands();
    let due = reference(operator, &operands, context).unwrap();
    for engine in engines {
        let out = run(engine, operator, &operands, context);
        assert_eq!(out, due, "{} on {operator}", engine.describe());
    }
}

#[test]
fn every_kernel_conforms() {
    for engine in engines() {
        conformance::operators(&engine, 120).unwrap_or_else(|failure| panic!("{}: {failure}", engine.describe()));
    }
}

#[test]
fn every_kernel_trains_to_the_bits_of_the_reference() {
    for engine in engines() {
        training(|| engine.clone()).unwrap_or_else(|failure| panic!("{}: {failure}", engine.describe()));
    }
}

#[test]
fn every_opcode_on_random_cases() {
    let engines = engines();
    let config = ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    for opcode in Opcode::ALL {
        let checked = runner.run(&case_of(*opcode), |case| {
            agree(&engines, &case);
            Ok(())
        });
        checked.unwrap_or_else(|error| panic!("{opcode:?}: {error}"));
    }
}

fn ty(bits: u8, exponent: i16, dims: &[u32]) -> TensorType {
    TensorType::new(bits, exponent, dims).unwrap()
}

fn operator(opcode: Opcode, operands: &[&Tensor], attributes: &[i64], output: TensorType) -> Operator {
    let operand = |(i, t): (usize, &&Tensor)| Operand { source: Source::State(i as u32), ty: t.ty().clone() };
    Operator {
        opcode,
        operands: operands.iter().enumerate().map(operand).collect(),
        attributes: attributes.to_vec(),
        output,
    }
}

/// Matrix products around every edge of the kernels' blocks.
#[test]
fn products_of_every_shape() {
    let engines = engines();
    let mut dice = Dice::new(1);
    let shapes = [
        (1, 1, 1),
        (1, 7, 4096),
        (2, 3, 65),
        (11, 4, 64),
        (12, 48, 31),
        (13, 49, 127),
        (16, 16, 128),
        (17, 33, 63),
        (40, 97, 66),
        (33, 50, 1025),
        (12, 17, 4095),
        (64, 100, 3),
        (31, 129, 192),
        (300, 20, 4096),
    ];
    for (m, n, k) in shapes {
        for (bits_a, bits_b, bits_y, shift) in [
            (8, 8, 8, 9),
            (8, 8, 62, 0),
            (3, 8, 16, -2),
            (16, 16, 16, 20),
            (16, 16, 62, 0),
            (16, 9, 32, 3),
            (10, 10, 8, 14),
            (12, 12, 24, 2),
        ] {
            let a = dice.tensor(&ty(bits_a, 0, &[m, k])).unwrap();
            let b = dice.tensor(&ty(bits_b, 0, &[n, k])).unwrap();
            let op = operator(Opcode::MatMul, &[&a, &b], &[shift], ty(bits_y, -shift as i16, &[m, n]));
            let context = StepContext::default();
            let due = reference(&op, &[&a, &b], &context).unwrap();
            for engine in &engines {
                assert_eq!(run(engine, &op, &[&a, &b], &context), due, "{} on {op}", engine.describe());
            }
        }
    }
}

/// Sums that come as near to overflowing a lane as mantissas allow.
#[test]
fn products_of_extremes() {
    let engines = engines();
    for bits in [8, 9, 10, 11, 12, 13, 14, 15, 16] {
        let limit = ty(bits, 0, &[1]).limit();
        for (m, k) in [(1u32, 4096u32), (12, 4096), (12, 514)] {
            for (x, y) in [(limit, limit), (limit, -limit), (-limit, -limit), (128.min(limit), limit)] {
                let a = Tensor::from_wide(ty(bits, 0, &[m, k]), &vec![x; (m * k) as usize]).unwrap();
                let b = Tensor::from_wide(ty(bits, 0, &[3, k]), &vec![y; 3 * k as usize]).unwrap();
                let op = operator(Opcode::MatMul, &[&a, &b], &[0], ty(60, 0, &[m, 3]));
                for engine in &engines {
                    let out = run(engine, &op, &[&a, &b], &StepContext::default());
                    let due = vec![x * y * i64::from(k); (m * 3) as usize];
                    assert_eq!(out.mantissas().to_vec(), due, "{} on {op}: {x}·{y}", engine.describe());
                }
            }
        }
    }
}

/// Elementwise operators over several blocks, and tables that are worth computing beforehand.
#[test]
fn long_tensors() {
    let engines = engines();
    let mut dice = Dice::new(2);
    let context = StepContext::default();
    let check = |op: &Operator, operands: &[&Tensor]| {
        let due = reference(op, operands, &context).unwrap();
        for engine in &engines {
            assert_eq!(run(engine, op, operands, &context), due, "{} on {op}", engine.describe());
        }
    };
    let dims = [9, 331];
    for bits in [8, 11, 16, 24, 40] {
        let a = dice.tensor(&ty(bits, 4, &dims)).unwrap();
        let row = dice.tensor(&ty(12, 4, &[331])).unwrap();
        let column = dice.tensor(&ty(bits, 4, &[9])).unwrap();
        for out in [8, 16, 32, 50] {
            check(&operator(Opcode::Combine, &[&a, &row], &[37, -1000, 11], ty(out, 4, &dims)), &[&a, &row]);
            check(&operator(Opcode::Scale, &[&a], &[-77, 5], ty(out, 4, &dims)), &[&a]);
            check(&operator(Opcode::Mul, &[&a, &row], &[6], ty(out, 2, &dims)), &[&a, &row]);
            let table = dice.tensor(&ty(20, 10, &[65])).unwrap();
            let attributes = [i64::from(bits) - 14, -(1 << 13), 8, 9];
            check(&operator(Opcode::Lookup, &[&a, &table], &attributes, ty(out, 9, &dims)), &[&a, &table]);
            let table = dice.tensor(&ty(16, 10, &[4097])).unwrap();
            let attributes = [i64::from(bits) - 16, -(1 << 15), 4, 5];
            check(&operator(Opcode::Lookup, &[&a, &table], &attributes, ty(out, 9, &dims)), &[&a, &table]);
        }
        let z = dice.tensor(&ty(27, 4, &[9])).unwrap();
        check(&operator(Opcode::Normalize, &[&a, &z], &[10], ty(16, 10, &dims)), &[&a, &z]);
        check(&operator(Opcode::OneHotSub, &[&a, &column], &[100, 0], ty(33, 4, &dims)), &[&a, &column]);
        let table = tensorlink_num::tables::exp2_table().unwrap();
        for (causal, shift) in [(0, 2), (1, 6), (1, -3)] {
            let attributes = [23637, shift, causal];
            let exp = operator(Opcode::ExpNeg, &[&a, &column, &table], &attributes, ty(26, 24, &dims));
            check(&exp, &[&a, &column, &table]);
        }
    }
}

/// Roots next to whole numbers, up to the largest, and quotients next to halves.
#[test]
fn ratios_next_to_where_they_turn() {
    let engines = engines();
    let roots = (0..32).flat_map(|b| [(1i64 << b) - 1, 1 << b, (1 << b) + 1]).chain([3_037_000_498, 3_037_000_499]);
    let squares = roots.filter_map(|root| root.checked_mul(root)).flat_map(|x| [x - 1, x, x.saturating_add(1)]);
    let v: Vec<i64> = squares.chain([i64::MAX - 1, i64::MAX]).collect();
    let dims = [v.len() as u32];
    for (bits_m, bits, floor, bits_y) in [(32, 20, 1, 16), (32, 0, 1, 32), (60, 0, 1, 64), (24, 15, (1 << 40) - 1, 8)] {
        let limit = ty(bits_m, 0, &[1]).limit();
        // Halves of odd multiples of the divisor.
        let m = v.iter().enumerate().map(|(i, v)| {
            let (divisor, odd) = (v.max(&0).isqrt() + floor, 2 * (i as i64 % 300) - 299);
            (divisor.saturating_mul(odd) / (2 << bits) + (i as i64 % 3) - 1).clamp(-limit, limit)
        });
        let m = Tensor::from_wide(ty(bits_m, 0, &dims), &m.collect::<Vec<_>>()).unwrap();
        let v = Tensor::from_wide(ty(64, 0, &dims), &v).unwrap();
        let ratio = operator(Opcode::Ratio, &[&m, &v], &[bits, floor], ty(bits_y, bits as i16, &dims));
        let shrink = operator(Opcode::Shrink, &[&v], &[(1 << 31) - 1, 30], ty(32, 30, &dims));
        for (op, operands) in [(ratio, vec![&m, &v]), (shrink, vec![&v])] {
            let due = reference(&op, &operands, &StepContext::default()).unwrap();
            for engine in &engines {
                assert_eq!(run(engine, &op, &operands, &StepContext::default()), due, "{} on {op}", engine.describe());
            }
        }
    }
}

/// Runs shorter than vectors, as long as blocks and longer, and in words.
#[test]
fn runs_of_every_length() {
    let engines = engines();
    let mut dice = Dice::new(4);
    for run_length in [1u32, 3, 31, 32, 100, 512, 1300] {
        let dims = [5, run_length];
        for (bits, bits_y) in [(8, 16), (16, 16), (32, 32), (48, 24)] {
            let (a, b) = (dice.tensor(&ty(bits, 4, &dims)).unwrap(), dice.tensor(&ty(12, 6, &[5])).unwrap());
            let combine = operator(Opcode::RowCombine, &[&a, &b], &[37, -1000, 9], ty(bits_y, 4, &dims));
            let mul = operator(Opcode::RowMul, &[&a, &b], &[8], ty(bits_y, 2, &dims));
            for op in [combine, mul] {
                let due = reference(&op, &[&a, &b], &StepContext::default()).unwrap();
                for engine in &engines {
                    assert_eq!(
                        run(engine, &op, &[&a, &b], &StepContext::default()),
                        due,
                        "{} on {op}",
                        engine.describe()
                    );
                }
            }
        }
    }
}

/// Products large enough to be shared between threads, in parts that come out uneven.
#[test]
fn products_on_several_threads() {
    let engines = engines();
    let mut dice = Dice::new(3);
    for (bits, m, n, k) in [(8, 1, 1501, 2801), (16, 1, 1030, 2050), (8, 77, 150, 400), (16, 33, 130, 515)] {
        let a = dice.tensor(&ty(bits, 0, &[m, k])).unwrap();
        let b = dice.tensor(&ty(bits, 0, &[n, k])).unwrap();
        let op = operator(Opcode::MatMul, &[&a, &b], &[0], ty(60, 0, &[m, n]));
        let due = reference(&op, &[&a, &b], &StepContext::default()).unwrap();
        for engine in &engines {
            assert_eq!(run(engine, &op, &[&a, &b], &StepContext::default()), due, "{} on {op}", engine.describe());
        }
    }
}

#[test]
fn an_engine_chooses_exact_kernels_and_names_them() {
    let engine = device::engine();
    let description = engine.describe();
    assert!(description.contains(&device::device().to_string()) && description.contains("int8"), "{description}");
    for seed in 0..40 {
        agree(std::slice::from_ref(&engine), &Case::new(Opcode::MatMul, 12, seed).unwrap());
    }
    assert!(engine.memory().unwrap() > 0);
}

#[test]
fn misuse_is_refused() {
    let engine = device::engine();
    let context = StepContext::default();
    let a = Tensor::zeros(ty(8, 0, &[4, 6]));
    let b = Tensor::zeros(ty(8, 0, &[5, 6]));
    let op = operator(Opcode::MatMul, &[&a, &b], &[0], ty(8, 0, &[4, 5]));
    let (on_a, on_b) = (engine.import(&a).unwrap(), engine.import(&b).unwrap());
    assert!(engine.execute(&op, &[&on_a, &on_b], &context).is_ok());
    let refused = |op: &Operator, operands: &[&tensorlink_tensor::TorchTensor]| {
        matches!(engine.execute(op, operands, &context), Err(EngineError::Malformed(_)))
    };
    assert!(refused(&op, &[&on_b, &on_a]), "operands in the wrong order");
    assert!(refused(&op, &[&on_a]), "an operand missing");
    assert!(refused(&op, &[&on_a, &on_b, &on_b]), "an operand too many");
    for broken in [
        Operator { attributes: vec![], ..op.clone() },
        Operator { attributes: vec![64], ..op.clone() },
        Operator { output: ty(8, 0, &[5, 4]), ..op.clone() },
        Operator { opcode: Opcode::Relu, ..op.clone() },
    ] {
        assert!(refused(&broken, &[&on_a, &on_b]), "{broken}");
    }
    // Half a megabyte of one-element columns: a shape that the operator does not name.
    let tall = engine.import(&Tensor::zeros(ty(8, 0, &[24, 1]))).unwrap();
    assert!(refused(&op, &[&tall, &on_b]));
}

#[test]
fn host_kernels_do_not_serve_a_gpu_and_an_absent_gpu_is_named() {
    let kernels = TorchEngine::new(Device::Cpu).unwrap().kernels();
    assert!(matches!(TorchEngine::with_kernels(Device::Cuda(4096), kernels), Err(EngineError::Device(_))));
    assert!(matches!(TorchEngine::new(Device::Cuda(4096)), Err(EngineError::Device(_))));
}

/// Tensors travel between threads, as the roles that own them do.
#[test]
fn tensors_are_shared_between_threads() {
    let engine = device::engine();
    let tensor = engine.import(&Tensor::from_wide(ty(16, 0, &[3]), &[1, -2, 3]).unwrap()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(engine.export(&tensor.clone()).unwrap().mantissas().to_vec(), [1, -2, 3]));
        }
    });
}
