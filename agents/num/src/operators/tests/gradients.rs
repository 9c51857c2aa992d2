//! Tests of rules N-41 and N-45: gradients of embeddings and of shared heads.

use std::collections::BTreeSet;

use tensorlink_types::Opcode;

use super::drawing::{attribute, both, longest, values};
use super::meaning::{run, tensor, uniform, wide};
use super::refusing::{
    A, B, OUT, Ty, accepts, is_bound, is_reduction, refuses, refuses_attribute, refuses_precision, refuses_type,
};
use crate::arbitrary::{Case, Dice};
use crate::tensor::Tensor;

#[test]
fn gather_grad() {
    let op = Opcode::GatherGrad;
    let (g, ids, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 9, &[6, 7]), (32, 0, &[7]), (32, 4, &[50, 6]));
    accepts(op, &[g, ids], &[5], y);
    for dims in [&[8], &[1, 7], &[7, 1], &[2, 4]] as [&[u32]; 4] {
        accepts(op, &[g, (64, 0, dims)], &[5], y);
    }
    for dims in [&[6], &[2, 3]] as [&[u32]; 2] {
        refuses_type(B, op, &[g, (32, 0, dims)], &[5], y);
    }
    for e in [-1, 1] {
        refuses_type(B, op, &[g, (32, e, &[7])], &[5], y);
    }
    for dims in [&[42], &[6, 7, 1], &[1, 6, 7]] as [&[u32]; 3] {
        refuses_type(A, op, &[(16, 9, dims), (32, 0, &[42])], &[5], y);
    }
    for dims in [&[300], &[50, 6, 1], &[1, 50, 6], &[50, 7], &[50, 5]] as [&[u32]; 5] {
        refuses_type(OUT, op, &[g, ids], &[5], (32, 4, dims));
    }
    for shift in [4, 6] {
        refuses_precision("shift", op, &[g, ids], &[shift], y);
    }
    for far in [-64, 64] {
        refuses_attribute("shift", op, &[(16, 4 + far as i16, &[6, 7]), ids], &[far], y);
    }
    let long = |bits, tokens: &'static [u32; 2]| [(bits, 0, tokens as &[u32]), (8, 0, &[5000])];
    accepts(op, &long(51, &[1, 4096]), &[0], (8, 0, &[3, 1]));
    assert!(is_bound(refuses(op, &long(52, &[1, 4096]), &[0], (8, 0, &[3, 1]))));
    assert!(is_reduction(refuses(op, &long(8, &[1, 4097]), &[0], (8, 0, &[3, 1]))));
}

#[test]
fn group_sum() {
    let op = Opcode::GroupSum;
    // Four heads of three elements.
    let (a, y): (Ty<'_>, Ty<'_>) = ((16, 8, &[5, 12]), (16, 6, &[5, 6]));
    for row in [3, 6, 12] {
        accepts(op, &[a], &[4, 2], (16, 6, &[5, row]));
    }
    accepts(op, &[(16, 8, &[1, 5, 12])], &[4, 2], y);
    for heads in [0, -1, 13] {
        refuses_attribute("heads", op, &[a], &[heads, 2], y);
    }
    refuses_type(A, op, &[a], &[5, 2], y);
    // Three groups for four heads; not whole heads; no head; more groups than heads.
    for row in [9, 7, 2, 24] {
        refuses_type(OUT, op, &[a], &[4, 2], (16, 6, &[5, row]));
    }
    for dims in [&[6, 5], &[10, 6], &[30], &[1, 6]] as [&[u32]; 4] {
        refuses_type(OUT, op, &[a], &[4, 2], (16, 6, dims));
    }
    for shift in [1, 3] {
        refuses_precision("shift", op, &[a], &[4, shift], y);
    }
    for far in [-64, 64] {
        refuses_attribute("shift", op, &[(16, 6 + far as i16, &[5, 12])], &[4, far], y);
    }
    // At most 128 heads of a group, each opened by itself: 2^56 is exceeded by so many of 56 bits.
    accepts(op, &[(56, 0, &[128])], &[128, 0], (8, 0, &[1]));
    assert!(is_bound(refuses(op, &[(57, 0, &[128])], &[128, 0], (8, 0, &[1]))));
    refuses_type(OUT, op, &[(8, 0, &[129])], &[129, 0], (8, 0, &[1]));
}

