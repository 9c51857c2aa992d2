//! Tests of rules N-46 and N-48: elements dropped, and rounding drawn.

use tensorlink_types::Opcode;

use super::drawing::{any_element, attribute, both, count, output, values};
use super::meaning::{at, run_in, tensor, wide};
use super::refusing::{B, COEFFICIENTS, ONE, OUT, SHIFTS, Ty, WORDS, accepts, is_bound, ranges, refuses, refuses_type};
use crate::arbitrary::Case;

#[test]
fn dropout() {
    let op = Opcode::Dropout;
    let v: &[u32] = &[2, 3];
    accepts(op, &[(8, 3, v)], &[1 << 31, 7, -3, 5], (16, 40, v));
    refuses_type(OUT, op, &[(8, 3, v)], &[1 << 31, 7, 1, 0], (8, 3, &[6]));
    ranges("keep", op, [1, 1 << 32], |keep| (vec![keep, 0, 1, 0], [ONE; 3]));
    ranges("stream", op, WORDS, |stream| (vec![1, stream, 1, 0], [ONE; 3]));
    ranges("c", op, COEFFICIENTS, |c| (vec![1, 0, c, 0], [ONE; 3]));
    ranges("shift", op, SHIFTS, |shift| (vec![1, 0, 1, shift], [ONE; 3]));
    accepts(op, &[(63, 0, v)], &[1, 0, -1, 0], (8, 0, v));
    assert!(is_bound(refuses(op, &[(63, 0, v)], &[1, 0, 2, 0], (8, 0, v))));
    assert!(is_bound(refuses(op, &[(64, 0, v)], &[1, 0, 1, 0], (8, 0, v))));
}

#[test]
fn dither() {
    let op = Opcode::Dither;
    let (p, z, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 5, &[2, 3]), (30, 3, &[2]), (8, 6, &[2, 3]));
    accepts(op, &[p, z], &[4, 9], y);
    accepts(op, &[p, (30, 3, &[1, 2])], &[4, 9], y);
    refuses_type(B, op, &[p, (31, 3, &[2])], &[4, 9], y);
    for length in [1, 3, 6] {
        refuses_type(B, op, &[p, (30, 3, &[length])], &[4, 9], y);
    }
    for e in [5, 7] {
        refuses_type(OUT, op, &[p, z], &[4, 9], (8, e, &[2, 3]));
    }
    refuses_type(OUT, op, &[p, z], &[4, 9], (8, 6, &[6]));
    ranges("bits", op, [0, 32], |bits| {
        let e = bits.clamp(-1, 33) as i16;
        (vec![bits, 0], [ONE, ONE, (2, e, &[1])])
    });
    ranges("stream", op, WORDS, |stream| (vec![0, stream], [ONE; 3]));
    // p·2^k is 2^62 − 2^k at the most, which leaves 2^k for z.
    let v: &[u32] = &[1];
    accepts(op, &[(43, 0, v), (21, 0, v)], &[20, 0], (8, 20, v));
    assert!(is_bound(refuses(op, &[(43, 0, v), (22, 0, v)], &[20, 0], (8, 20, v))));
    assert!(is_bound(refuses(op, &[(44, 0, v), (2, 0, v)], &[20, 0], (8, 20, v))));
    assert!(is_bound(refuses(op, &[(64, 0, v), (30, 0, v)], &[32, 0], (8, 32, v))));
}

#[test]
fn corners_of_dropout_are_drawn() {
    let op = Opcode::Dropout;
    let kept = |case: &Case, kept: bool| any_element(case, |reads| reads.is_empty() != kept);
    both(op, "elements dropped", &|case| kept(case, false));
    both(op, "all kept", &|case| !kept(case, false));
    assert!(count(op, |case| attribute(case, 0) == 1) > 10, "least share");
    assert!(count(op, |case| attribute(case, 0) == 1 << 32) > 10, "largest share");
    both(op, "large streams", &|case| attribute(case, 1) >= 1 << 31);
}

