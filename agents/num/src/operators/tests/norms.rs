//! Tests of rules N-28 and N-40: rows divided by their spread, and what they are divided by.

use tensorlink_types::Opcode;

use super::drawing::{attribute, both, cases, count, in_parts, longest, values};
use super::meaning::{distance, run, slope, tensor, uniform, wide};
use super::refusing::{
    A, B, C, OUT, Ty, accepts, is_reduction, refuses, refuses_attribute, refuses_precision, refuses_type,
};
use crate::arbitrary::{Case, Dice};
use crate::bounds::{EPSILON_BOUND, MIN_INVERSE_SHIFT, NORM_INPUT_BITS};
use crate::tensor::Tensor;

#[test]
fn norm() {
    let op = Opcode::Norm;
    let (x, gain, bias, y): (Ty<'_>, Ty<'_>, Ty<'_>, Ty<'_>) =
        ((16, 9, &[2, 3, 8]), (16, 12, &[8]), (16, 10, &[1, 8]), (16, 11, &[2, 3, 8]));
    let last = (1 << 60) - 1;
    for (center, epsilon) in [(0, 1), (1, last)] {
        accepts(op, &[x, gain, bias], &[center, epsilon, 22, 21], y);
    }
    accepts(op, &[(16, 256, &[1, 4096]), (16, -20, &[4096]), (16, -40, &[4096])], &[1, 1, 40, 0], (64, 0, &[1, 4096]));
    accepts(op, &[x, gain, (16, 32, &[8])], &[1, 1, 0, 21], y);
    // Two runs in each row; runs of the longest reduction.
    accepts(op, &[x, (16, 12, &[4]), (16, 10, &[4])], &[1, 1, 22, 21], y);
    let (wide, run): (Ty<'_>, Ty<'_>) = ((8, 0, &[1, 12288]), (8, 0, &[4096]));
    accepts(op, &[wide, run, run], &[1, 1, 20, 20], wide);
    for center in [-1, 2] {
        refuses_attribute("center", op, &[x, gain, bias], &[center, 1, 22, 21], y);
    }
    for epsilon in [0, -1, last + 1] {
        refuses_attribute("epsilon", op, &[x, gain, bias], &[1, epsilon, 22, 21], y);
    }
    refuses_attribute("bias_shift", op, &[x, gain, (16, -9, &[8])], &[1, 1, 41, 21], y);
    refuses_attribute("bias_shift", op, &[x, gain, (16, 33, &[8])], &[1, 1, -1, 21], y);
    refuses_precision("bias_shift", op, &[x, gain, bias], &[1, 1, 21, 21], y);
    refuses_precision("shift", op, &[x, gain, bias], &[1, 1, 22, 20], y);
    // More bits of x: a coarser mean, and a finer normalised value.
    accepts(op, &[(20, 9, &[2, 3, 8]), gain, bias], &[1, 1, 22, 21], y);
    accepts(op, &[(22, 9, &[2, 3, 8]), gain, bias], &[1, 1, 24, 23], y);
    accepts(op, &[(24, 9, &[2, 3, 8]), gain, bias], &[1, 1, 26, 25], y);
    refuses_precision("bias_shift", op, &[(24, 9, &[2, 3, 8]), gain, bias], &[1, 1, 22, 21], y);
    refuses_type(A, op, &[(25, 9, &[2, 3, 8]), gain, bias], &[1, 1, 27, 26], y);
    refuses_type(B, op, &[x, (17, 12, &[8]), bias], &[1, 1, 22, 21], y);
    refuses_type(C, op, &[x, gain, (17, 10, &[8])], &[1, 1, 22, 21], y);
    refuses_type(B, op, &[x, (16, 12, &[6]), bias], &[1, 1, 22, 21], y);
    refuses_type(B, op, &[x, (16, 12, &[16]), (16, 10, &[16])], &[1, 1, 22, 21], y);
    for length in [6, 4, 16] {
        refuses_type(C, op, &[x, gain, (16, 10, &[length])], &[1, 1, 22, 21], y);
    }
    refuses_type(OUT, op, &[x, gain, bias], &[1, 1, 22, 21], (16, 11, &[6, 8]));
    let (x, row): (Ty<'_>, Ty<'_>) = ((8, 0, &[1, 4097]), (8, 0, &[4097]));
    assert!(is_reduction(refuses(op, &[x, row, row], &[1, 1, 20, 20], x)));
}