#[test]
fn corners_of_gradients_of_embeddings_are_drawn() {
    let op = Opcode::GatherGrad;
    both(op, "ids of rank 2", &|case| case.operands[1].ty().dims().len() == 2);
    longest(op, 0);
    let ids = |case: &Case| values(case, 1)[..case.operands[0].ty().row() as usize].to_vec();
    let entries = |case: &Case| case.operator.output.rows() as i64;
    both(op, "an id below", &|case| ids(case).iter().any(|id| *id < 0));
    both(op, "an id beyond", &|case| ids(case).iter().any(|id| *id >= entries(case)));
    both(op, "ids that are not read", &|case| ids(case).len() < values(case, 1).len());
    let rows = |case: &Case| ids(case).iter().map(|id| (*id).clamp(0, entries(case) - 1)).collect::<BTreeSet<_>>();
    both(op, "a row that is shared", &|case| rows(case).len() < ids(case).len());
    both(op, "a row that is left out", &|case| (rows(case).len() as i64) < entries(case));
}

#[test]
fn corners_of_gradients_of_heads_are_drawn() {
    let op = Opcode::GroupSum;
    let summed = |case: &Case| case.operands[0].ty().row() / case.operator.output.row();
    both(op, "heads of their own", &|case| summed(case) == 1);
    both(op, "one group", &|case| summed(case) as i64 == attribute(case, 0) && summed(case) > 1);
    both(op, "several groups", &|case| summed(case) > 1 && (summed(case) as i64) < attribute(case, 0));
}

#[test]
fn gradients_of_rows_are_gathered_where_they_came_from() {
    let mut dice = Dice::new(15);
    let (table, dy) = (uniform(&mut dice, 8, 0, &[5, 3]), uniform(&mut dice, 8, 0, &[7, 3]));
    // Twice row 1; row 2 never; beyond both ends.
    let ids = tensor(64, 0, &[2, 4], &[1, 0, -9, 4, 1, i64::MAX, 3, 2]);
    let ones = tensor(2, 0, &[5], &[1; 5]);
    let y = run(Opcode::Gather, &[&table, &ones, &ids], &[0], (8, 0, &[7, 3]));
    let across = run(Opcode::Transpose, &[&dy], &[], (8, 0, &[3, 7]));
    let d_table = run(Opcode::GatherGrad, &[&across, &ids], &[0], (16, 0, &[5, 3]));
    // Gather is linear in the table, so this is its transpose.
    let inner = |a: &Tensor, b: &Tensor| wide(a).iter().zip(wide(b)).map(|(a, b)| a * b).sum::<i64>();
    assert_eq!(inner(&y, &dy), inner(&table, &d_table));
    let mut expected = [0; 15];
    for (i, dy) in wide(&dy).into_iter().enumerate() {
        expected[[1usize, 0, 0, 4, 1, 4, 3][i / 3] * 3 + i % 3] += dy;
    }
    assert_eq!(wide(&d_table), expected);
    assert_eq!(expected[6..9], [0; 3]);
}

/// `dk[s,g,d] = Σ_h Σ_t ds[h,t,s]·q[t,h,d]` over the heads of group g: HeadMix gives each head's, GroupSum adds them.
#[test]
fn heads_that_share_keys_add_their_gradients() {
    let (heads, kv_heads, width, tokens, keys) = (6, 2, 5, 4, 3);
    let mut dice = Dice::new(18);
    let (q, ds) = (uniform(&mut dice, 8, 0, &[4, 30]), uniform(&mut dice, 8, 0, &[6, 4, 3]));
    let across = run(Opcode::Transpose, &[&ds], &[], (8, 0, &[6, 3, 4]));
    let columns = run(Opcode::Transpose, &[&q], &[], (8, 0, &[30, 4]));
    let each = run(Opcode::HeadMix, &[&across, &columns], &[heads, 0], (24, 0, &[3, 30]));
    let dk = run(Opcode::GroupSum, &[&each], &[heads, 0], (32, 0, &[3, 10]));
    let at = |values: &[i64], index: i64| values[usize::try_from(index).unwrap()];
    let (q, ds, dk) = (wide(&q), wide(&ds), wide(&dk));
    for s in 0..keys {
        for g in 0..kv_heads {
            for d in 0..width {
                let term = |h, t| at(&ds, (h * tokens + t) * keys + s) * at(&q, t * heads * width + h * width + d);
                let expected: i64 = (3 * g..3 * g + 3).flat_map(|h| (0..tokens).map(move |t| term(h, t))).sum();
                assert_eq!(at(&dk, s * kv_heads * width + g * width + d), expected, "{s} {g} {d}");
            }
        }
    }
    // One group adds all heads; as many groups as heads add nothing.
    let a = tensor(8, 0, &[2, 4], &[1, 2, 3, 4, -5, -6, -7, -8]);
    assert_eq!(wide(&run(Opcode::GroupSum, &[&a], &[2, 0], (8, 0, &[2, 2]))), [4, 6, -12, -14]);
    assert_eq!(wide(&run(Opcode::GroupSum, &[&a], &[2, 0], (8, 0, &[2, 4]))), wide(&a));
}
