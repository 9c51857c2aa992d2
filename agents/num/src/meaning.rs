//! Tests that the operators of transformers are what their names say: against floats, or against loops over indices.

use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType};

use crate::arbitrary::Dice;
use crate::tables::exp2_table;
use crate::{Tensor, execute};

fn tensor(bits: u8, exponent: i16, dims: &[u32], values: &[i64]) -> Tensor {
    Tensor::from_wide(TensorType::new(bits, exponent, dims).unwrap(), values).unwrap()
}

fn uniform(dice: &mut Dice, bits: u8, exponent: i16, dims: &[u32]) -> Tensor {
    let ty = TensorType::new(bits, exponent, dims).unwrap();
    let values: Vec<i64> = (0..ty.elements()).map(|_| dice.range(-ty.limit(), ty.limit())).collect();
    Tensor::from_wide(ty, &values).unwrap()
}

fn run(opcode: Opcode, operands: &[&Tensor], attributes: &[i64], output: (u8, i16, &[u32])) -> Tensor {
    let named = operands.iter().map(|t| Operand { source: Source::State(0), ty: t.ty().clone() }).collect();
    let output = TensorType::new(output.0, output.1, output.2).unwrap();
    let operator = Operator { opcode, operands: named, attributes: attributes.to_vec(), output };
    execute(&operator, operands, &Default::default()).unwrap()
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
fn heads_read_the_group_they_share() {
    let (heads, groups, width, tokens, keys) = (6, 2, 5, 4, 3);
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
        // Heads 0, 1, 2 share the first group; 3, 4, 5 the second.
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
    assert_eq!((groups, checked), (2, 6 * 4 * (3 + 5)));
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
