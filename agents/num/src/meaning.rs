//! Tests that operators are what their names say, against floats or loops over indices: those of transformers here,
//! those that training adds in `training`.

mod training;

use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};

use crate::arbitrary::Dice;
use crate::philox::philox4x32;
use crate::tables::{exp2_table, gumbel_table};
use crate::{StepContext, Tensor, execute};

fn tensor(bits: u8, exponent: i16, dims: &[u32], values: &[i64]) -> Tensor {
    Tensor::from_wide(TensorType::new(bits, exponent, dims).unwrap(), values).unwrap()
}

fn uniform(dice: &mut Dice, bits: u8, exponent: i16, dims: &[u32]) -> Tensor {
    let ty = TensorType::new(bits, exponent, dims).unwrap();
    let values: Vec<i64> = (0..ty.elements()).map(|_| dice.range(-ty.limit(), ty.limit())).collect();
    Tensor::from_wide(ty, &values).unwrap()
}

fn run(opcode: Opcode, operands: &[&Tensor], attributes: &[i64], output: (u8, i16, &[u32])) -> Tensor {
    run_in(&StepContext::default(), opcode, operands, attributes, output)
}

fn run_in(
    context: &StepContext,
    opcode: Opcode,
    operands: &[&Tensor],
    attributes: &[i64],
    output: (u8, i16, &[u32]),
) -> Tensor {
    let named = operands.iter().map(|t| Operand { source: Source::State(0), ty: t.ty().clone() }).collect();
    let output = TensorType::new(output.0, output.1, output.2).unwrap();
    let operator = Operator { opcode, operands: named, attributes: attributes.to_vec(), output };
    execute(&operator, operands, context).unwrap()
}

fn wide(tensor: &Tensor) -> Vec<i64> {
    tensor.mantissas().to_vec()
}

