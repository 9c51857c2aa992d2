//! Tests of rules N-26 and N-27: scores of heads, and what they mix.

use tensorlink_types::Opcode;

use super::drawing::{attribute, count, dim, longest};
use super::meaning::{run, uniform, wide};
use super::refusing::{
    A, B, OUT, Ty, accepts, is_reduction, refuses, refuses_attribute, refuses_precision, refuses_type,
};
use crate::arbitrary::{Case, Dice};

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
fn corners_are_drawn() {
    let kv_heads = |case: &Case| dim(case, 1, 1) * attribute(case, 0) / dim(case, 0, 1);
    let shared = count(Opcode::HeadScores, |case| (2..attribute(case, 0)).contains(&kv_heads(case)));
    let own = count(Opcode::HeadScores, |case| kv_heads(case) == attribute(case, 0));
    assert!(shared > 30 && own > 30, "{shared} shared, {own} not");
    longest(Opcode::HeadScores, 0);
    longest(Opcode::HeadMix, 0);
}

#[test]
fn heads_read_the_keys_and_values_they_share() {
    let (heads, kv_heads, width, tokens, keys) = (6, 2, 5, 4, 3);
    let mut dice = Dice::new(2);
    let q = uniform(&mut dice, 8, 0, &[4, 30]);
    let k = uniform(&mut dice, 8, 0, &[3, 10]);
    let scores = wide(&run(Opcode::HeadScores, &[&q, &k], &[heads, 0], (32, 0, &[6, 4, 3])));
    let p = uniform(&mut dice, 8, 0, &[6, 4, 3]);
    let v = uniform(&mut dice, 8, 0, &[10, 3]);
    let mixed = wide(&run(Opcode::HeadMix, &[&p, &v], &[heads, 0], (32, 0, &[4, 30])));
    let [q, k, p, v] = [q, k, p, v].map(|t| wide(&t));
    let at = |values: &[i64], index: i64| values[usize::try_from(index).unwrap()];
    let mut checked = 0;
    for h in 0..heads {
        // Heads 0, 1, 2 share the first head of keys and values; 3, 4, 5 the second.
        let g = h / 3;
        for t in 0..tokens {
            for s in 0..keys {
                let term = |d| at(&q, t * 30 + h * width + d) * at(&k, s * 10 + g * width + d);
                assert_eq!(at(&scores, (h * tokens + t) * keys + s), (0..width).map(term).sum::<i64>());
                checked += 1;
            }
            for d in 0..width {
                let term = |s| at(&p, (h * tokens + t) * keys + s) * at(&v, (g * width + d) * keys + s);
                assert_eq!(at(&mixed, t * 30 + h * width + d), (0..keys).map(term).sum::<i64>());
                checked += 1;
            }
        }
    }
    assert_eq!((kv_heads, checked), (2, 6 * 4 * (3 + 5)));
}
