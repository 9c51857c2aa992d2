//! Tests of rule N-36: elements perturbed by Gumbel draws.

use tensorlink_types::Opcode;

use super::drawing::{any_controls, any_element, count};
use super::meaning::{run, tensor, wide};
use super::refusing::{
    A, B, C, D, OUT, Ty, accepts, is_bound, refuses, refuses_attribute, refuses_precision, refuses_type,
};
use crate::arbitrary::{Case, Dice};
use crate::philox::philox4x32;
use crate::tables::gumbel_table;
use crate::tensor::Tensor;

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
fn corners_are_drawn() {
    let op = Opcode::Perturb;
    for wanted in [|tau: i64| tau < 0, |tau| tau == 0, |tau| tau > 0] {
        assert!(count(op, |case| any_controls(case, 2, |row| wanted(row[1]))) > 60, "temperatures");
    }
    let drawn = |case: &Case, drawn: bool| any_element(case, |reads| reads.iter().any(|r| r.operand == 3) == drawn);
    assert!(count(op, |case| drawn(case, true)) > 100, "draws");
    assert!(count(op, |case| drawn(case, false)) > 100, "elements without a draw");
}

/// `−ln(−ln(1 − w/2^32))` of a word w. Coarsest is the table where draws are lowest, its last cell holding 1 of
/// 512 words.
#[test]
fn draws_follow_the_gumbel_distribution() {
    let table = gumbel_table().unwrap();
    let words = 400u32;
    let mut dice = Dice::new(8);
    let seeds: Vec<i64> = (0..words).flat_map(|_| [1, 4096, 3, 0, 0, dice.range(0, 1 << 30), 9]).collect();
    let controls = tensor(32, 0, &[words, 7], &seeds);
    let a = tensor(8, 0, &[words, 50], &vec![0; 50 * words as usize]);
    let t = tensor(8, 0, &[words], &vec![-100; words as usize]);
    let draws = run(Opcode::Perturb, &[&a, &t, &controls, &table], &[0, 12], (32, 16, &[words, 50])).to_f64();
    let mut exact = 0.0f64;
    for (index, g) in draws.iter().enumerate() {
        let (seed, v) = (seeds[7 * (index / 50) + 5] as u32, (index % 50) as u32);
        let [word, ..] = philox4x32([seed, 9], [v, 3, 0, 0]);
        // The chance of a larger draw, which is small where the draw is large.
        let (larger, wanted) = (-(-(-g).exp()).exp_m1(), f64::from(word) / 32f64.exp2());
        exact = exact.max((larger - wanted).abs() / wanted.max(1.0 / 256.0));
    }
    assert!(exact < 1.0 / 512.0, "{exact}");
}

#[test]
fn perturbed_rows_are_samples_of_their_softmax() {
    let rows = 20_000u32;
    let logits = [0.0f64, 1.0, -1.5, 2.0, 0.5, 1.9];
    let temperature = 1.3;
    let row: Vec<i64> = logits.iter().map(|x| (x * 256.0).round() as i64).collect();
    let a = tensor(16, 8, &[rows, 6], &row.repeat(rows as usize));
    // The third is below the threshold.
    let t = tensor(16, 8, &[rows], &vec![-200; rows as usize]);
    let tau = (temperature * 4096.0f64).round() as i64;
    let settings: Vec<i64> = (0..i64::from(rows)).flat_map(|m| [1, tau, m, 0, 0, -5, 77]).collect();
    let controls = tensor(32, 0, &[rows, 7], &settings);
    let perturb = |controls: &Tensor| {
        run(Opcode::Perturb, &[&a, &t, controls, &gumbel_table().unwrap()], &[0, 12], (32, 16, &[rows, 6]))
    };
    let places = wide(&run(Opcode::RowArgMax, &[&perturb(&controls)], &[], (32, 0, &[rows])));
    let weight = |x: f64| (x / temperature).exp();
    let total: f64 = logits.iter().filter(|x| **x > -1.0).map(|x| weight(*x)).sum();
    for (place, x) in logits.iter().enumerate() {
        let drawn = places.iter().filter(|p| **p == place as i64).count() as f64 / f64::from(rows);
        let expected = if place == 2 { 0.0 } else { weight(*x) / total };
        // Five standard deviations of 20,000 draws are at most 0.018.
        assert!((drawn - expected).abs() < 0.018, "{place}: {drawn}, not {expected}");
    }
    // Without temperature, the element itself; below the threshold, the lowest number.
    let still: Vec<i64> = settings.chunks(7).flat_map(|row| [1, 0, row[2], 0, 0, 3, 4]).collect();
    let first = wide(&perturb(&tensor(32, 0, &[rows, 7], &still)))[..6].to_vec();
    assert_eq!(first[..2], [0, 256 << 8]);
    assert_eq!(first[2], -i64::from(i32::MAX));
}
