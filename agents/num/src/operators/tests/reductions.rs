//! Tests of rules N-19, N-21 and N-31: the largest of a row, and its sum.

use tensorlink_types::Opcode;

use super::drawing::{both, causal_or_not, in_parts, longest};
use super::meaning::{run, tensor, uniform, wide};
use super::refusing::{
    A, OUT, Ty, accepts, is_bound, is_reduction, refuses, refuses_attribute, refuses_precision, refuses_type,
};
use crate::arbitrary::Dice;
use crate::error::OpError;

#[test]
fn row_max() {
    let op = Opcode::RowMax;
    refuses_type(OUT, op, &[(8, 0, &[2, 3])], &[0], (8, 0, &[3]));
    accepts(op, &[(8, 0, &[2, 3, 5])], &[0], (8, 0, &[6]));
    let long = refuses(op, &[(8, 0, &[4097])], &[0], (8, 0, &[1]));
    assert_eq!(long, OpError::Reduction { opcode: op, length: 4097 });
}

#[test]
fn causal_row_max() {
    let op = Opcode::RowMax;
    accepts(op, &[(8, 0, &[2, 3, 5])], &[1], (8, 0, &[6]));
    accepts(op, &[(8, 0, &[2, 3])], &[1], (8, 0, &[2]));
    refuses_type(A, op, &[(8, 0, &[5])], &[1], (8, 0, &[1]));
    accepts(op, &[(8, 0, &[5])], &[0], (8, 0, &[1]));
    for causal in [-1, 2] {
        refuses_attribute("causal", op, &[(8, 0, &[2, 3])], &[causal], (8, 0, &[2]));
    }
}

#[test]
fn row_sum() {
    let op = Opcode::RowSum;
    accepts(op, &[(51, 0, &[1, 4096])], &[0], (8, 0, &[1]));
    assert!(is_bound(refuses(op, &[(52, 0, &[1, 4096])], &[0], (8, 0, &[1]))));
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

#[test]
fn parts_of_rows() {
    let a: Ty<'_> = (8, 3, &[2, 12]);
    for (op, attributes) in [(Opcode::RowMax, &[0][..]), (Opcode::RowSum, &[0]), (Opcode::RowAbsMax, &[])] {
        for dims in [&[2], &[2, 3], &[6], &[2, 12]] as [&[u32]; 4] {
            accepts(op, &[a], attributes, (8, 3, dims));
        }
        // Parts that cross rows; parts that are not equal; more parts than elements.
        for dims in [&[1], &[2, 5], &[3], &[2, 24]] as [&[u32]; 4] {
            refuses_type(OUT, op, &[a], attributes, (8, 3, dims));
        }
        accepts(op, &[(8, 0, &[1, 8192])], attributes, (8, 0, &[1, 2]));
        assert!(is_reduction(refuses(op, &[(8, 0, &[1, 8194])], attributes, (8, 0, &[1, 2]))), "{op:?}");
    }
    refuses_type(OUT, Opcode::RowMax, &[a], &[0], (9, 3, &[2, 3]));
    refuses_type(OUT, Opcode::RowMax, &[a], &[0], (8, 4, &[2, 3]));
    refuses_precision("shift", Opcode::RowSum, &[a], &[1], (8, 3, &[2, 3]));
    // What a row sees ends within a part, so a causal row has no parts.
    accepts(Opcode::RowMax, &[a], &[1], (8, 3, &[2]));
    refuses_type(OUT, Opcode::RowMax, &[a], &[1], (8, 3, &[2, 3]));
}

#[test]
fn corners_are_drawn() {
    causal_or_not(Opcode::RowMax);
    for opcode in [Opcode::RowMax, Opcode::RowSum, Opcode::RowAbsMax] {
        both(opcode, "parts", &in_parts);
        longest(opcode, 0);
    }
}

#[test]
fn magnitudes_have_no_sign() {
    let a = tensor(64, 5, &[3, 2], &[0, 0, -7, 3, i64::MAX, -i64::MAX]);
    assert_eq!(wide(&run(Opcode::RowAbsMax, &[&a], &[], (64, 5, &[3]))), [0, 7, i64::MAX]);
}

#[test]
fn parts_of_a_row_are_reduced_by_themselves() {
    let mut dice = Dice::new(19);
    let a = uniform(&mut dice, 16, 3, &[3, 12]);
    let parts = |opcode, bits| wide(&run(opcode, &[&a], &[0], (bits, 3, &[3, 4])));
    let (max, sum) = (parts(Opcode::RowMax, 16), parts(Opcode::RowSum, 32));
    let a = wide(&a);
    let runs = || a.chunks(3);
    assert_eq!(max, runs().map(|run| *run.iter().max().unwrap()).collect::<Vec<_>>());
    assert_eq!(sum, runs().map(|run| run.iter().sum::<i64>()).collect::<Vec<_>>());
}

#[test]
fn a_causal_row_sees_no_more_than_there_is() {
    // More keys than tokens: the last row sees as many as there are tokens.
    let wide_scores = tensor(8, 0, &[2, 4], &[1, 9, 9, 9, 1, 2, 9, 9]);
    assert_eq!(wide(&run(Opcode::RowMax, &[&wide_scores], &[1], (8, 0, &[2]))), [1, 2]);
    // More tokens than keys: a row sees no more than it has.
    let tall = tensor(8, 0, &[3, 2], &[1, 9, 1, 9, 1, 9]);
    assert_eq!(wide(&run(Opcode::RowMax, &[&tall], &[1], (8, 0, &[3]))), [1, 9, 9]);
}