#[test]
fn corners_of_dither_are_drawn() {
    let op = Opcode::Dither;
    both(op, "divisors below one", &|case| values(case, 1).iter().any(|z| *z < 1));
    both(op, "divisors above one", &|case| values(case, 1).iter().any(|z| *z > 1));
    both(op, "dividends below zero", &|case| values(case, 0).iter().any(|p| *p < 0));
    let up = |case: &Case| {
        let (y, z, row) = (output(case), values(case, 1), case.operands[0].ty().row() as usize);
        let exact = |(i, p): (usize, i64)| (i128::from(p) << attribute(case, 0)).div_euclid(z[i / row].max(1).into());
        let floors: Vec<i128> = values(case, 0).into_iter().enumerate().map(exact).collect();
        y.iter()
            .zip(floors)
            .any(|(y, floor)| i128::from(*y) > floor && floor > -i128::from(case.operator.output.limit()))
    };
    both(op, "rounding upwards", &up);
}

#[test]
fn dropout_keeps_a_share_and_the_mean() {
    let (count, a) = (40_000u32, 64);
    let x = tensor(8, 4, &[200, 200], &vec![a; count as usize]);
    for share in [0.9f64, 0.5, 0.1] {
        let keep = (share * 32f64.exp2()) as i64;
        // A factor of 1/share with 16 fraction bits.
        let c = (65536.0 / share).round() as i64;
        let drop = |step, stream| {
            let attributes = [keep, stream, c, 6];
            wide(&run_in(&at(step), Opcode::Dropout, &[&x], &attributes, (32, 14, &[200, 200])))
        };
        let (y, kept) = (drop(0, 3), |y: &[i64]| y.iter().filter(|y| **y != 0).count());
        assert!(y.iter().all(|y| [0, (a * c + 32) >> 6].contains(y)));
        let spread = 5.0 * (share * (1.0 - share) / f64::from(count)).sqrt();
        let actual = kept(&y) as f64 / f64::from(count);
        assert!((actual - share).abs() < spread, "{actual}, not {share}");
        let mean = y.iter().sum::<i64>() as f64 / f64::from(count) / 14f64.exp2();
        assert!((mean / 4.0 - 1.0).abs() < spread / share + 1e-4, "{mean}, not 4");
        // The gradient drops what the value dropped; another stream or step drops others, as often as chance has it.
        assert_eq!(drop(0, 3), y);
        for other in [drop(0, 4), drop(1, 3)] {
            let both = y.iter().zip(&other).filter(|(a, b)| **a != 0 && **b != 0).count() as f64 / f64::from(count);
            assert!((both - share * share).abs() < 0.0125, "{both} in both of {share}");
        }
    }
    let all = |keep| wide(&run_in(&at(0), Opcode::Dropout, &[&x], &[keep, 0, 1, 0], (8, 0, &[200, 200])));
    assert!(all(1 << 32) == wide(&x) && all(1).iter().all(|y| *y == 0));
}

#[test]
fn dithered_quotients_are_right_on_average() {
    let count = 20_000u32;
    let divisors: [i64; 6] = [7, 1000, 3, (1 << 29) - 1, 0, -4];
    let quotients = |p: i64, step| {
        let z = tensor(30, 3, &[6], &divisors);
        let p = tensor(24, 5, &[6, count], &vec![p; 6 * count as usize]);
        wide(&run_in(&at(step), Opcode::Dither, &[&p, &z], &[4, 9], (32, 6, &[6, count])))
    };
    for p in [123_456, -123_456, 1, -1, 0] {
        let y = quotients(p, 2);
        for (row, z) in y.chunks(count as usize).zip(divisors) {
            let exact = (p * 16) as f64 / z.max(1) as f64;
            assert!(row.iter().all(|y| *y == exact.floor() as i64 || *y == exact.ceil() as i64), "{p} by {z}");
            let mean = row.iter().sum::<i64>() as f64 / f64::from(count);
            let part = exact - exact.floor();
            let spread = 5.0 * (part * (1.0 - part) / f64::from(count)).sqrt();
            // A share is as exact as a word is fine.
            assert!((mean - exact).abs() <= spread + 1e-9, "{p} by {z}: {mean}, not {exact}");
        }
        assert_eq!(y != quotients(p, 3), p != 0, "another step draws anew");
    }
}