/// The largest difference of two lists of values.
fn distance(actual: &[f64], expected: impl IntoIterator<Item = f64>) -> f64 {
    let expected: Vec<f64> = expected.into_iter().collect();
    assert_eq!(actual.len(), expected.len());
    actual.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Gain 1 and bias 1/4; values of about `2^scale`, of mean 0 or not.
fn norms(length: u32, center: bool, scale: i16, offset: i64) {
    let mut dice = Dice::new(u64::from(length));
    let (k, ex) = (f64::from(length), 8);
    let values: Vec<i64> =
        (0..2 * length).map(|_| dice.range(-(1 << (scale + ex)), 1 << (scale + ex)) + offset).collect();
    let x = tensor(16, ex, &[2, length], &values);
    let root = (k.sqrt() * 512.0).round() as i64;
    let gain = tensor(16, 9, &[length], &vec![root; length as usize]);
    let bias = tensor(8, 2, &[length], &vec![1; length as usize]);
    let epsilon = 1e-5;
    let attributes = [center.into(), (epsilon * k * f64::from(2 * ex + 8).exp2()).round() as i64, 27, 17];
    let y = run(Opcode::Norm, &[&x, &gain, &bias], &attributes, (16, 12, &[2, length])).to_f64();
    let expected = x.to_f64();
    let expected = expected.chunks(length as usize).flat_map(|row| {
        let mean = if center { row.iter().sum::<f64>() / k } else { 0.0 };
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / k;
        row.iter().map(move |x| (x - mean) / (variance + epsilon).sqrt() + 0.25).collect::<Vec<_>>()
    });
    let distance = distance(&y, expected);
    assert!(distance < 2e-3, "{length} {center} {scale} {offset}: {distance}");
}

#[test]
fn norm_is_layer_norm_or_rms_norm() {
    for length in [1, 2, 3, 64, 300, 768, 3000] {
        for center in [true, false] {
            norms(length, center, 6, 0);
            norms(length, center, 0, 0);
        }
        // Half a unit of the rounded mean is 1/32 of a mantissa.
        norms(length, true, 4, 20_000);
    }
}

/// As norms of queries and keys are, one for each head.
#[test]
fn norm_takes_runs_within_a_row_by_themselves() {
    let mut dice = Dice::new(5);
    let x = uniform(&mut dice, 12, 8, &[2, 12]);
    let [gain, bias] = [uniform(&mut dice, 12, 8, &[4]), uniform(&mut dice, 12, 8, &[4])];
    let attributes = [1, 77, 20, 14];
    let whole = wide(&run(Opcode::Norm, &[&x, &gain, &bias], &attributes, (16, 14, &[2, 12])));
    for (x, y) in wide(&x).chunks(4).zip(whole.chunks(4)) {
        let alone = tensor(12, 8, &[1, 4], x);
        assert_eq!(wide(&run(Opcode::Norm, &[&alone, &gain, &bias], &attributes, (16, 14, &[1, 4]))), y);
    }
}

#[test]
fn rope_rotates_the_front_of_every_head() {
    let (heads, width, rotating, tokens) = (3usize, 10usize, 8usize, 7usize);
    let mut dice = Dice::new(1);
    let x = uniform(&mut dice, 16, 12, &[7, 30]);
    let half = rotating / 2;
    let angle = |t: usize, j: usize| t as f64 * 10_000f64.powf(-2.0 * j as f64 / rotating as f64);
    let turn = |(t, j): (usize, usize)| if j < half { angle(t, j).cos() } else { angle(t, j - half).sin() };
    let table: Vec<i64> = (0..tokens + 2)
        .flat_map(|t| (0..rotating).map(move |j| (t, j)))
        .map(|at| (turn(at) * 16384.0).round() as i64)
        .collect();
    let table = tensor(16, 14, &[9, 8], &table);
    let y = run(Opcode::Rope, &[&x, &table], &[heads as i64, 14], (18, 12, &[7, 30])).to_f64();
    let x = x.to_f64();
    let expected = (0..tokens * heads * width).map(|index| {
        let (t, i) = (index / (heads * width), index % width);
        let (low, high) = (|j: usize| x[index - i + j], |j: usize| x[index - i + j + half]);
        match i {
            i if i < half => low(i) * angle(t, i).cos() - high(i) * angle(t, i).sin(),
            i if i < rotating => high(i - half) * angle(t, i - half).cos() + low(i - half) * angle(t, i - half).sin(),
            _ => x[index],
        }
    });
    assert!(distance(&y, expected) < 2e-3);
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
    // More keys than tokens: the last row sees as many as there are tokens.
    let wide_scores = tensor(8, 0, &[2, 4], &[1, 9, 9, 9, 1, 2, 9, 9]);
    assert_eq!(wide(&run(Opcode::RowMax, &[&wide_scores], &[1], (8, 0, &[2]))), [1, 2]);
    // More tokens than keys: a row sees no more than it has.
    let tall = tensor(8, 0, &[3, 2], &[1, 9, 1, 9, 1, 9]);
    assert_eq!(wide(&run(Opcode::RowMax, &[&tall], &[1], (8, 0, &[3]))), [1, 9, 9]);
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
fn gather_takes_the_nearest_row() {
    let table = tensor(8, 0, &[3, 2], &[1, -2, 3, -4, 5, -6]);
    let scale = tensor(8, 0, &[3], &[10, -1, 7]);
    let limit = i64::MAX;
    let ids = tensor(64, 0, &[8], &[0, 1, 2, 3, limit, -1, -limit, 1]);
    // Seven tokens of eight: the last is not read.
    let y = run(Opcode::Gather, &[&table, &scale, &ids], &[0], (16, 0, &[7, 2]));
    assert_eq!(wide(&y), [10, -20, -3, 4, 35, -42, 35, -42, 35, -42, 10, -20, 10, -20]);
}

#[test]
fn magnitudes_have_no_sign() {
    let a = tensor(64, 5, &[3, 2], &[0, 0, -7, 3, i64::MAX, -i64::MAX]);
    assert_eq!(wide(&run(Opcode::RowAbsMax, &[&a], &[], (64, 5, &[3]))), [0, 7, i64::MAX]);
}

/// Rows that fit stay as they are; others lose the places that they have too many.
#[test]
fn rows_are_shifted_until_they_fit() {
    let rows = [[0, 0, 0], [127, -3, 1], [128, -3, 5], [-255, 255, 1], [-256, 6, 10], [1 << 20, 7, -(1 << 22)]];
    let a = tensor(24, 5, &[6, 3], rows.as_flattened());
    let shifts = run(Opcode::RowShift, &[&a], &[8], (8, 0, &[6]));
    assert_eq!(wide(&shifts), [0, 0, 1, 1, 2, 16]);
    let y = run(Opcode::ShiftRows, &[&a, &shifts], &[], (8, 5, &[6, 3]));
    // Half to even: 5/2 is 2, 255/2 is beyond 127, 6/4 is 2, 10/4 is 2.
    let shifted = [[0, 0, 0], [127, -3, 1], [64, -2, 2], [-127, 127, 0], [-64, 2, 2], [16, 0, -64]];
    assert_eq!(wide(&y), shifted.as_flattened());
    // Numbers that are no shift are taken as the nearest that is one.
    let far = tensor(64, 0, &[6], &[-1, i64::MIN + 1, 31, 32, i64::MAX, 0]);
    let far = wide(&run(Opcode::ShiftRows, &[&a, &far], &[], (24, 5, &[6, 3])));
    assert_eq!(far, [rows[0], rows[1], [0; 3], [0; 3], [0; 3], rows[5]].concat());
}

/// A product of shifted rows is that of the rows, but for what the shifts cut off.
#[test]
fn products_of_shifted_rows_are_those_of_the_rows() {
    let mut dice = Dice::new(5);
    let (a, b) = (uniform(&mut dice, 24, 10, &[4, 50]), uniform(&mut dice, 8, 7, &[6, 50]));
    let c = uniform(&mut dice, 18, 12, &[6]);
    let shifts = run(Opcode::RowShift, &[&a], &[16], (8, 0, &[4]));
    let shifted = run(Opcode::ShiftRows, &[&a, &shifts], &[], (16, 10, &[4, 50]));
    let y = run(Opcode::ShiftedMatMul, &[&shifted, &b, &shifts, &c], &[0, 29], (64, 0, &[4, 6]));
    let (a, b, c) = (a.to_f64(), b.to_f64(), c.to_f64());
    for (i, y) in y.to_f64().into_iter().enumerate() {
        let (a, b) = (&a[i / 6 * 50..][..50], &b[i % 6 * 50..][..50]);
        let due = c[i % 6] * a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cut_off = c[i % 6].abs() * b.iter().map(|b| b.abs()).sum::<f64>() * 128.0 / 1024.0;
        assert!((y - due).abs() <= cut_off + 0.5, "{i}: {y}, not {due}");
    }
}

#[test]
fn the_first_of_the_largest_is_taken() {
    let a = tensor(8, 5, &[2, 6], &[1, 7, 7, -3, -3, -9, 0, 0, 0, -1, 5, 5]);
    let best = |parts: u32| run(Opcode::RowArgMax, &[&a], &[], (32, 0, &[2, parts]));
    assert_eq!(wide(&best(1)), [1, 4]);
    assert_eq!(wide(&best(2)), [1, 0, 0, 1]);
    assert_eq!(wide(&best(6)), [0; 12]);
    let picked = run(Opcode::RowPick, &[&a, &best(2)], &[], (8, 5, &[2, 2]));
    assert_eq!(wide(&picked), [7, -3, 0, 5]);
    let outside = tensor(8, 0, &[4], &[-1, 3, 127, 2]);
    assert_eq!(wide(&run(Opcode::RowPick, &[&a, &outside], &[], (8, 5, &[2, 2]))), [1, -9, 0, 5]);
    let controls = |chosen: [i64; 2]| tensor(8, 0, &[2, 7], &chosen.map(|c| [c, 0, 0, 0, 0, 0, 0]).concat());
    let choose = |chosen| wide(&run(Opcode::Choose, &[&best(2), &picked, &controls(chosen)], &[3], (32, 0, &[2])));
    assert_eq!(choose([1, -1]), [1, 4]);
    assert_eq!(choose([0, 1]), [0, 4]);
}

/// A search bit by bit, as programs do it: the threshold that keeps the k likeliest and the share q of all.
#[test]
fn thresholds_keep_the_likeliest() {
    let mut dice = Dice::new(7);
    let (rows, length) = (40usize, 30usize);
    let a: Vec<i64> = (0..rows * length).map(|_| dice.range(-100, 100)).collect();
    let a = tensor(16, 4, &[40, 30], &a);
    let max = run(Opcode::RowMax, &[&a], &[0], (16, 4, &[40]));
    let w = run(Opcode::ExpNeg, &[&a, &max, &exp2_table().unwrap()], &[23637, 2, 0], (26, 24, &[40, 30]));
    let total = run(Opcode::RowSum, &[&w], &[0], (32, 24, &[40, 1]));
    let settings: Vec<[i64; 7]> = (0..rows as i64).map(|m| [1, 0, 0, m - 1, (m * 2500) - 1, 0, 0]).collect();
    let controls = tensor(32, 0, &[40, 7], &settings.concat());
    let mut t = tensor(16, 4, &[40], &[-128; 40]);
    for step in (0..8).rev().map(|bit| 1 << bit) {
        let counts = run(Opcode::TailSum, &[&a, &w, &t], &[step, 0, 0], (14, 0, &[40, 1]));
        let masses = run(Opcode::TailSum, &[&a, &w, &t], &[step, 1, 0], (32, 24, &[40, 1]));
        t = run(Opcode::Threshold, &[&t, &counts, &masses, &total, &controls], &[step], (16, 4, &[40]));
    }
    let (a, w, t, total) = (wide(&a), wide(&w), wide(&t), wide(&total));
    for m in 0..rows {
        let row = m * length..(m + 1) * length;
        let [_, _, _, k, q, _, _] = settings[m];
        let holds = |threshold: i64| {
            let kept = a[row.clone()].iter().zip(&w[row.clone()]).filter(|(a, _)| **a >= threshold);
            let (count, mass) = kept.fold((0, 0), |(count, mass), (_, w)| (count + 1, mass + w));
            count >= k.max(1) || (mass << 16) >= q.clamp(1, 1 << 16) * total[m]
        };
        assert_eq!(Some(t[m]), (-128..=127).rev().find(|t| holds(*t)), "row {m}");
        assert!(a[row].iter().any(|a| *a >= t[m]), "row {m} keeps the largest");
    }
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
