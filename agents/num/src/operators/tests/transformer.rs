//! Rules N-8 and N-25 to N-31.

use tensorlink_types::Opcode;

use super::{A, B, C, OUT, Ty, accepts, refuses, refuses_type};
use crate::error::{OpError, Place};

pub(super) const D: Place = Place::Operand(3);

/// The attribute that is blamed for its range.
pub(super) fn refuses_attribute(blamed: &str, opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) {
    match refuses(opcode, operands, attributes, output) {
        OpError::Attribute { name, .. } if name == blamed => {}
        other => panic!("{opcode:?} blamed {other}, not {blamed}"),
    }
}

/// The attribute that does not fit the exponents.
pub(super) fn refuses_precision(blamed: &str, opcode: Opcode, operands: &[Ty<'_>], attributes: &[i64], output: Ty<'_>) {
    match refuses(opcode, operands, attributes, output) {
        OpError::Precision { name, .. } if name == blamed => {}
        other => panic!("{opcode:?} blamed {other}, not {blamed}"),
    }
}

pub(super) fn is_bound(error: OpError) -> bool {
    matches!(error, OpError::Bound { .. })
}

pub(super) fn is_reduction(error: OpError) -> bool {
    matches!(error, OpError::Reduction { length: 4097, .. })
}

#[test]
fn visibility() {
    let op = Opcode::RowMax;
    accepts(op, &[(8, 0, &[2, 3, 5])], &[1], (8, 0, &[6]));
    accepts(op, &[(8, 0, &[2, 3])], &[1], (8, 0, &[2]));
    refuses_type(A, op, &[(8, 0, &[5])], &[1], (8, 0, &[1]));
    accepts(op, &[(8, 0, &[5])], &[0], (8, 0, &[1]));
    for causal in [-1, 2] {
        refuses_attribute("causal", op, &[(8, 0, &[2, 3])], &[causal], (8, 0, &[2]));
    }
    let exp = |dims, max, causal| {
        refuses(Opcode::ExpNeg, &[(16, 8, dims), (16, 8, max), (26, 24, &[257])], &[23637, 6, causal], (26, 24, dims))
    };
    assert!(matches!(exp(&[2, 6], &[2], 2), OpError::Attribute { name: "causal", min: 0, max: 1, .. }));
    let error = exp(&[6], &[1], 1);
    let message = "N-20: operand 0 of ExpNeg is i16e8[6]: it must be of at least two dimensions, being causal";
    assert_eq!(error.to_string(), message);
}

#[test]
fn scaled_mat_mul() {
    let op = Opcode::ScaledMatMul;
    let (a, b): (Ty<'_>, Ty<'_>) = ((8, 3, &[2, 9]), (8, 4, &[5, 7]));
    let (r, c, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 10, &[2, 1]), (16, 12, &[5]), (16, 9, &[2, 5]));
    for offset in [0, 1, 2] {
        accepts(op, &[a, b, r, c], &[offset, 20], y);
    }
    for offset in [-1, 3, i64::MAX] {
        refuses_attribute("offset", op, &[a, b, r, c], &[offset, 20], y);
    }
    refuses_precision("shift", op, &[a, b, r, c], &[0, 19], y);
    refuses_attribute("shift", op, &[a, b, (16, 60, &[2]), c], &[0, 70], y);
    refuses_type(A, op, &[(8, 3, &[9]), b, r, c], &[0, 20], y);
    refuses_type(A, op, &[(17, 3, &[2, 9]), b, r, c], &[0, 20], y);
    accepts(op, &[(16, 3, &[2, 9]), b, r, c], &[0, 20], y);
    refuses_type(B, op, &[a, (8, 4, &[5, 7, 1]), r, c], &[0, 20], y);
    refuses_type(B, op, &[a, (9, 4, &[5, 7]), r, c], &[0, 20], y);
    refuses_type(B, op, &[a, (8, 4, &[5, 10]), r, c], &[0, 20], y);
    refuses_type(C, op, &[a, b, (16, 10, &[5]), c], &[0, 20], y);
    refuses_type(D, op, &[a, b, r, (16, 12, &[2])], &[0, 20], y);
    refuses_type(OUT, op, &[a, b, r, c], &[0, 20], (16, 9, &[5, 2]));
    refuses_type(OUT, op, &[a, b, r, c], &[0, 20], (16, 9, &[10]));
    // Only the part that is read is bounded, not the row it is read from.
    let (a, b, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((8, 0, &[1, 9000]), (8, 0, &[1, 4096]), (8, 0, &[1, 1]));
    accepts(op, &[a, b, (19, 0, &[1]), (19, 0, &[1])], &[4904, 0], y);
    assert!(is_bound(refuses(op, &[a, b, (20, 0, &[1]), (19, 0, &[1])], &[0, 0], y)));
    assert!(is_bound(refuses(op, &[a, b, (64, 0, &[1]), (64, 0, &[1])], &[0, 0], y)));
    assert!(is_reduction(refuses(op, &[a, (8, 0, &[1, 4097]), (8, 0, &[1]), (8, 0, &[1])], &[0, 0], y)));
}

#[test]
fn head_scores() {
    let op = Opcode::HeadScores;
    // Four heads of three elements, two of keys and values.
    let (q, k, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 8, &[5, 12]), (16, 9, &[7, 6]), (16, 10, &[4, 5, 7]));
    accepts(op, &[q, k], &[4, 7], y);
    refuses_precision("shift", op, &[q, k], &[4, 8], y);
    for heads in [0, -1, 13] {
        refuses_attribute("heads", op, &[q, k], &[heads, 7], y);
    }
    refuses_type(A, op, &[q, k], &[5, 7], y);
    refuses_type(A, op, &[(16, 8, &[60]), k], &[4, 7], y);
    refuses_type(A, op, &[(17, 8, &[5, 12]), k], &[4, 7], y);
    refuses_type(B, op, &[q, (8, 9, &[7, 6])], &[4, 7], y);
    refuses_type(B, op, &[q, (16, 9, &[7, 6, 1])], &[4, 7], y);
    // Not whole heads; no head; more key/value heads than heads; three for four heads.
    for row in [7, 2, 24, 9] {
        refuses_type(B, op, &[q, (16, 9, &[7, row])], &[4, 7], y);
    }
    refuses_type(OUT, op, &[q, k], &[4, 7], (16, 10, &[5, 4, 7]));
    refuses_type(OUT, op, &[q, k], &[4, 7], (16, 10, &[20, 7]));
    let long: Ty<'_> = (16, 0, &[1, 4097]);
    assert!(is_reduction(refuses(op, &[long, long], &[1, 0], (16, 0, &[1, 1, 1]))));
    let split: Ty<'_> = (16, 0, &[1, 8192]);
    accepts(op, &[split, split], &[2, 0], (16, 0, &[2, 1, 1]));
}