#[test]
fn inverse_norm() {
    let op = Opcode::InverseNorm;
    let (x, y): (Ty<'_>, Ty<'_>) = ((16, 9, &[2, 3, 8]), (16, 11, &[6]));
    let last = (1 << 60) - 1;
    for (center, epsilon) in [(0, 1), (1, last)] {
        accepts(op, &[x], &[center, epsilon, 30], y);
    }
    // One for each head of a row, of rows of any shape.
    for dims in [&[2, 3], &[6, 2], &[2, 3, 8]] as [&[u32]; 3] {
        accepts(op, &[x], &[1, 1, 30], (64, 11, dims));
    }
    for center in [-1, 2] {
        refuses_attribute("center", op, &[x], &[center, 1, 30], y);
    }
    for epsilon in [-1, 0, last + 1] {
        refuses_attribute("epsilon", op, &[x], &[0, epsilon, 30], y);
    }
    for (shift, e) in [(-32, 73), (63, -22)] {
        accepts(op, &[x], &[0, 1, shift], (16, e, &[6]));
    }
    for (shift, e) in [(-33, 74), (64, -23)] {
        refuses_attribute("shift", op, &[x], &[0, 1, shift], (16, e, &[6]));
    }
    for shift in [29, 31] {
        refuses_precision("shift", op, &[x], &[0, 1, shift], y);
    }
    // A coarser mean, and a finer R.
    accepts(op, &[(24, 9, &[2, 3, 8])], &[0, 1, 34], y);
    refuses_precision("shift", op, &[(24, 9, &[2, 3, 8])], &[0, 1, 30], y);
    refuses_type(A, op, &[(25, 9, &[2, 3, 8])], &[0, 1, 34], y);
    // Runs that cross rows; runs that are not equal.
    for dims in [&[2], &[3], &[18]] as [&[u32]; 3] {
        refuses_type(OUT, op, &[x], &[0, 1, 30], (16, 11, dims));
    }
    accepts(op, &[(16, 0, &[1, 8192])], &[0, 1, 50], (16, 0, &[2]));
    assert!(is_reduction(refuses(op, &[(16, 0, &[4097])], &[0, 1, 50], (16, 0, &[1]))));
}

#[test]
fn corners_of_norms_are_drawn() {
    let op = Opcode::Norm;
    assert!(count(op, |case| attribute(case, 0) == 0) > 100, "RMSNorm");
    assert!(count(op, |case| attribute(case, 0) == 1) > 100, "LayerNorm");
    assert!(count(op, |case| attribute(case, 1) == 1) > 30, "least epsilon");
    assert!(count(op, |case| attribute(case, 1) == EPSILON_BOUND - 1) > 30, "largest epsilon");
    let zero = |case: &Case| {
        values(case, 0).chunks(case.operands[0].ty().row() as usize).any(|row| row.iter().all(|x| *x == 0))
    };
    assert!(count(op, zero) > 30, "rows of zeros");
    let runs = |case: &Case| case.operands[1].ty().elements() < case.operands[0].ty().row();
    assert!(count(op, runs) > 20, "runs within a row");
}

#[test]
fn corners_of_inverse_norms_are_drawn() {
    let op = Opcode::InverseNorm;
    both(op, "parts", &in_parts);
    both(op, "mean taken away", &|case| attribute(case, 0) == 1);
    both(op, "large epsilon", &|case| attribute(case, 1) > 1 << 30);
    both(op, "small epsilon", &|case| attribute(case, 1) < 1 << 10);
    // A negative shift less its j.
    both(op, "shift to the left", &|case| attribute(case, 2) < 0);
    assert!(cases(op).all(|case| attribute(&case, 2) >= MIN_INVERSE_SHIFT));
}

#[test]
fn wide_and_long_rows_are_drawn() {
    for opcode in [Opcode::Norm, Opcode::InverseNorm] {
        both(opcode, "wide rows", &|case| case.operands[0].ty().bits() > 16);
        assert!(count(opcode, |case| case.operands[0].ty().bits() == NORM_INPUT_BITS) > 3, "widest rows");
        longest(opcode, 0);
    }
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
