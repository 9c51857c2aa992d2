//! Rules N-49 to N-51.

use tensorlink_types::Opcode;

use super::transformer::{D, is_bound, is_reduction, refuses_attribute, refuses_precision};
use super::{A, B, C, OUT, Ty, accepts, refuses, refuses_type};

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
