//! The program checker against programs with one thing wrong.

use proptest::prelude::*;
use serde_json::Value;
use tensorlink_num::Tensor;
use tensorlink_program::{CheckedProgram, ProgramError, Reference, StageExecutor, check};
use tensorlink_training::Table;
use tensorlink_training::calibrate::job_key;
use tensorlink_types::{Program, Segment, Source, TensorType};

use crate::support::{Prepared, model};

fn middle() -> Program {
    middle_of(2)
}

fn middle_of(micro_batches: u32) -> Program {
    let csv: String = (0..40).map(|i| format!("{},{},{}\n", i % 7, i % 5, i % 3)).collect();
    let table = Table::parse(csv.as_bytes()).unwrap();
    let prepared = Prepared::new(&model("linear 6, relu, linear 5, relu", 8, 8, micro_batches), &table, 5);
    let (program, ..) = prepared.compile(&[0..1, 1..2, 2..3]).stages.swap_remove(1);
    program.into_inner()
}

fn spoiled(change: impl FnOnce(&mut Program)) -> ProgramError {
    let mut program = middle();
    check(&program).unwrap();
    change(&mut program);
    check(&program).unwrap_err()
}

fn position(program: &Program, name: &str) -> usize {
    program.names.iter().position(|n| n == name).unwrap()
}

#[test]
fn refuses_operators_that_break_rules() {
    let shifted = spoiled(|p| {
        let index = position(p, "fc2.matmul[mb 0]");
        p.operators[index].attributes[0] += 1;
    });
    assert!(matches!(&shifted, ProgramError::Operator { name, .. } if name == "fc2.matmul[mb 0]"), "{shifted}");
    assert!(shifted.to_string().contains("N-7"), "{shifted}");
    let bare = spoiled(|p| p.operators[0].operands.clear());
    assert!(matches!(bare, ProgramError::Operator { index: 0, .. }));
}

#[test]
fn refuses_operands_that_are_not_there_whatever_the_schedule() {
    let forward1 = |p: &Program| position(p, "fc2.matmul[mb 1]");
    let matmul = |p: &Program| position(p, "fc2.matmul[mb 0]") as u32;
    for wrong in [
        Source::State(99),
        Source::Constant(99),
        Source::Output(u32::MAX),
        // Another micro-batch's boundary, and a gradient in a forward pass.
        Source::FromPrevious(0),
        Source::FromNext(1),
    ] {
        let error = spoiled(|p| {
            let index = forward1(p);
            p.operators[index].operands[0].source = wrong;
        });
        assert!(matches!(&error, ProgramError::Wiring { from, .. } if *from == wrong), "{error}");
    }
    // Forward of micro-batch 1 must not read forward of micro-batch 0, though that comes earlier in the program.
    let error = spoiled(|p| {
        let (index, other) = (position(p, "fc2.linear[mb 1]"), matmul(p));
        p.operators[index].operands[0].source = Source::Output(other);
    });
    assert!(matches!(error, ProgramError::Wiring { from: Source::Output(_), .. }));
    // Backward of micro-batch 1 may read backward of micro-batch 0, but not forward.
    let reads = |other: &str| {
        let mut program = middle();
        let (index, other) = (position(&program, "fc2.relu.grad[mb 1]"), position(&program, other) as u32);
        program.operators[index].operands[0].source = Source::Output(other);
        check(&program)
    };
    assert_eq!(reads("fc2.relu.grad[mb 0]"), Ok(()));
    assert!(matches!(reads("fc2.relu[mb 0]"), Err(ProgramError::Wiring { .. })));
    // Nothing reads itself or what comes later.
    let error = spoiled(|p| {
        let index = position(p, "fc2.relu[mb 0]");
        p.operators[index].operands[0].source = Source::Output(index as u32);
    });
    assert!(matches!(error, ProgramError::Wiring { .. }));
}

