//! Rules N-32 to N-37.

use tensorlink_types::Opcode;

use super::transformer::{D, is_bound, is_reduction, refuses_attribute, refuses_precision};
use super::{A, B, C, OUT, Ty, accepts, refuses, refuses_type};
use crate::error::Place;

const E: Place = Place::Operand(4);

#[test]
fn row_arg_max() {
    let op = Opcode::RowArgMax;
    let a: Ty<'_> = (64, 3, &[2, 3, 8192]);
    accepts(op, &[a], &[], (32, 0, &[2, 3, 2]));
    accepts(op, &[a], &[], (32, 0, &[24]));
    refuses_type(OUT, op, &[a], &[], (32, 0, &[5]));
    refuses_type(OUT, op, &[a], &[], (31, 0, &[12]));
    refuses_type(OUT, op, &[a], &[], (32, 3, &[12]));
    // Six elements a row: not four parts of it.
    refuses_type(OUT, op, &[(8, 0, &[2, 6])], &[], (32, 0, &[8]));
    // Nor one part of two rows.
    refuses_type(OUT, op, &[(8, 0, &[2, 6])], &[], (32, 0, &[1]));
    assert!(is_reduction(refuses(op, &[(8, 0, &[4097])], &[], (32, 0, &[1]))));
}

#[test]
fn row_pick() {
    let op = Opcode::RowPick;
    let (a, y): (Ty<'_>, Ty<'_>) = ((64, 3, &[2, 9000]), (64, 3, &[2, 3]));
    accepts(op, &[a, (2, 0, &[6])], &[], y);
    accepts(op, &[a, (64, 0, &[2, 1])], &[], (64, 3, &[2]));
    refuses_type(OUT, op, &[a, (8, 0, &[7])], &[], (64, 3, &[7]));
    refuses_type(B, op, &[a, (8, 0, &[2])], &[], y);
    refuses_type(B, op, &[a, (8, 1, &[6])], &[], y);
    refuses_type(OUT, op, &[a, (8, 0, &[6])], &[], (64, 2, &[2, 3]));
    refuses_type(OUT, op, &[a, (8, 0, &[6])], &[], (63, 3, &[2, 3]));
}

