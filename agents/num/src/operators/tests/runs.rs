//! Tests of rules N-38 and N-39: elements combined with one that stands for a run of them.

use tensorlink_types::Opcode;

use super::drawing::both;
use super::meaning::{run, uniform, wide};
use super::refusing::{
    B, COEFFICIENTS, ONE, OUT, SHIFTS, Ty, accepts, is_bound, ranges, refuses, refuses_attribute, refuses_precision,
    refuses_type,
};
use crate::arbitrary::{Case, Dice};

#[test]
fn row_combine() {
    let op = Opcode::RowCombine;
    let (a, y): (Ty<'_>, Ty<'_>) = ((8, 3, &[2, 3, 4]), (16, -9, &[2, 3, 4]));
    for dims in [&[1], &[2], &[2, 3], &[6, 1], &[24], &[4], &[2, 3, 4]] as [&[u32]; 7] {
        accepts(op, &[a, (8, 7, dims)], &[3, -5, 63], y);
    }
    for dims in [&[5], &[7], &[48]] as [&[u32]; 3] {
        refuses_type(B, op, &[a, (8, 7, dims)], &[3, -5, 63], y);
    }
    refuses_type(OUT, op, &[a, (8, 7, &[6])], &[3, -5, 63], (16, -9, &[6, 4]));
    ranges("ca", op, COEFFICIENTS, |c| (vec![c, 0, 0], [ONE; 3]));
    ranges("cb", op, COEFFICIENTS, |c| (vec![0, c, 0], [ONE; 3]));
    ranges("shift", op, SHIFTS, |shift| (vec![1, 1, shift], [ONE; 3]));
    let v: &[u32] = &[4];
    accepts(op, &[(62, 0, v), (62, 0, v)], &[1, -1, 0], (8, 0, v));
    assert!(is_bound(refuses(op, &[(63, 0, v), (62, 0, v)], &[1, -1, 0], (8, 0, v))));
    assert!(is_bound(refuses(op, &[(62, 0, v), (63, 0, v)], &[1, -1, 0], (8, 0, v))));
}

#[test]
fn row_mul() {
    let op = Opcode::RowMul;
    let (a, y): (Ty<'_>, Ty<'_>) = ((8, 3, &[2, 6]), (16, 4, &[2, 6]));
    for dims in [&[1], &[2], &[4], &[2, 6]] as [&[u32]; 4] {
        accepts(op, &[a, (8, 7, dims)], &[6], y);
    }
    refuses_type(B, op, &[a, (8, 7, &[5])], &[6], y);
    refuses_type(B, op, &[a, (8, 7, &[24])], &[6], y);
    refuses_type(OUT, op, &[a, (8, 7, &[2])], &[6], (16, 4, &[12]));
    for shift in [5, 7] {
        refuses_precision("shift", op, &[a, (8, 7, &[2])], &[shift], y);
    }
    for far in [-64, 64] {
        refuses_attribute("shift", op, &[a, (8, 1 + far as i16, &[2])], &[far], y);
    }
    accepts(op, &[(32, 3, &[2, 6]), (32, 7, &[2])], &[6], y);
    assert!(is_bound(refuses(op, &[(33, 3, &[2, 6]), (33, 7, &[2])], &[6], y)));
}

#[test]
fn corners_are_drawn() {
    let length = |case: &Case| case.operands[0].ty().elements() / case.operands[1].ty().elements();
    for opcode in [Opcode::RowCombine, Opcode::RowMul] {
        both(opcode, "an element for each", &|case| length(case) == 1);
        both(opcode, "one for all", &|case| case.operands[1].ty().elements() == 1);
        both(opcode, "runs", &|case| length(case) > 1 && case.operands[1].ty().elements() > 1);
    }
}

#[test]
fn an_element_of_the_second_stands_for_a_run_of_the_first() {
    let mut dice = Dice::new(14);
    let a = uniform(&mut dice, 12, 3, &[3, 2, 4]);
    for (count, run_length) in [(1u32, 24), (3, 8), (4, 6), (6, 4), (24, 1)] {
        let b = uniform(&mut dice, 12, 5, &[count]);
        let combined = run(Opcode::RowCombine, &[&a, &b], &[3, -7, 0], (40, 0, &[3, 2, 4]));
        let product = run(Opcode::RowMul, &[&a, &b], &[0], (40, 8, &[3, 2, 4]));
        let (a, b) = (wide(&a), wide(&b));
        for (i, (sum, product)) in wide(&combined).into_iter().zip(wide(&product)).enumerate() {
            assert_eq!((sum, product), (3 * a[i] - 7 * b[i / run_length], a[i] * b[i / run_length]), "{count} at {i}");
        }
    }
}
