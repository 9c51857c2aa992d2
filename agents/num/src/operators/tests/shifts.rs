//! Tests of rules N-49 to N-51: rows shifted by places of their own, and products of them.

use tensorlink_types::Opcode;

use super::drawing::{attribute, both, cases, in_parts, longest, output, values};
use super::meaning::{run, tensor, uniform, wide};
use super::refusing::{
    A, B, C, D, OUT, Ty, accepts, is_bound, is_reduction, refuses, refuses_attribute, refuses_precision, refuses_type,
};
use crate::arbitrary::Dice;
use crate::bounds::MIN_SHIFTED_SHIFT;

#[test]
fn row_shift() {
    let op = Opcode::RowShift;
    accepts(op, &[(64, 3, &[2, 3, 4096])], &[2], (8, 0, &[2, 3]));
    accepts(op, &[(24, 3, &[2, 8192])], &[16], (64, 0, &[2, 2]));
    for bits in [1, 65] {
        refuses_attribute("bits", op, &[(24, 3, &[2, 8])], &[bits], (8, 0, &[2]));
    }
    refuses_type(OUT, op, &[(24, 3, &[2, 8])], &[16], (7, 0, &[2]));
    refuses_type(OUT, op, &[(24, 3, &[2, 8])], &[16], (8, 3, &[2]));
    refuses_type(OUT, op, &[(24, 3, &[2, 8])], &[16], (8, 0, &[3]));
    assert!(is_reduction(refuses(op, &[(24, 0, &[4097])], &[16], (8, 0, &[1]))));
}