#[test]
fn tail_sum() {
    let op = Opcode::TailSum;
    let (a, w, t): (Ty<'_>, Ty<'_>, Ty<'_>) = ((64, 8, &[3, 8192]), (26, 24, &[3, 8192]), (40, 8, &[3]));
    let (mass, count): (Ty<'_>, Ty<'_>) = ((32, 19, &[3, 2]), (14, 0, &[3, 2]));
    let last = (1 << 40) - 1;
    for bound in [-last, 0, last] {
        accepts(op, &[a, w, t], &[bound, 1, 5], mass);
    }
    accepts(op, &[a, w, t], &[0, 0, 0], count);
    accepts(op, &[a, w, (61, 8, &[1, 3])], &[last, 1, 5], mass);
    for bound in [-last - 1, last + 1] {
        refuses_attribute("bound", op, &[a, w, t], &[bound, 1, 5], mass);
    }
    for weighted in [-1, 2] {
        refuses_attribute("weighted", op, &[a, w, t], &[0, weighted, 5], mass);
    }
    refuses_precision("shift", op, &[a, w, t], &[0, 1, 4], mass);
    refuses_precision("shift", op, &[a, w, t], &[0, 0, 5], mass);
    refuses_precision("shift", op, &[a, w, t], &[0, 0, 24], count);
    refuses_type(B, op, &[a, (26, 24, &[3, 8191]), t], &[0, 1, 5], mass);
    refuses_type(B, op, &[a, (26, 24, &[2, 8192]), t], &[0, 1, 5], mass);
    refuses_type(C, op, &[a, w, (40, 8, &[2])], &[0, 1, 5], mass);
    refuses_type(C, op, &[a, w, (40, 7, &[3])], &[0, 1, 5], mass);
    refuses_type(OUT, op, &[a, w, t], &[0, 1, 5], (32, 19, &[3, 5]));
    assert!(is_bound(refuses(op, &[a, w, (63, 8, &[3])], &[1, 1, 5], mass)));
    accepts(op, &[a, (32, 24, &[3, 8192]), t], &[0, 1, 5], mass);
    for attributes in [[0, 1, 5], [0, 0, 0]] {
        refuses_type(B, op, &[a, (33, 24, &[3, 8192]), t], &attributes, if attributes[1] == 1 { mass } else { count });
    }
    let (long, one): (Ty<'_>, Ty<'_>) = ((8, 0, &[1, 4097]), (8, 0, &[1]));
    assert!(is_reduction(refuses(op, &[long, long, one], &[0, 1, 0], one)));
}

#[test]
fn threshold() {
    let op = Opcode::Threshold;
    let (t, counts, masses): (Ty<'_>, Ty<'_>, Ty<'_>) = ((61, 8, &[3]), (14, 0, &[3, 4]), (32, 19, &[3, 4]));
    let controls: Ty<'_> = (33, 0, &[3, 7]);
    let all = [t, counts, masses, masses, controls];
    let with = |place: usize, ty| {
        let mut operands = all;
        operands[place] = ty;
        operands
    };
    let last = (1 << 40) - 1;
    for step in [0, 1, last] {
        accepts(op, &all, &[step], t);
    }
    for step in [-1, last + 1] {
        refuses_attribute("step", op, &all, &[step], t);
    }
    accepts(op, &with(4, (64, 0, &[3, 1, 7])), &[1], t);
    refuses_type(B, op, &with(1, (14, 0, &[2, 4])), &[1], t);
    refuses_type(B, op, &with(1, (14, 1, &[3, 4])), &[1], t);
    refuses_type(C, op, &with(2, (32, 19, &[3, 5])), &[1], t);
    refuses_type(C, op, &with(2, (33, 19, &[3, 4])), &[1], t);
    refuses_type(D, op, &with(3, (32, 19, &[4, 3])), &[1], t);
    refuses_type(D, op, &with(3, (31, 19, &[3, 4])), &[1], t);
    refuses_type(D, op, &with(3, (32, 18, &[3, 4])), &[1], t);
    refuses_type(E, op, &with(4, (33, 0, &[3, 6])), &[1], t);
    refuses_type(E, op, &with(4, (33, 0, &[7, 3])), &[1], t);
    refuses_type(E, op, &with(4, (33, 1, &[3, 7])), &[1], t);
    refuses_type(OUT, op, &all, &[1], (61, 8, &[1, 3]));
    refuses_type(OUT, op, &all, &[1], (60, 8, &[3]));
    assert!(is_bound(refuses(op, &with(0, (63, 8, &[3])), &[1], (63, 8, &[3]))));
    assert!(is_bound(refuses(op, &with(1, (62, 0, &[3, 4])), &[1], t)));
    let (one, long): (Ty<'_>, Ty<'_>) = ((8, 0, &[1]), (8, 0, &[1, 4097]));
    assert!(is_reduction(refuses(op, &[one, long, long, long, (8, 0, &[7])], &[1], one)));
}

#[test]
fn perturb() {
    let op = Opcode::Perturb;
    let (a, t, controls): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 8, &[3, 50]), (40, 8, &[3]), (32, 0, &[3, 7]));
    let (table, y): (Ty<'_>, Ty<'_>) = ((22, 16, &[8224]), (32, 16, &[3, 50]));
    let all = [a, t, controls, table];
    let with = |place: usize, ty| {
        let mut operands = all;
        operands[place] = ty;
        operands
    };
    accepts(op, &all, &[-5, 12], y);
    refuses_attribute("bound", op, &all, &[1 << 40, 12], y);
    refuses_precision("shift", op, &all, &[0, 13], y);
    // The places of alignment are from 0 to 40.
    let aligned = |exponent| [(16, exponent, a.2), (40, exponent, t.2), controls, table];
    for exponent in [-12, 28] {
        accepts(op, &aligned(exponent), &[0, 12], y);
    }
    for exponent in [-13, 29] {
        refuses_type(A, op, &aligned(exponent), &[0, 12], y);
    }
    refuses_type(A, op, &with(0, (33, 8, &[3, 50])), &[0, 12], y);
    refuses_type(B, op, &with(1, (40, 7, &[3])), &[0, 12], y);
    refuses_type(B, op, &with(1, (40, 8, &[4])), &[0, 12], y);
    refuses_type(C, op, &with(2, (33, 0, &[3, 7])), &[0, 12], y);
    refuses_type(C, op, &with(2, (32, 0, &[21])), &[0, 12], y);
    refuses_type(D, op, &with(3, (22, 16, &[8223])), &[0, 12], y);
    refuses_type(D, op, &with(3, (22, 24, &[8224])), &[0, 12], y);
    refuses_type(D, op, &with(3, (33, 16, &[8224])), &[0, 12], y);
    refuses_type(OUT, op, &all, &[0, 12], (32, 16, &[150]));
    assert!(is_bound(refuses(op, &with(1, (63, 8, &[3])), &[1, 12], y)));
    // Elements of 24 bits by 2^39, or draws of 32 bits at temperatures of 32.
    accepts(op, &[(23, -11, a.2), (40, -11, t.2), controls, table], &[0, 12], y);
    assert!(is_bound(refuses(op, &[(24, -11, a.2), (40, -11, t.2), controls, table], &[0, 12], y)));
    assert!(is_bound(refuses(op, &with(3, (32, 16, &[8224])), &[0, 12], y)));
    accepts(op, &with(3, (31, 16, &[8224])), &[0, 12], y);
}

#[test]
fn choose() {
    let op = Opcode::Choose;
    let (place, best): (Ty<'_>, Ty<'_>) = ((32, 0, &[3, 8]), (64, 16, &[3, 8]));
    let (controls, y): (Ty<'_>, Ty<'_>) = ((33, 0, &[3, 7]), (32, 0, &[3]));
    for length in [1, 4096] {
        accepts(op, &[place, best, controls], &[length], y);
    }
    for length in [0, 4097] {
        refuses_attribute("length", op, &[place, best, controls], &[length], y);
    }
    refuses_type(A, op, &[(32, 1, &[3, 8]), best, controls], &[9], y);
    refuses_type(B, op, &[place, (64, 16, &[3, 7]), controls], &[9], y);
    refuses_type(B, op, &[place, (64, 16, &[2, 8]), controls], &[9], y);
    refuses_type(C, op, &[place, best, (33, 0, &[3, 8])], &[9], y);
    refuses_type(C, op, &[place, best, (33, 0, &[2, 7])], &[9], y);
    refuses_type(OUT, op, &[place, best, controls], &[9], (32, 0, &[4]));
    refuses_type(OUT, op, &[place, best, controls], &[9], (33, 0, &[3]));
    assert!(is_bound(refuses(op, &[(63, 0, &[3, 8]), best, controls], &[9], y)));
    let long: Ty<'_> = (8, 0, &[1, 4097]);
    assert!(is_reduction(refuses(op, &[long, long, (8, 0, &[7])], &[9], (32, 0, &[1]))));
}