#[test]
fn head_mix() {
    let op = Opcode::HeadMix;
    let (p, v, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 15, &[4, 5, 7]), (16, 9, &[6, 7]), (16, 10, &[5, 12]));
    accepts(op, &[p, v], &[4, 14], y);
    refuses_precision("shift", op, &[p, v], &[4, 13], y);
    for heads in [0, 13] {
        refuses_attribute("heads", op, &[p, v], &[heads, 14], y);
    }
    refuses_type(A, op, &[p, v], &[3, 14], y);
    refuses_type(A, op, &[(16, 15, &[20, 7]), v], &[4, 14], y);
    refuses_type(A, op, &[(26, 15, &[4, 5, 7]), v], &[4, 14], y);
    refuses_type(B, op, &[p, (8, 9, &[6, 7])], &[4, 14], y);
    refuses_type(B, op, &[p, (16, 9, &[6, 8])], &[4, 14], y);
    for rows in [7, 2, 24, 9] {
        refuses_type(B, op, &[p, (16, 9, &[rows, 7])], &[4, 14], y);
    }
    refuses_type(OUT, op, &[p, v], &[4, 14], (16, 10, &[4, 12]));
    refuses_type(OUT, op, &[p, v], &[4, 14], (16, 10, &[5, 13]));
    refuses_type(OUT, op, &[p, v], &[4, 14], (16, 10, &[5, 3, 4]));
    let long = refuses(op, &[(16, 0, &[1, 1, 4097]), (16, 0, &[1, 4097])], &[1, 0], (16, 0, &[1, 1]));
    assert!(is_reduction(long));
}

