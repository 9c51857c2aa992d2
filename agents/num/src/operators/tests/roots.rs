//! Tests of rules N-42 and N-43: quotients by roots, for optimisers.

use tensorlink_types::Opcode;

use super::drawing::{attribute, both, output, values};
use super::meaning::{distance, dot, run, tensor, wide};
use super::refusing::{A, B, ONE, OUT, Ty, accepts, is_bound, ranges, refuses, refuses_type};
use crate::arbitrary::{Case, Dice};

#[test]
fn ratio() {
    let op = Opcode::Ratio;
    let (m, v, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((16, 9, &[2, 3]), (32, 14, &[2, 3]), (16, 12, &[2, 3]));
    accepts(op, &[m, v], &[10, 1], y);
    accepts(op, &[m, (64, -14, &[2, 3])], &[10, 1], (16, 26, &[2, 3]));
    for e in [13, 15, -1] {
        refuses_type(B, op, &[m, (32, e, &[2, 3])], &[10, 1], y);
    }
    for e in [11, 13] {
        refuses_type(OUT, op, &[m, v], &[10, 1], (16, e, &[2, 3]));
    }
    for dims in [&[6], &[3], &[3, 2]] as [&[u32]; 3] {
        refuses_type(B, op, &[m, (32, 14, dims)], &[10, 1], y);
        refuses_type(OUT, op, &[m, v], &[10, 1], (16, 12, dims));
    }
    ranges("bits", op, [0, 40], |bits| {
        let e = bits.clamp(-1, 41) as i16;
        (vec![bits, 1], [ONE, ONE, (2, e, &[1])])
    });
    ranges("floor", op, [1, (1 << 40) - 1], |floor| (vec![0, floor], [ONE; 3]));
    // 2·m·2^k alone, then with the root and the floor, reaches 2^62.
    let v: &[u32] = &[1];
    let wide = |m, root, floor| ([(m, 0, v), (root, 0, v)], [20, floor], (64, 20, v));
    let (operands, attributes, y) = wide(42, 2, (1 << 21) - 2);
    accepts(op, &operands, &attributes, y);
    for (m, root, floor) in [(42, 2, (1 << 21) - 1), (42, 43, (1 << 21) - 2), (43, 2, 1), (64, 64, 1)] {
        let (operands, attributes, y) = wide(m, root, floor);
        assert!(is_bound(refuses(op, &operands, &attributes, y)), "{m} {root} {floor}");
    }
}

#[test]
fn shrink() {
    let op = Opcode::Shrink;
    accepts(op, &[(64, 14, &[2, 3])], &[9, 16], (18, 16, &[2, 3]));
    accepts(op, &[(64, -14, &[1])], &[9, 16], (2, 16, &[1]));
    for e in [13, 15, -1] {
        refuses_type(A, op, &[(64, e, &[1])], &[9, 16], (18, 16, &[1]));
    }
    for e in [15, 17] {
        refuses_type(OUT, op, &[(64, 14, &[1])], &[9, 16], (18, e, &[1]));
    }
    refuses_type(OUT, op, &[(64, 14, &[2, 3])], &[9, 16], (18, 16, &[6]));
    ranges("limit", op, [1, (1 << 31) - 1], |limit| (vec![limit, 0], [ONE, ONE, ONE]));
    ranges("bits", op, [0, 30], |bits| {
        let e = bits.clamp(-1, 31) as i16;
        (vec![1, bits], [ONE, ONE, (2, e, &[1])])
    });
}

#[test]
fn corners_are_drawn() {
    both(Opcode::Ratio, "roots of what is below zero", &|case| values(case, 1).iter().any(|v| *v < 0));
    both(Opcode::Ratio, "small floors", &|case| attribute(case, 1) < 1 << 10);
    both(Opcode::Ratio, "large floors", &|case| attribute(case, 1) > 1 << 30);
    both(Opcode::Ratio, "no places", &|case| attribute(case, 0) == 0);
    let whole = |case: &Case| (1 << attribute(case, 1)).min(case.operator.output.limit());
    both(Opcode::Shrink, "what is small enough", &|case| output(case).iter().any(|y| *y == whole(case)));
    both(Opcode::Shrink, "what is too large", &|case| output(case).iter().any(|y| *y < whole(case)));
    both(Opcode::Shrink, "sums below zero", &|case| values(case, 0).iter().any(|s| *s < 0));
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
