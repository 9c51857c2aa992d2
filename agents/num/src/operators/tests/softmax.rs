//! Tests of rules N-22 and N-23: shares of a row's sum, and their difference from a label.

use tensorlink_types::Opcode;

use super::meaning::{distance, dot, run, slope, uniform};
use super::refusing::{B, OUT, accepts, is_bound, refuses, refuses_type};
use crate::arbitrary::Dice;
use crate::error::OpError;
use crate::tables::exp2_table;

#[test]
fn normalize() {
    let op = Opcode::Normalize;
    refuses_type(B, op, &[(8, 0, &[2, 3]), (8, 0, &[3])], &[0], (8, 0, &[2, 3]));
    refuses_type(OUT, op, &[(8, 5, &[2, 3]), (8, 3, &[2])], &[4], (8, 7, &[2, 3]));
    accepts(op, &[(8, 5, &[2, 3]), (8, 3, &[2])], &[4], (8, 6, &[2, 3]));
    let v: &[u32] = &[4];
    accepts(op, &[(30, 0, v), (61, 0, &[1])], &[31], (8, 31, v));
    assert!(is_bound(refuses(op, &[(30, 0, v), (61, 0, &[1])], &[32], (8, 32, v))));
}

#[test]
fn one_hot_sub() {
    let op = Opcode::OneHotSub;
    let negative = refuses(op, &[(8, 0, &[2, 3]), (8, 0, &[2])], &[-1, 0], (8, 0, &[2, 3]));
    assert!(matches!(negative, OpError::Attribute { name: "one", .. }));
    let v: &[u32] = &[4];
    accepts(op, &[(62, 0, v), (8, 0, &[1])], &[(1 << 40) - 1, 0], (8, 0, v));
    assert!(is_bound(refuses(op, &[(63, 0, v), (8, 0, &[1])], &[1, 0], (8, 0, v))));
}

/// Softmax of scores of two heads and four tokens: nobody sees the future, everybody's weights sum to one.
#[test]
fn causal_softmax_sees_the_past_alone() {
    let mut dice = Dice::new(3);
    let dims = &[2, 4, 4];
    let scores = uniform(&mut dice, 16, 12, dims);
    let max = run(Opcode::RowMax, &[&scores], &[1], (16, 12, &[2, 4]));
    let exp = run(Opcode::ExpNeg, &[&scores, &max, &exp2_table().unwrap()], &[23637, 10, 1], (26, 24, dims));
    let sum = run(Opcode::RowSum, &[&exp], &[0], (30, 24, &[2, 4]));
    let weights = run(Opcode::Normalize, &[&exp, &sum], &[15], (17, 15, dims)).to_f64();
    let scores = scores.to_f64();
    for (m, (row, scores)) in weights.chunks(4).zip(scores.chunks(4)).enumerate() {
        let seen = m % 4 + 1;
        let total: f64 = scores[..seen].iter().map(|s| s.exp()).sum();
        let expected = scores.iter().enumerate().map(|(k, s)| if k < seen { s.exp() / total } else { 0.0 });
        assert!(distance(row, expected) < 1e-4, "row {m}");
        assert!(row[seen..].iter().all(|w| *w == 0.0));
    }
}

/// `ds = p·(dp − Σ p·dp)`.
#[test]
fn the_gradient_of_softmax_is_assembled() {
    let mut dice = Dice::new(13);
    let dims: &[u32] = &[4, 10];
    let (scores, dp) = (uniform(&mut dice, 14, 12, dims), uniform(&mut dice, 14, 12, dims));
    let max = run(Opcode::RowMax, &[&scores], &[0], (14, 12, &[4]));
    let exp = run(Opcode::ExpNeg, &[&scores, &max, &exp2_table().unwrap()], &[23637, 10, 0], (26, 24, dims));
    let sum = run(Opcode::RowSum, &[&exp], &[0], (30, 24, &[4]));
    let p = run(Opcode::Normalize, &[&exp, &sum], &[20], (22, 20, dims));
    let mean = run(Opcode::RowSum, &[&run(Opcode::Mul, &[&p, &dp], &[8], (30, 24, dims))], &[4], (30, 20, &[4]));
    let inner = run(Opcode::RowCombine, &[&dp, &mean], &[1 << 8, -1, 0], (24, 20, dims));
    let ds = run(Opcode::Mul, &[&p, &inner], &[20], (24, 20, dims)).to_f64();
    let (scores, dp) = (scores.to_f64(), dp.to_f64());
    let expected = scores.chunks(10).zip(dp.chunks(10)).flat_map(|(scores, dp)| {
        let loss = |s: &[f64]| {
            let exp: Vec<f64> = s.iter().map(|s| s.exp()).collect();
            dot(&exp, dp) / exp.iter().sum::<f64>()
        };
        slope(loss, scores)
    });
    let far = distance(&ds, expected);
    assert!(ds.iter().any(|ds| ds.abs() > 0.1) && far < 1e-4, "{far}");
}
