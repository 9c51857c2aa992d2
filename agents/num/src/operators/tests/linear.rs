//! Tests of rules N-11, N-12 and N-25: products of matrices, and matrices turned.

use tensorlink_types::Opcode;

use super::drawing::{attribute, both, count, dim, longest};
use super::meaning::{run, tensor, uniform, wide};
use super::refusing::{
    A, B, C, D, OUT, Ty, accepts, is_bound, is_reduction, refuses, refuses_attribute, refuses_precision, refuses_type,
};
use crate::arbitrary::{Case, Dice};
use crate::error::OpError;
use crate::tensor::Tensor;

#[test]
fn mat_mul() {
    let op = Opcode::MatMul;
    let (a, b, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 3, &[2, 4096]), (16, 4, &[5, 4096]), (64, -1, &[2, 5]));
    accepts(op, &[a, b], &[8], y);
    let shift = refuses(op, &[a, b], &[7], y);
    assert_eq!(shift, OpError::Precision { opcode: op, name: "shift", expected: 8, actual: 7 });
    refuses_type(A, op, &[(16, 3, &[4096]), b], &[8], y);
    refuses_type(A, op, &[(17, 3, &[2, 4096]), b], &[8], y);
    refuses_type(B, op, &[(8, 3, &[2, 4096]), b], &[8], y);
    refuses_type(B, op, &[a, (16, 4, &[5, 4095])], &[8], y);
    refuses_type(OUT, op, &[a, b], &[8], (64, -1, &[5, 2]));
    refuses_type(OUT, op, &[a, b], &[8], (64, -1, &[10]));
    let long: &[u32] = &[1, 4097];
    let error = refuses(op, &[(8, 0, long), (8, 0, long)], &[0], (8, 0, &[1, 1]));
    assert_eq!(error, OpError::Reduction { opcode: op, length: 4097 });
    let far = refuses(op, &[(8, 32, &[1, 1]), (8, 32, &[1, 1])], &[64], (8, 0, &[1, 1]));
    assert!(matches!(far, OpError::Attribute { name: "shift", value: 64, min: -63, max: 63, .. }));
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
fn transpose() {
    let op = Opcode::Transpose;
    let v: &[u32] = &[2, 3];
    accepts(op, &[(64, 9, v)], &[], (64, 9, &[3, 2]));
    refuses_type(A, op, &[(8, 0, &[6])], &[], (8, 0, &[6]));
    refuses_type(OUT, op, &[(8, 0, v)], &[], (8, 0, v));
    refuses_type(OUT, op, &[(8, 0, v)], &[], (9, 0, &[3, 2]));
}

#[test]
fn transpose_of_several() {
    let op = Opcode::Transpose;
    accepts(op, &[(8, 3, &[4, 2, 3])], &[], (8, 3, &[4, 3, 2]));
    for dims in [&[4, 2, 3], &[3, 2, 4], &[2, 4, 3], &[12, 2], &[1, 12, 2]] as [&[u32]; 5] {
        refuses_type(OUT, op, &[(8, 3, &[4, 2, 3])], &[], (8, 3, dims));
    }
    refuses_type(OUT, op, &[(8, 3, &[2, 3])], &[], (8, 3, &[1, 3, 2]));
    refuses_type(OUT, op, &[(8, 3, &[4, 2, 3])], &[], (9, 3, &[4, 3, 2]));
    refuses_type(OUT, op, &[(8, 3, &[4, 2, 3])], &[], (8, 4, &[4, 3, 2]));
    for dims in [&[6], &[1, 4, 2, 3]] as [&[u32]; 2] {
        refuses_type(A, op, &[(8, 3, dims)], &[], (8, 3, dims));
    }
}

#[test]
fn corners_are_drawn() {
    let slack = |case: &Case| dim(case, 0, 1) - dim(case, 1, 1);
    let offset =
        |wanted: fn(i64, i64) -> bool| count(Opcode::ScaledMatMul, |case| wanted(attribute(case, 0), slack(case)));
    assert!(offset(|_, slack| slack == 0) > 5, "whole rows");
    assert!(offset(|at, slack| at == 0 && slack > 0) > 30, "first part");
    assert!(offset(|at, slack| at == slack && slack > 0) > 30, "last part");
    assert!(offset(|at, slack| 0 < at && at < slack) > 30, "a part between");
    longest(Opcode::ScaledMatMul, 0);
    both(Opcode::Transpose, "several matrices", &|case| case.operator.output.dims().len() == 3);
}

#[test]
fn offsets_split_a_product() {
    let mut dice = Dice::new(4);
    let a = uniform(&mut dice, 8, 0, &[3, 11]);
    let b = uniform(&mut dice, 8, 0, &[2, 11]);
    let [r, c] = [[3u32, 0], [2, 0]].map(|[rows, _]| uniform(&mut dice, 8, 0, &[rows]));
    let columns = |from: usize, to: usize| {
        let rows: Vec<i64> = wide(&b).chunks(11).flat_map(|row| row[from..to].to_vec()).collect();
        tensor(8, 0, &[2, (to - from) as u32], &rows)
    };
    let part = |b: &Tensor, offset| wide(&run(Opcode::ScaledMatMul, &[&a, b, &r, &c], &[offset, 0], (48, 0, &[3, 2])));
    let (whole, left, right) = (part(&b, 0), part(&columns(0, 4), 0), part(&columns(4, 11), 4));
    let sums: Vec<i64> = left.iter().zip(&right).map(|(a, b)| a + b).collect();
    assert_eq!(whole, sums);
    let plain = wide(&run(Opcode::MatMul, &[&a, &b], &[0], (48, 0, &[3, 2])));
    let scaled = plain.iter().enumerate().map(|(i, y)| y * r.get(i as u64 / 2).unwrap() * c.get(i as u64 % 2).unwrap());
    assert!(scaled.eq(whole));
}

#[test]
fn each_matrix_of_a_stack_is_turned() {
    let mut dice = Dice::new(19);
    let stack = uniform(&mut dice, 16, 3, &[3, 4, 5]);
    let across = wide(&run(Opcode::Transpose, &[&stack], &[], (16, 3, &[3, 5, 4])));
    let stack = wide(&stack);
    for (i, y) in across.into_iter().enumerate() {
        let (b, n, m) = (i / 20, i / 4 % 5, i % 4);
        assert_eq!(y, stack[b * 20 + m * 5 + n], "{b} {m} {n}");
    }
}