#[test]
fn shift_rows() {
    let op = Opcode::ShiftRows;
    let (a, s, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((24, 9, &[2, 3, 8]), (8, 0, &[2, 3]), (16, 9, &[2, 3, 8]));
    accepts(op, &[a, s], &[], y);
    accepts(op, &[a, (64, 0, &[6])], &[], (64, 9, &[2, 3, 8]));
    accepts(op, &[(63, 9, &[2, 3, 8]), s], &[], y);
    assert!(is_bound(refuses(op, &[(64, 9, &[2, 3, 8]), s], &[], y)));
    refuses_type(B, op, &[a, (8, 0, &[2])], &[], y);
    refuses_type(B, op, &[a, (8, 1, &[2, 3])], &[], y);
    refuses_type(OUT, op, &[a, s], &[], (16, 8, &[2, 3, 8]));
    refuses_type(OUT, op, &[a, s], &[], (16, 9, &[6, 8]));
}

#[test]
fn shifted_mat_mul() {
    let op = Opcode::ShiftedMatMul;
    let (a, b): (Ty<'_>, Ty<'_>) = ((16, 3, &[2, 9]), (8, 4, &[5, 7]));
    let (s, c, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((8, 0, &[2, 1]), (18, 12, &[5]), (24, 9, &[2, 5]));
    for offset in [0, 1, 2] {
        accepts(op, &[a, b, s, c], &[offset, 10], y);
    }
    refuses_attribute("offset", op, &[a, b, s, c], &[3, 10], y);
    refuses_precision("shift", op, &[a, b, s, c], &[0, 9], y);
    for (shift, e) in [(-32, 51), (63, -44)] {
        accepts(op, &[a, b, s, c], &[0, shift], (24, e, &[2, 5]));
    }
    for (shift, e) in [(-33, 52), (64, -45)] {
        refuses_attribute("shift", op, &[a, b, s, c], &[0, shift], (24, e, &[2, 5]));
    }
    refuses_type(A, op, &[(17, 3, &[2, 9]), b, s, c], &[0, 10], y);
    refuses_type(B, op, &[(8, 3, &[2, 9]), (16, 4, &[5, 7]), s, c], &[0, 10], y);
    refuses_type(C, op, &[a, b, (8, 1, &[2]), c], &[0, 10], y);
    refuses_type(C, op, &[a, b, (8, 0, &[5]), c], &[0, 10], y);
    refuses_type(D, op, &[a, b, s, (18, 12, &[2])], &[0, 10], y);
    refuses_type(OUT, op, &[a, b, s, c], &[0, 10], (24, 9, &[5, 2]));
    // The shifts of rows do not enter the bound: words by words over 4096 leave 21 bits for c.
    let (a, b, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 0, &[1, 4096]), (16, 0, &[1, 4096]), (24, 0, &[1, 1]));
    accepts(op, &[a, b, (64, 0, &[1]), (21, 0, &[1])], &[0, 0], y);
    assert!(is_bound(refuses(op, &[a, b, (8, 0, &[1]), (22, 0, &[1])], &[0, 0], y)));
    let long: Ty<'_> = (8, 0, &[1, 4097]);
    assert!(is_reduction(refuses(op, &[long, long, (8, 0, &[1]), (8, 0, &[1])], &[0, 0], y)));
}

#[test]
fn corners_are_drawn() {
    both(Opcode::RowShift, "rows that fit", &|case| output(case).contains(&0));
    both(Opcode::RowShift, "rows that do not", &|case| output(case).iter().any(|s| *s > 0));
    both(Opcode::RowShift, "parts", &in_parts);
    for (opcode, operand) in [(Opcode::ShiftRows, 1), (Opcode::ShiftedMatMul, 2)] {
        both(opcode, "shifts below zero", &|case| values(case, operand).iter().any(|s| *s < 0));
        both(opcode, "shifts", &|case| values(case, operand).iter().any(|s| (1..31).contains(s)));
        both(opcode, "shifts beyond the largest", &|case| values(case, operand).iter().any(|s| *s > 31));
    }
    both(Opcode::ShiftedMatMul, "words by bytes", &|case| {
        case.operands[0].ty().bits() > 8 && case.operands[1].ty().bits() <= 8
    });
    both(Opcode::ShiftedMatMul, "shift to the left", &|case| attribute(case, 1) < 0);
    assert!(cases(Opcode::ShiftedMatMul).all(|case| attribute(&case, 1) >= MIN_SHIFTED_SHIFT));
    longest(Opcode::RowShift, 0);
    longest(Opcode::ShiftedMatMul, 0);
}

/// Rows that fit stay as they are; others lose the places that they have too many.
#[test]
fn rows_are_shifted_until_they_fit() {
    let rows = [[0, 0, 0], [127, -3, 1], [128, -3, 5], [-255, 255, 1], [-256, 6, 10], [1 << 20, 7, -(1 << 22)]];
    let a = tensor(24, 5, &[6, 3], rows.as_flattened());
    let shifts = run(Opcode::RowShift, &[&a], &[8], (8, 0, &[6]));
    assert_eq!(wide(&shifts), [0, 0, 1, 1, 2, 16]);
    let y = run(Opcode::ShiftRows, &[&a, &shifts], &[], (8, 5, &[6, 3]));
    // Half to even: 5/2 is 2, 255/2 is beyond 127, 6/4 is 2, 10/4 is 2.
    let shifted = [[0, 0, 0], [127, -3, 1], [64, -2, 2], [-127, 127, 0], [-64, 2, 2], [16, 0, -64]];
    assert_eq!(wide(&y), shifted.as_flattened());
    // Numbers that are no shift are taken as the nearest that is one.
    let far = tensor(64, 0, &[6], &[-1, i64::MIN + 1, 31, 32, i64::MAX, 0]);
    let far = wide(&run(Opcode::ShiftRows, &[&a, &far], &[], (24, 5, &[6, 3])));
    assert_eq!(far, [rows[0], rows[1], [0; 3], [0; 3], [0; 3], rows[5]].concat());
}

/// A product of shifted rows is that of the rows, but for what the shifts cut off.
#[test]
fn products_of_shifted_rows_are_those_of_the_rows() {
    let mut dice = Dice::new(5);
    let (a, b) = (uniform(&mut dice, 24, 10, &[4, 50]), uniform(&mut dice, 8, 7, &[6, 50]));
    let c = uniform(&mut dice, 18, 12, &[6]);
    let shifts = run(Opcode::RowShift, &[&a], &[16], (8, 0, &[4]));
    let shifted = run(Opcode::ShiftRows, &[&a, &shifts], &[], (16, 10, &[4, 50]));
    let y = run(Opcode::ShiftedMatMul, &[&shifted, &b, &shifts, &c], &[0, 29], (64, 0, &[4, 6]));
    let (a, b, c) = (a.to_f64(), b.to_f64(), c.to_f64());
    for (i, y) in y.to_f64().into_iter().enumerate() {
        let (a, b) = (&a[i / 6 * 50..][..50], &b[i % 6 * 50..][..50]);
        let due = c[i % 6] * a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cut_off = c[i % 6].abs() * b.iter().map(|b| b.abs()).sum::<f64>() * 128.0 / 1024.0;
        assert!((y - due).abs() <= cut_off + 0.5, "{i}: {y}, not {due}");
    }
}
