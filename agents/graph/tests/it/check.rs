//! The program checker against programs with one thing wrong.

use tensorlink_graph::{ProgramError, Table, check};
use tensorlink_types::{Program, Segment, Source, TensorType};

use crate::support::{Prepared, model};

fn middle() -> Program {
    let csv: String = (0..40).map(|i| format!("{},{},{}\n", i % 7, i % 5, i % 3)).collect();
    let table = Table::parse(csv.as_bytes()).unwrap();
    let prepared = Prepared::new(&model("linear 6, relu, linear 5, relu", 8, 8, 2), &table, 5);
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
    let bare = spoiled(|p| drop(p.operators[0].operands.pop()));
    assert!(matches!(bare, ProgramError::Operator { index: 0, .. }));
}

#[test]
fn refuses_operands_that_are_not_there_whatever_the_schedule() {
    let forward1 = |p: &Program| position(p, "fc2.matmul[mb 1]");
    let matmul = |p: &Program| position(p, "fc2.matmul[mb 0]") as u32;
    for wrong in [
        Source::State(99),
        Source::Constant(0),
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
    let error = spoiled(|p| p.from_previous = None);
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
}

#[test]
fn refuses_segments_that_do_not_cover() {
    for spoil in [
        (|p: &mut Program| drop(p.segments.pop())) as fn(&mut Program),
        |p| drop(p.segments.remove(1)),
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

#[test]
fn refuses_sizes_beyond_bounds() {
    let error = spoiled(|p| p.micro_batches = 65);
    assert!(matches!(error, ProgramError::TooMany { what: "micro-batches", count: 65, limit: 64 }));
    let error = spoiled(|p| p.state = vec![p.state[0].clone(); 5000]);
    assert!(matches!(error, ProgramError::TooMany { what: "state tensors", .. }));
    let error = spoiled(|p| p.from_previous = Some(TensorType::new(8, 0, &[1 << 31, 32]).unwrap()));
    assert!(!matches!(error, ProgramError::Names { .. }), "{error}");
    let error = spoiled(|p| p.state[0].ty = TensorType::new(64, 0, &[1 << 31, 32]).unwrap());
    assert!(matches!(error, ProgramError::TooMany { what: "bytes of tensors", .. }));
    let error = spoiled(|p| drop(p.names.pop()));
    assert!(matches!(error, ProgramError::Names { .. }));
}