#[test]
fn norm() {
    let op = Opcode::Norm;
    let (x, gain, bias, y): (Ty<'_>, Ty<'_>, Ty<'_>, Ty<'_>) =
        ((16, 9, &[2, 3, 8]), (16, 12, &[8]), (16, 10, &[1, 8]), (16, 11, &[2, 3, 8]));
    let last = (1 << 60) - 1;
    for (center, epsilon) in [(0, 1), (1, last)] {
        accepts(op, &[x, gain, bias], &[center, epsilon, 22, 21], y);
    }
    accepts(op, &[(16, 256, &[1, 4096]), (16, -20, &[4096]), (16, -40, &[4096])], &[1, 1, 40, 0], (64, 0, &[1, 4096]));
    accepts(op, &[x, gain, (16, 32, &[8])], &[1, 1, 0, 21], y);
    // Two runs in each row; runs of the longest reduction.
    accepts(op, &[x, (16, 12, &[4]), (16, 10, &[4])], &[1, 1, 22, 21], y);
    let (wide, run): (Ty<'_>, Ty<'_>) = ((8, 0, &[1, 12288]), (8, 0, &[4096]));
    accepts(op, &[wide, run, run], &[1, 1, 20, 20], wide);
    for center in [-1, 2] {
        refuses_attribute("center", op, &[x, gain, bias], &[center, 1, 22, 21], y);
    }
    for epsilon in [0, -1, last + 1] {
        refuses_attribute("epsilon", op, &[x, gain, bias], &[1, epsilon, 22, 21], y);
    }
    refuses_attribute("bias_shift", op, &[x, gain, (16, -9, &[8])], &[1, 1, 41, 21], y);
    refuses_attribute("bias_shift", op, &[x, gain, (16, 33, &[8])], &[1, 1, -1, 21], y);
    refuses_precision("bias_shift", op, &[x, gain, bias], &[1, 1, 21, 21], y);
    refuses_precision("shift", op, &[x, gain, bias], &[1, 1, 22, 20], y);
    // More bits of x: a coarser mean, and a finer normalised value.
    accepts(op, &[(20, 9, &[2, 3, 8]), gain, bias], &[1, 1, 22, 21], y);
    accepts(op, &[(22, 9, &[2, 3, 8]), gain, bias], &[1, 1, 24, 23], y);
    accepts(op, &[(24, 9, &[2, 3, 8]), gain, bias], &[1, 1, 26, 25], y);
    refuses_precision("bias_shift", op, &[(24, 9, &[2, 3, 8]), gain, bias], &[1, 1, 22, 21], y);
    refuses_type(A, op, &[(25, 9, &[2, 3, 8]), gain, bias], &[1, 1, 27, 26], y);
    refuses_type(B, op, &[x, (17, 12, &[8]), bias], &[1, 1, 22, 21], y);
    refuses_type(C, op, &[x, gain, (17, 10, &[8])], &[1, 1, 22, 21], y);
    refuses_type(B, op, &[x, (16, 12, &[6]), bias], &[1, 1, 22, 21], y);
    refuses_type(B, op, &[x, (16, 12, &[16]), (16, 10, &[16])], &[1, 1, 22, 21], y);
    for length in [6, 4, 16] {
        refuses_type(C, op, &[x, gain, (16, 10, &[length])], &[1, 1, 22, 21], y);
    }
    refuses_type(OUT, op, &[x, gain, bias], &[1, 1, 22, 21], (16, 11, &[6, 8]));
    let (x, row): (Ty<'_>, Ty<'_>) = ((8, 0, &[1, 4097]), (8, 0, &[4097]));
    assert!(is_reduction(refuses(op, &[x, row, row], &[1, 1, 20, 20], x)));
}

