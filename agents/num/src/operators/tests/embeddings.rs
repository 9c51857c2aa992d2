//! Tests of rule N-30: rows of a table chosen by ids.

use tensorlink_types::Opcode;

use super::drawing::{both, count, dim, values};
use super::meaning::{run, tensor, wide};
use super::refusing::{A, B, C, OUT, Ty, accepts, is_bound, refuses, refuses_precision, refuses_type};

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
fn ids_of_any_shape() {
    let (table, scale, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((8, 7, &[50, 6]), (16, 12, &[50]), (16, 10, &[9, 6]));
    for dims in [&[9], &[1, 9], &[9, 1], &[3, 3], &[2, 5]] as [&[u32]; 5] {
        accepts(Opcode::Gather, &[table, scale, (32, 0, dims)], &[9], y);
    }
    refuses_type(C, Opcode::Gather, &[table, scale, (32, 0, &[2, 4])], &[9], y);
}

#[test]
fn corners_are_drawn() {
    let op = Opcode::Gather;
    let ids = |wanted: fn(i64, i64) -> bool| {
        count(op, |case| {
            let entries = dim(case, 0, 0);
            values(case, 2).iter().any(|id| wanted(*id, entries))
        })
    };
    assert!(ids(|id, _| id < 0) > 60 && ids(|id, entries| id >= entries) > 60, "ids outside");
    assert!(ids(|id, entries| 0 < id && id < entries) > 60, "ids inside");
    both(op, "ids of rank 2", &|case| case.operands[2].ty().dims().len() == 2);
}

#[test]
fn gather_takes_the_nearest_row() {
    let table = tensor(8, 0, &[3, 2], &[1, -2, 3, -4, 5, -6]);
    let scale = tensor(8, 0, &[3], &[10, -1, 7]);
    let limit = i64::MAX;
    let ids = tensor(64, 0, &[8], &[0, 1, 2, 3, limit, -1, -limit, 1]);
    // Seven tokens of eight: the last is not read.
    let y = run(Opcode::Gather, &[&table, &scale, &ids], &[0], (16, 0, &[7, 2]));
    assert_eq!(wide(&y), [10, -20, -3, 4, 35, -42, 35, -42, 35, -42, 10, -20, 10, -20]);
}
