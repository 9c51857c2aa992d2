//! Rules N-38 to N-48, and what they added to N-12, N-19, N-21 and N-30.

use tensorlink_types::Opcode;

use super::transformer::{is_bound, is_reduction, refuses_attribute, refuses_precision};
use super::{A, B, C, OUT, Ty, accepts, refuses, refuses_type};

/// An attribute's range: both ends accepted, what lies beyond them refused. `with` puts it among the others.
fn ranges(name: &str, opcode: Opcode, ends: [i64; 2], with: impl Fn(i64) -> (Vec<i64>, [Ty<'static>; 3])) {
    for value in ends {
        let (attributes, [a, b, y]) = with(value);
        accepts(opcode, [a, b].get(..opcode.operands()).unwrap(), &attributes, y);
    }
    let [low, high] = ends;
    for value in [low.checked_sub(1), high.checked_add(1), Some(i64::MIN), Some(i64::MAX)].into_iter().flatten() {
        let (attributes, [a, b, y]) = with(value);
        refuses_attribute(name, opcode, [a, b].get(..opcode.operands()).unwrap(), &attributes, y);
    }
}

const ONE: Ty<'static> = (2, 0, &[1]);
const COEFFICIENTS: [i64; 2] = [1 - (1 << 40), (1 << 40) - 1];
const SHIFTS: [i64; 2] = [-63, 63];
const WORDS: [i64; 2] = [0, (1 << 32) - 1];

#[test]
fn transpose_of_several() {
    let op = Opcode::Transpose;
    accepts(op, &[(8, 3, &[4, 2, 3])], &[], (8, 3, &[4, 3, 2]));
    for dims in [&[4, 2, 3], &[3, 2, 4], &[2, 4, 3], &[12, 2], &[1, 12, 2]] as [&[u32]; 5] {
        refuses_type(OUT, op, &[(8, 3, &[4, 2, 3])], &[], (8, 3, dims));
    }
    refuses_type(OUT, op, &[(8, 3, &[2, 3])], &[], (8, 3, &[1, 3, 2]));
    refuses_type(OUT, op, &[(8, 3, &[4, 2, 3])], &[], (9, 3, &[4, 3, 2]));
    refuses_type(OUT, op, &[(8, 3, &[4, 2, 3])], &[], (8, 4, &[4, 3, 2]));
    for dims in [&[6], &[1, 4, 2, 3]] as [&[u32]; 2] {
        refuses_type(A, op, &[(8, 3, dims)], &[], (8, 3, dims));
    }
}

#[test]
fn parts_of_rows() {
    let a: Ty<'_> = (8, 3, &[2, 12]);
    for (op, attributes) in [(Opcode::RowMax, &[0][..]), (Opcode::RowSum, &[0]), (Opcode::RowAbsMax, &[])] {
        for dims in [&[2], &[2, 3], &[6], &[2, 12]] as [&[u32]; 4] {
            accepts(op, &[a], attributes, (8, 3, dims));
        }
        // Parts that cross rows; parts that are not equal; more parts than elements.
        for dims in [&[1], &[2, 5], &[3], &[2, 24]] as [&[u32]; 4] {
            refuses_type(OUT, op, &[a], attributes, (8, 3, dims));
        }
        accepts(op, &[(8, 0, &[1, 8192])], attributes, (8, 0, &[1, 2]));
        assert!(is_reduction(refuses(op, &[(8, 0, &[1, 8194])], attributes, (8, 0, &[1, 2]))), "{op:?}");
    }
    refuses_type(OUT, Opcode::RowMax, &[a], &[0], (9, 3, &[2, 3]));
    refuses_type(OUT, Opcode::RowMax, &[a], &[0], (8, 4, &[2, 3]));
    refuses_precision("shift", Opcode::RowSum, &[a], &[1], (8, 3, &[2, 3]));
    // What a row sees ends within a part, so a causal row has no parts.
    accepts(Opcode::RowMax, &[a], &[1], (8, 3, &[2]));
    refuses_type(OUT, Opcode::RowMax, &[a], &[1], (8, 3, &[2, 3]));
}

#[test]
fn ids_of_any_shape() {
    let (table, scale, y): (Ty<'_>, Ty<'_>, Ty<'_>) = ((8, 7, &[50, 6]), (16, 12, &[50]), (16, 10, &[9, 6]));
    for dims in [&[9], &[1, 9], &[9, 1], &[3, 3], &[2, 5]] as [&[u32]; 5] {
        accepts(Opcode::Gather, &[table, scale, (32, 0, dims)], &[9], y);
    }
    refuses_type(C, Opcode::Gather, &[table, scale, (32, 0, &[2, 4])], &[9], y);
}

#[test]
fn row_combine() {
    let op = Opcode::RowCombine;
    let (a, y): (Ty<'_>, Ty<'_>) = ((8, 3, &[2, 3, 4]), (16, -9, &[2, 3, 4]));
    for dims in [&[1], &[2], &[2, 3], &[6, 1], &[24], &[4], &[2, 3, 4]] as [&[u32]; 7] {
        accepts(op, &[a, (8, 7, dims)], &[3, -5, 63], y);
    }
    for dims in [&[5], &[7], &[48]] as [&[u32]; 3] {
        refuses_type(B, op, &[a, (8, 7, dims)], &[3, -5, 63], y);
    }
    refuses_type(OUT, op, &[a, (8, 7, &[6])], &[3, -5, 63], (16, -9, &[6, 4]));
    ranges("ca", op, COEFFICIENTS, |c| (vec![c, 0, 0], [ONE; 3]));
    ranges("cb", op, COEFFICIENTS, |c| (vec![0, c, 0], [ONE; 3]));
    ranges("shift", op, SHIFTS, |shift| (vec![1, 1, shift], [ONE; 3]));
    let v: &[u32] = &[4];
    accepts(op, &[(62, 0, v), (62, 0, v)], &[1, -1, 0], (8, 0, v));
    assert!(is_bound(refuses(op, &[(63, 0, v), (62, 0, v)], &[1, -1, 0], (8, 0, v))));
    assert!(is_bound(refuses(op, &[(62, 0, v), (63, 0, v)], &[1, -1, 0], (8, 0, v))));
}

#[test]
fn row_mul() {
    let op = Opcode::RowMul;
    let (a, y): (Ty<'_>, Ty<'_>) = ((8, 3, &[2, 6]), (16, 4, &[2, 6]));
    for dims in [&[1], &[2], &[4], &[2, 6]] as [&[u32]; 4] {
        accepts(op, &[a, (8, 7, dims)], &[6], y);
    }
    refuses_type(B, op, &[a, (8, 7, &[5])], &[6], y);
    refuses_type(B, op, &[a, (8, 7, &[24])], &[6], y);
    refuses_type(OUT, op, &[a, (8, 7, &[2])], &[6], (16, 4, &[12]));
    for shift in [5, 7] {
        refuses_precision("shift", op, &[a, (8, 7, &[2])], &[shift], y);
    }
    for far in [-64, 64] {
        refuses_attribute("shift", op, &[a, (8, 1 + far as i16, &[2])], &[far], y);
    }
    accepts(op, &[(32, 3, &[2, 6]), (32, 7, &[2])], &[6], y);
    assert!(is_bound(refuses(op, &[(33, 3, &[2, 6]), (33, 7, &[2])], &[6], y)));
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
fn at_step() {
    let op = Opcode::AtStep;
    accepts(op, &[(64, 9, &[5])], &[], (64, 9, &[1]));
    accepts(op, &[(64, 9, &[5, 3])], &[], (64, 9, &[3]));
    accepts(op, &[(8, 9, &[1 << 31])], &[], (8, 9, &[1]));
    accepts(op, &[(8, 9, &[1 << 31, 2])], &[], (8, 9, &[2]));
    refuses_type(A, op, &[(8, 9, &[(1 << 31) + 1])], &[], (8, 9, &[1]));
    refuses_type(A, op, &[(8, 9, &[(1 << 31) + 1, 2])], &[], (8, 9, &[2]));
    refuses_type(A, op, &[(8, 9, &[2, 5, 3])], &[], (8, 9, &[3]));
    for dims in [&[2], &[4], &[5], &[15], &[1, 3], &[5, 3]] as [&[u32]; 6] {
        refuses_type(OUT, op, &[(64, 9, &[5, 3])], &[], (64, 9, dims));
    }
    for dims in [&[5], &[1, 1]] as [&[u32]; 2] {
        refuses_type(OUT, op, &[(64, 9, &[5])], &[], (64, 9, dims));
    }
    refuses_type(OUT, op, &[(64, 9, &[5])], &[], (63, 9, &[1]));
    refuses_type(OUT, op, &[(64, 9, &[5])], &[], (64, 8, &[1]));
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
fn slice() {
    let op = Opcode::Slice;
    let a: Ty<'_> = (64, 3, &[2, 9]);
    for (offset, length) in [(0, 9), (0, 7), (1, 7), (2, 7), (8, 1)] {
        accepts(op, &[a], &[offset], (64, 3, &[2, length]));
    }
    for (offset, length) in [(1, 9), (-1, 7), (3, 7), (9, 1), (i64::MIN, 7), (i64::MAX, 7)] {
        refuses_attribute("offset", op, &[a], &[offset], (64, 3, &[2, length]));
    }
    for dims in [&[18], &[1, 2, 9]] as [&[u32]; 2] {
        refuses_type(A, op, &[(64, 3, dims)], &[0], (64, 3, &[2, 7]));
    }
    for dims in [&[2, 10], &[3, 7], &[1, 7], &[14], &[2, 7, 1], &[1, 2, 7]] as [&[u32]; 6] {
        refuses_type(OUT, op, &[a], &[0], (64, 3, dims));
    }
    refuses_type(OUT, op, &[a], &[0], (63, 3, &[2, 7]));
    refuses_type(OUT, op, &[a], &[0], (64, 2, &[2, 7]));
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