#[test]
fn rope() {
    let op = Opcode::Rope;
    // Three heads of five elements, of which four rotate.
    let (x, table, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 9, &[6, 15]), (16, 14, &[8, 4]), (16, 10, &[6, 15]));
    accepts(op, &[x, table], &[3, 13], y);
    accepts(op, &[(16, 9, &[2, 3, 15]), table], &[3, 13], (16, 10, &[2, 3, 15]));
    accepts(op, &[x, (16, 15, &[6, 2])], &[3, 14], y);
    accepts(op, &[x, (2, 0, &[6, 2])], &[3, -1], y);
    refuses_precision("shift", op, &[x, table], &[3, 14], y);
    for heads in [0, 16] {
        refuses_attribute("heads", op, &[x, table], &[heads, 13], y);
    }
    refuses_type(A, op, &[x, table], &[4, 13], y);
    refuses_type(A, op, &[(17, 9, &[6, 15]), table], &[3, 13], y);
    for wrong in [(17, 14, &[8, 4]), (16, 14, &[8, 3]), (16, 14, &[8, 6]), (16, 14, &[5, 4]), (16, 16, &[8, 4])] {
        let (bits, exponent, dims): (u8, i16, &[u32; 2]) = wrong;
        refuses_type(B, op, &[x, (bits, exponent, dims)], &[3, 13], y);
    }
    refuses_type(B, op, &[x, (16, -1, &[8, 4])], &[3, 13], y);
    refuses_type(OUT, op, &[x, table], &[3, 13], (16, 10, &[90]));
}

#[test]
fn gather() {
    let op = Opcode::Gather;
    let (table, scale, ids, y): (Ty<'_>, Ty<'_>, Ty<'_>, Ty<'_>) =
        ((8, 7, &[50, 6]), (16, 12, &[50]), (32, 0, &[9]), (16, 10, &[9, 6]));
    accepts(op, &[table, scale, ids], &[9], y);
    accepts(op, &[table, scale, (64, 0, &[12])], &[9], y);
    refuses_precision("shift", op, &[table, scale, ids], &[10], y);
    refuses_type(A, op, &[(8, 7, &[50, 6, 1]), scale, ids], &[9], y);
    refuses_type(A, op, &[(8, 7, &[300]), scale, ids], &[9], y);
    accepts(op, &[table, (16, 12, &[51]), ids], &[9], y);
    refuses_type(B, op, &[table, (16, 12, &[49]), ids], &[9], y);
    refuses_type(C, op, &[table, scale, (32, 1, &[9])], &[9], y);
    accepts(op, &[table, scale, (32, 0, &[1, 9])], &[9], y);
    refuses_type(C, op, &[table, scale, (32, 0, &[8])], &[9], y);
    refuses_type(OUT, op, &[table, scale, ids], &[9], (16, 10, &[9, 5]));
    refuses_type(OUT, op, &[table, scale, ids], &[9], (16, 10, &[54]));
    accepts(op, &[(32, 7, &[50, 6]), (32, 12, &[50]), ids], &[9], y);
    assert!(is_bound(refuses(op, &[(33, 7, &[50, 6]), (33, 12, &[50]), ids], &[9], y)));
    assert!(is_bound(refuses(op, &[(64, 7, &[50, 6]), (64, 12, &[50]), ids], &[9], y)));
}

#[test]
fn row_abs_max() {
    let op = Opcode::RowAbsMax;
    accepts(op, &[(64, 3, &[2, 3, 4096])], &[], (64, 3, &[2, 3]));
    refuses_type(OUT, op, &[(8, 0, &[2, 3])], &[], (8, 0, &[3]));
    refuses_type(OUT, op, &[(8, 0, &[2, 3])], &[], (9, 0, &[2]));
    refuses_type(OUT, op, &[(8, 0, &[2, 3])], &[], (8, 1, &[2]));
    assert!(is_reduction(refuses(op, &[(8, 0, &[4097])], &[], (8, 0, &[1]))));
}
