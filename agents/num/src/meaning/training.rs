//! What training adds: gradients against finite differences, optimisers against floats, draws against
//! their distribution.

use tensorlink_types::{B256, JobKey, Opcode};

use super::{distance, run, run_in, tensor, uniform, wide};
use crate::arbitrary::Dice;
use crate::tables::exp2_table;
use crate::{StepContext, Tensor};

/// The gradient of `f` at `x`, by central differences.
fn slope(f: impl Fn(&[f64]) -> f64, x: &[f64]) -> Vec<f64> {
    let moved = |k: usize, by: f64| {
        let mut x = x.to_vec();
        x[k] += by;
        f(&x)
    };
    (0..x.len()).map(|k| (moved(k, 1e-5) - moved(k, -1e-5)) / 2e-5).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Of an operator that draws, in this step of one job.
fn at(step: u32) -> StepContext {
    StepContext { job_key: JobKey(B256::repeat_byte(7)), step }
}

#[test]
fn inverse_norm_is_one_over_the_root() {
    let mut dice = Dice::new(11);
    for length in [1u32, 2, 3, 12, 64, 3000] {
        for (center, mean) in [(true, 0), (false, 0), (true, 5_000), (false, 5_000)] {
            let values: Vec<i64> = (0..4 * length).map(|_| mean + dice.range(-2_000, 2_000)).collect();
            let x = tensor(16, 8, &[2, 2 * length], &values);
            // Two runs in every row; epsilon is 3.
            let epsilon = 3 << (2 * 8 + 8);
            let y = run(Opcode::InverseNorm, &[&x], &[center.into(), epsilon, 14], (32, 28, &[4])).to_f64();
            let expected = x.to_f64();
            for (row, y) in expected.chunks(length as usize).zip(y) {
                let mean = if center { row.iter().sum::<f64>() / f64::from(length) } else { 0.0 };
                let exact = (row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() + 3.0).sqrt().recip();
                assert!((y - exact).abs() < 1e-6 * exact + 4e-9, "{length} {center} {mean}: {y}, not {exact}");
            }
        }
    }
}

/// `dx = r·(h − n·Σ h·n − center·mean(h))` with `h = dy·gain`, `n = (x − mean)·r`, r being InverseNorm.
fn norm_gradient(center: bool) {
    let (mut dice, k) = (Dice::new(12), 48u32);
    let dims: &[u32] = &[3, k];
    let draw = |dice: &mut Dice, dims| uniform(dice, 14, 11, dims);
    let (x, dy, gain) = (draw(&mut dice, dims), draw(&mut dice, dims), draw(&mut dice, &[k]));
    let epsilon = 1 << 20;
    let share = ((1 << 24) as f64 / f64::from(k)).round() as i64;
    let less_mean = |a: &Tensor, sum: &Tensor, e| {
        let operands: &[&Tensor] = &[a, sum];
        run(Opcode::RowCombine, operands, &[1 << 24, -share, 24], (32, e, dims))
    };
    let r = run(Opcode::InverseNorm, &[&x], &[center.into(), epsilon, 15], (24, 24, &[3]));
    let c = match center {
        true => less_mean(&x, &run(Opcode::RowSum, &[&x], &[0], (20, 11, &[3])), 11),
        false => x.clone(),
    };
    let n = run(Opcode::RowMul, &[&c, &r], &[13], (24, 22, dims));
    let h = run(Opcode::Mul, &[&dy, &gain], &[2], (28, 20, dims));
    let projection = run(Opcode::RowSum, &[&run(Opcode::Mul, &[&h, &n], &[22], (30, 20, dims))], &[0], (34, 20, &[3]));
    let along = run(Opcode::RowMul, &[&n, &projection], &[22], (32, 20, dims));
    let across = run(Opcode::Combine, &[&h, &along], &[1, -1, 0], (32, 20, dims));
    let inner = match center {
        true => less_mean(&across, &run(Opcode::RowSum, &[&h], &[0], (34, 20, &[3])), 20),
        false => across,
    };
    let dx = run(Opcode::RowMul, &[&inner, &r], &[24], (32, 20, dims)).to_f64();

    let (gain, epsilon) = (gain.to_f64(), epsilon as f64 / (2.0 * 11.0 + 8.0f64).exp2());
    let rows = |t: &Tensor| t.to_f64().chunks(k as usize).map(<[f64]>::to_vec).collect::<Vec<_>>();
    let expected = rows(&x).into_iter().zip(rows(&dy)).flat_map(|(x, dy)| {
        let loss = |x: &[f64]| {
            let mean = if center { x.iter().sum::<f64>() / f64::from(k) } else { 0.0 };
            let root = (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() + epsilon).sqrt();
            x.iter().zip(&gain).zip(&dy).map(|((x, gain), dy)| dy * gain * (x - mean) / root).sum()
        };
        slope(loss, &x)
    });
    let (far, largest) = (distance(&dx, expected), dx.iter().fold(0.0, |max: f64, dx| max.max(dx.abs())));
    assert!(largest > 0.5 && far < 2e-4, "center {center}: {far} of {largest}");
}

#[test]
fn gradients_of_norms_are_assembled() {
    norm_gradient(true);
    norm_gradient(false);
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

#[test]
fn an_element_of_the_second_stands_for_a_run_of_the_first() {
    let mut dice = Dice::new(14);
    let a = uniform(&mut dice, 12, 3, &[3, 2, 4]);
    for (count, run_length) in [(1u32, 24), (3, 8), (4, 6), (6, 4), (24, 1)] {
        let b = uniform(&mut dice, 12, 5, &[count]);
        let combined = run(Opcode::RowCombine, &[&a, &b], &[3, -7, 0], (40, 0, &[3, 2, 4]));
        let product = run(Opcode::RowMul, &[&a, &b], &[0], (40, 8, &[3, 2, 4]));
        let (a, b) = (wide(&a), wide(&b));
        for (i, (sum, product)) in wide(&combined).into_iter().zip(wide(&product)).enumerate() {
            assert_eq!((sum, product), (3 * a[i] - 7 * b[i / run_length], a[i] * b[i / run_length]), "{count} at {i}");
        }
    }
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

/// Forty steps of Adam with the moments in state, against floats.
#[test]
fn ratio_is_the_direction_of_adam() {
    let (mut dice, epsilon) = (Dice::new(16), 1.0 / 1024.0);
    let dims: &[u32] = &[6];
    let (mut m, mut v) = (tensor(32, 24, dims, &[0; 6]), tensor(46, 40, dims, &[0; 6]));
    let (mut fm, mut fv) = ([0.0f64; 6], [0.0f64; 6]);
    for step in 0..40 {
        // Gradients of very different sizes; of the last there is none.
        let values: Vec<i64> = (0..6).map(|i| if i < 5 { dice.range(-30_000, 30_000) >> (3 * i) } else { 0 }).collect();
        let g = tensor(16, 14, dims, &values);
        let square = run(Opcode::Mul, &[&g, &g], &[-12], (46, 40, dims));
        // Nine tenths and 0.99, with 16 fraction bits.
        m = run(Opcode::Combine, &[&m, &g], &[58982, 6554 << 10, 16], (32, 24, dims));
        v = run(Opcode::Combine, &[&v, &square], &[64881, 655, 16], (46, 40, dims));
        for (i, g) in g.to_f64().into_iter().enumerate() {
            fm[i] = (58982.0 * fm[i] + 6554.0 * g) / 65536.0;
            fv[i] = (64881.0 * fv[i] + 655.0 * g * g) / 65536.0;
        }
        let floor = (epsilon * 20f64.exp2()) as i64;
        let y = run(Opcode::Ratio, &[&m, &v], &[12, floor], (24, 16, dims)).to_f64();
        let expected = fm.iter().zip(fv).map(|(m, v)| m / (v.sqrt() + epsilon));
        let far = distance(&y, expected);
        assert!(far < 3e-3, "step {step}: {far}");
        assert!(y[..3].iter().all(|y| y.abs() > 1e-4) && y[5] == 0.0, "{y:?}");
    }
    // Rounded half up, of both signs; what is below zero under the root counts as zero.
    let (m, v) = (tensor(16, 0, &[5], &[5, -5, 7, -7, 9]), tensor(16, 0, &[5], &[9, 15, -4, -32_767, 0]));
    assert_eq!(wide(&run(Opcode::Ratio, &[&m, &v], &[0, 2], (16, 0, &[5]))), [1, -1, 4, -3, 5]);
}

#[test]
fn shrink_brings_a_norm_down_to_the_limit() {
    let mut dice = Dice::new(17);
    for scale in 0..12 {
        let values: Vec<i64> = (0..50).map(|_| dice.range(-30_000, 30_000) >> scale).collect();
        let g = tensor(16, 10, &[50], &values);
        let squares = run(Opcode::RowSum, &[&run(Opcode::Mul, &[&g, &g], &[0], (32, 20, &[50]))], &[0], (40, 20, &[1]));
        // Two, where the norm has 10 fraction bits.
        let factor = run(Opcode::Shrink, &[&squares], &[2 << 10, 24], (26, 24, &[1]));
        let clipped = run(Opcode::RowMul, &[&g, &factor], &[14], (32, 20, &[50])).to_f64();
        let (g, norm) = (g.to_f64(), dot(&clipped, &clipped).sqrt());
        let before = dot(&g, &g).sqrt();
        assert!((norm - before.min(2.0)).abs() < 4e-3, "{before} became {norm}");
        assert_eq!(before <= 2.0, clipped == g);
        let along = dot(&clipped, &g) / (norm * before);
        assert!((along - 1.0).abs() < 1e-9, "the direction stays: {along}");
    }
    let s = tensor(32, 0, &[6], &[-9, 0, 1, 15, 16, 100]);
    assert_eq!(wide(&run(Opcode::Shrink, &[&s], &[3, 4], (8, 4, &[6]))), [16, 16, 16, 16, 12, 4]);
    assert_eq!(wide(&run(Opcode::Shrink, &[&s], &[3, 4], (4, 4, &[6]))), [7, 7, 7, 7, 7, 4]);
}

#[test]
fn a_schedule_stays_at_its_last_row() {
    let table = tensor(16, 4, &[3, 2], &[1, -2, 3, -4, 5, -6]);
    let rows = [[1, -2], [3, -4], [5, -6], [5, -6], [5, -6]];
    for (step, row) in [0, 1, 2, 3, u32::MAX].into_iter().zip(rows) {
        assert_eq!(wide(&run_in(&at(step), Opcode::AtStep, &[&table], &[], (16, 4, &[2]))), row, "{step}");
    }
    let table = tensor(16, 4, &[2], &[8, 9]);
    let one = |step| wide(&run_in(&at(step), Opcode::AtStep, &[&table], &[], (16, 4, &[1])));
    assert_eq!([one(0), one(1), one(2)], [[8], [9], [9]]);
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

#[test]
fn parts_slices_and_stacks_are_where_they_lie() {
    let mut dice = Dice::new(19);
    let a = uniform(&mut dice, 16, 3, &[3, 12]);
    let parts = |opcode, attributes: &[i64], bits| wide(&run(opcode, &[&a], attributes, (bits, 3, &[3, 4])));
    let (max, sum) = (parts(Opcode::RowMax, &[0], 16), parts(Opcode::RowSum, &[0], 32));
    let slice = |offset, length: u32| wide(&run(Opcode::Slice, &[&a], &[offset], (16, 3, &[3, length])));
    let (middle, last, all) = (slice(5, 4), slice(11, 1), slice(0, 12));
    let a = wide(&a);
    let runs = || a.chunks(3);
    assert_eq!(max, runs().map(|run| *run.iter().max().unwrap()).collect::<Vec<_>>());
    assert_eq!(sum, runs().map(|run| run.iter().sum::<i64>()).collect::<Vec<_>>());
    assert_eq!(middle, a.chunks(12).flat_map(|row| row[5..9].to_vec()).collect::<Vec<_>>());
    assert_eq!((last, all), (vec![a[11], a[23], a[35]], a));

    let stack = uniform(&mut dice, 16, 3, &[3, 4, 5]);
    let across = wide(&run(Opcode::Transpose, &[&stack], &[], (16, 3, &[3, 5, 4])));
    let stack = wide(&stack);
    for (i, y) in across.into_iter().enumerate() {
        let (b, n, m) = (i / 20, i / 4 % 5, i % 4);
        assert_eq!(y, stack[b * 20 + m * 5 + n], "{b} {m} {n}");
    }
}