#[test]
fn refuses_types_that_lie() {
    let error = spoiled(|p| {
        let index = position(p, "fc2.weight.cast");
        p.operators[index].operands[0].source = Source::State(2);
        let exponent = p.state[0].ty.exponent();
        p.state[2].ty = TensorType::new(32, exponent + 1, p.state[0].ty.dims()).unwrap();
    });
    assert!(matches!(error, ProgramError::OperandType { operand: 0, .. }), "{error}");
    let error = spoiled(|p| p.state[0].producer = p.state[1].producer);
    assert!(matches!(error, ProgramError::State { slot: 0, .. }));
    let error = spoiled(|p| p.state[0].producer = u32::MAX);
    assert!(matches!(error, ProgramError::State { slot: 0, .. }));
    let error = spoiled(|p| p.from_previous.clear());
    assert!(matches!(error, ProgramError::Wiring { from: Source::FromPrevious(0), .. }));
}

#[test]
fn refuses_boundaries_of_the_wrong_pass() {
    for spoil in [
        (|p: &mut Program| p.to_next.reverse()) as fn(&mut Program),
        |p| p.to_next.truncate(1),
        |p| p.to_next[1] = u32::MAX,
        |p| p.to_next = p.to_previous.clone(),
    ] {
        assert!(matches!(spoiled(spoil), ProgramError::Boundary { boundary: "to_next", .. }));
    }
    let error = spoiled(|p| p.to_previous = p.to_next.clone());
    assert!(matches!(error, ProgramError::Boundary { boundary: "to_previous", .. }));
    let error = spoiled(|p| p.from_next.extend(p.from_next.clone()));
    assert_eq!(error, ProgramError::Received("from_next"));
}

#[test]
fn refuses_segments_that_do_not_cover() {
    for spoil in [
        (|p: &mut Program| p.segments.truncate(5)) as fn(&mut Program),
        |p| p.segments = p.segments.split_off(1),
        |p| p.segments.swap(1, 2),
        |p| p.segments.push(Segment::Update { operators: 0..1 }),
        |p| p.micro_batches = 1,
        |p| p.micro_batches = 3,
        |p| p.segments = vec![],
        |p| {
            if let Some(Segment::Update { operators }) = p.segments.last_mut() {
                operators.end += 1;
            }
        },
    ] {
        assert!(matches!(spoiled(spoil), ProgramError::Segments(_)));
    }
}

/// A round is over before the next one begins, and has its micro-batches in order both ways.
#[test]
fn refuses_passes_in_other_orders() {
    let (f, b) = (true, false);
    let named = |passes: [(bool, u32); 8]| {
        let mut program = middle_of(4);
        for (segment, (forward, micro_batch)) in program.segments[1..].iter_mut().zip(passes) {
            let operators = segment.operators().clone();
            *segment = if forward {
                Segment::Forward { micro_batch, operators }
            } else {
                Segment::Backward { micro_batch, operators }
            };
        }
        check(&program).unwrap_err()
    };
    for (passes, wrong) in [
        ([(f, 0), (f, 1), (b, 0), (f, 2), (b, 1), (f, 3), (b, 2), (b, 3)], 4),
        ([(f, 0), (f, 1), (f, 2), (f, 3), (b, 1), (b, 0), (b, 2), (b, 3)], 5),
        ([(f, 0), (f, 2), (f, 1), (f, 3), (b, 0), (b, 1), (b, 2), (b, 3)], 2),
        ([(f, 0), (b, 0), (b, 1), (f, 1), (f, 2), (f, 3), (b, 2), (b, 3)], 3),
        ([(b, 0), (f, 0), (f, 1), (f, 2), (f, 3), (b, 1), (b, 2), (b, 3)], 1),
    ] {
        assert_eq!(named(passes), ProgramError::Segments(wrong));
    }
    // Rounds of one and three are an order; what the operators of this program read is not there in it.
    let rounds = [(f, 0), (b, 0), (f, 1), (f, 2), (f, 3), (b, 1), (b, 2), (b, 3)];
    assert!(matches!(named(rounds), ProgramError::Wiring { .. }));
}

