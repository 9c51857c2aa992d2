//! Tests of rules N-44 and N-47: elements that are only moved.

use tensorlink_types::Opcode;

use super::drawing::{attribute, both, dim};
use super::meaning::{at, run, run_in, tensor, uniform, wide};
use super::refusing::{A, OUT, Ty, accepts, refuses_attribute, refuses_type};
use crate::arbitrary::{Case, Dice};

#[test]
fn at_step() {
    let op = Opcode::AtStep;
    accepts(op, &[(64, 9, &[5])], &[], (64, 9, &[1]));
    accepts(op, &[(64, 9, &[5, 3])], &[], (64, 9, &[3]));
    accepts(op, &[(8, 9, &[1 << 31])], &[], (8, 9, &[1]));
    accepts(op, &[(8, 9, &[1 << 31, 2])], &[], (8, 9, &[2]));
    refuses_type(A, op, &[(8, 9, &[(1 << 31) + 1])], &[], (8, 9, &[1]));
    refuses_type(A, op, &[(8, 9, &[(1 << 31) + 1, 2])], &[], (8, 9, &[2]));
    refuses_type(A, op, &[(8, 9, &[2, 5, 3])], &[], (8, 9, &[3]));
    for dims in [&[2], &[4], &[5], &[15], &[1, 3], &[5, 3]] as [&[u32]; 6] {
        refuses_type(OUT, op, &[(64, 9, &[5, 3])], &[], (64, 9, dims));
    }
    for dims in [&[5], &[1, 1]] as [&[u32]; 2] {
        refuses_type(OUT, op, &[(64, 9, &[5])], &[], (64, 9, dims));
    }
    refuses_type(OUT, op, &[(64, 9, &[5])], &[], (63, 9, &[1]));
    refuses_type(OUT, op, &[(64, 9, &[5])], &[], (64, 8, &[1]));
}

#[test]
fn slice() {
    let op = Opcode::Slice;
    let a: Ty<'_> = (64, 3, &[2, 9]);
    for (offset, length) in [(0, 9), (0, 7), (1, 7), (2, 7), (8, 1)] {
        accepts(op, &[a], &[offset], (64, 3, &[2, length]));
    }
    for (offset, length) in [(1, 9), (-1, 7), (3, 7), (9, 1), (i64::MIN, 7), (i64::MAX, 7)] {
        refuses_attribute("offset", op, &[a], &[offset], (64, 3, &[2, length]));
    }
    for dims in [&[18], &[1, 2, 9]] as [&[u32]; 2] {
        refuses_type(A, op, &[(64, 3, dims)], &[0], (64, 3, &[2, 7]));
    }
    for dims in [&[2, 10], &[3, 7], &[1, 7], &[14], &[2, 7, 1], &[1, 2, 7]] as [&[u32]; 6] {
        refuses_type(OUT, op, &[a], &[0], (64, 3, dims));
    }
    refuses_type(OUT, op, &[a], &[0], (63, 3, &[2, 7]));
    refuses_type(OUT, op, &[a], &[0], (64, 2, &[2, 7]));
}

#[test]
fn corners_of_schedules_are_drawn() {
    let op = Opcode::AtStep;
    both(op, "a step beyond the table", &|case| i64::from(case.context.step) >= dim(case, 0, 0));
    let inside = |case: &Case| (1..dim(case, 0, 0)).contains(&case.context.step.into());
    both(op, "a step within the table", &inside);
    both(op, "single elements", &|case| case.operands[0].ty().dims().len() == 1);
}

#[test]
fn corners_of_slices_are_drawn() {
    let op = Opcode::Slice;
    let slack = |case: &Case| dim(case, 0, 1) - case.operator.output.row() as i64;
    both(op, "whole rows", &|case| slack(case) == 0);
    both(op, "first part", &|case| slack(case) > 0 && attribute(case, 0) == 0);
    both(op, "last part", &|case| slack(case) > 0 && attribute(case, 0) == slack(case));
    both(op, "a part between", &|case| (1..slack(case)).contains(&attribute(case, 0)));
}

#[test]
fn a_schedule_stays_at_its_last_row() {
    let table = tensor(16, 4, &[3, 2], &[1, -2, 3, -4, 5, -6]);
    let rows = [[1, -2], [3, -4], [5, -6], [5, -6], [5, -6]];
    for (step, row) in [0, 1, 2, 3, u32::MAX].into_iter().zip(rows) {
        assert_eq!(wide(&run_in(&at(step), Opcode::AtStep, &[&table], &[], (16, 4, &[2]))), row, "{step}");
    }
    let table = tensor(16, 4, &[2], &[8, 9]);
    let one = |step| wide(&run_in(&at(step), Opcode::AtStep, &[&table], &[], (16, 4, &[1])));
    assert_eq!([one(0), one(1), one(2)], [[8], [9], [9]]);
}

#[test]
fn slices_are_where_they_lie() {
    let mut dice = Dice::new(19);
    let a = uniform(&mut dice, 16, 3, &[3, 12]);
    let slice = |offset, length: u32| wide(&run(Opcode::Slice, &[&a], &[offset], (16, 3, &[3, length])));
    let (middle, last, all) = (slice(5, 4), slice(11, 1), slice(0, 12));
    let a = wide(&a);
    assert_eq!(middle, a.chunks(12).flat_map(|row| row[5..9].to_vec()).collect::<Vec<_>>());
    assert_eq!((last, all), (vec![a[11], a[23], a[35]], a));
}