#[test]
fn refuses_sizes_beyond_bounds() {
    let error = spoiled(|p| p.micro_batches = 4097);
    assert!(matches!(error, ProgramError::TooMany { what: "micro-batches", count: 4097, limit: 4096 }));
    let error = spoiled(|p| p.state = vec![p.state[0].clone(); 5000]);
    assert!(matches!(error, ProgramError::TooMany { what: "state tensors", .. }));
    let error = spoiled(|p| p.from_previous[1] = TensorType::new(64, 0, &[1 << 31, 32]).unwrap());
    assert!(matches!(error, ProgramError::TooMany { what: "bytes of tensors", .. }), "{error}");
    let error = spoiled(|p| p.state[0].ty = TensorType::new(64, 0, &[1 << 31, 32]).unwrap());
    assert!(matches!(error, ProgramError::TooMany { what: "bytes of tensors", .. }));
    let error = spoiled(|p| drop(p.names.pop()));
    assert!(matches!(error, ProgramError::Names { .. }));
}

/// Every number in a JSON document.
fn numbers(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Number(_) => vec![value],
        Value::Array(items) => items.iter_mut().flat_map(numbers).collect(),
        Value::Object(fields) => fields.values_mut().flat_map(numbers).collect(),
        _ => vec![],
    }
}

/// Runs a step of a program on zeros, if it is small enough for a test.
fn run(program: CheckedProgram) {
    if check::memory(&program) > 1 << 22 {
        return;
    }
    let zeros = |ty: &TensorType| Tensor::zeros(ty.clone());
    let constants: Vec<_> = program.constants.iter().map(|slot| zeros(&slot.ty)).collect();
    let state: Vec<_> = program.state.iter().map(|slot| zeros(&slot.ty)).collect();
    let zeros = |types: &[TensorType]| types.iter().map(zeros).collect::<Vec<_>>();
    let (previous, next) = (zeros(&program.from_previous), zeros(&program.from_next));
    let mut executor = StageExecutor::new(Reference, program, &constants, &state, job_key(1), []).unwrap();
    executor.begin_step(0).unwrap();
    for mb in 0..executor.program().micro_batches {
        executor.forward(mb, previous.get(mb as usize)).unwrap();
        executor.backward(mb, next.get(mb as usize)).unwrap();
    }
    executor.update().unwrap();
}

/// What a stranger's program can be at worst: any numbers anywhere. Either the checker refuses it, or it runs to
/// its end.
#[test]
fn whatever_passes_runs() {
    let good = serde_json::to_value(middle()).unwrap();
    run(CheckedProgram::new(middle()).unwrap());
    let mut accepted = 0;
    let strategy = (any::<prop::sample::Index>(), prop_oneof![-3i64..70, any::<i64>(), Just(1 << 31), Just(4096)]);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(2000));
    let outcome = runner.run(&(strategy, any::<bool>()), |((index, number), relative)| {
        let mut document = good.clone();
        let mut fields = numbers(&mut document);
        let field = fields.swap_remove(index.index(fields.len()));
        let old = field.as_i64().unwrap_or_default();
        *field = if relative { old.wrapping_add(number.signum()) } else { number }.into();
        if let Ok(program) = serde_json::from_value::<Program>(document)
            && let Ok(program) = CheckedProgram::new(program)
        {
            run(program);
        }
        Ok(())
    });
    outcome.unwrap();
    // Some changes are harmless, such as another factor in Combine, so acceptance is exercised too.
    for (index, field) in numbers(&mut good.clone()).into_iter().enumerate() {
        let mut document = good.clone();
        *numbers(&mut document).swap_remove(index) = (field.as_i64().unwrap_or_default() + 1).into();
        let program = serde_json::from_value::<Program>(document).ok();
        accepted += u32::from(program.is_some_and(|program| check(&program).is_ok()));
    }
    assert!(accepted > 0);
}
