//! Tests of rules N-34 and N-35: what of a row reaches a threshold, and thresholds raised.

use tensorlink_types::Opcode;

use super::drawing::{any_controls, attribute, count, longest, output, parts_of_rows, values};
use super::meaning::{run, tensor, wide};
use super::refusing::{
    B, C, D, E, OUT, Ty, accepts, is_bound, is_reduction, refuses, refuses_attribute, refuses_precision, refuses_type,
};
use crate::arbitrary::Dice;
use crate::tables::exp2_table;

#[test]
fn tail_sum() {
    let op = Opcode::TailSum;
    let (a, w, t): (Ty<'_>, Ty<'_>, Ty<'_>) = ((64, 8, &[3, 8192]), (26, 24, &[3, 8192]), (40, 8, &[3]));
    let (mass, count): (Ty<'_>, Ty<'_>) = ((32, 19, &[3, 2]), (14, 0, &[3, 2]));
    let last = (1 << 40) - 1;
    for bound in [-last, 0, last] {
        accepts(op, &[a, w, t], &[bound, 1, 5], mass);
    }
    accepts(op, &[a, w, t], &[0, 0, 0], count);
    accepts(op, &[a, w, (61, 8, &[1, 3])], &[last, 1, 5], mass);
    for bound in [-last - 1, last + 1] {
        refuses_attribute("bound", op, &[a, w, t], &[bound, 1, 5], mass);
    }
    for weighted in [-1, 2] {
        refuses_attribute("weighted", op, &[a, w, t], &[0, weighted, 5], mass);
    }
    refuses_precision("shift", op, &[a, w, t], &[0, 1, 4], mass);
    refuses_precision("shift", op, &[a, w, t], &[0, 0, 5], mass);
    refuses_precision("shift", op, &[a, w, t], &[0, 0, 24], count);
    refuses_type(B, op, &[a, (26, 24, &[3, 8191]), t], &[0, 1, 5], mass);
    refuses_type(B, op, &[a, (26, 24, &[2, 8192]), t], &[0, 1, 5], mass);
    refuses_type(C, op, &[a, w, (40, 8, &[2])], &[0, 1, 5], mass);
    refuses_type(C, op, &[a, w, (40, 7, &[3])], &[0, 1, 5], mass);
    refuses_type(OUT, op, &[a, w, t], &[0, 1, 5], (32, 19, &[3, 5]));
    assert!(is_bound(refuses(op, &[a, w, (63, 8, &[3])], &[1, 1, 5], mass)));
    accepts(op, &[a, (32, 24, &[3, 8192]), t], &[0, 1, 5], mass);
    for attributes in [[0, 1, 5], [0, 0, 0]] {
        refuses_type(B, op, &[a, (33, 24, &[3, 8192]), t], &attributes, if attributes[1] == 1 { mass } else { count });
    }
    let (long, one): (Ty<'_>, Ty<'_>) = ((8, 0, &[1, 4097]), (8, 0, &[1]));
    assert!(is_reduction(refuses(op, &[long, long, one], &[0, 1, 0], one)));
}

#[test]
fn threshold() {
    let op = Opcode::Threshold;
    let (t, counts, masses): (Ty<'_>, Ty<'_>, Ty<'_>) = ((61, 8, &[3]), (14, 0, &[3, 4]), (32, 19, &[3, 4]));
    let controls: Ty<'_> = (33, 0, &[3, 7]);
    let all = [t, counts, masses, masses, controls];
    let with = |place: usize, ty| {
        let mut operands = all;
        operands[place] = ty;
        operands
    };
    let last = (1 << 40) - 1;
    for step in [0, 1, last] {
        accepts(op, &all, &[step], t);
    }
    for step in [-1, last + 1] {
        refuses_attribute("step", op, &all, &[step], t);
    }
    accepts(op, &with(4, (64, 0, &[3, 1, 7])), &[1], t);
    refuses_type(B, op, &with(1, (14, 0, &[2, 4])), &[1], t);
    refuses_type(B, op, &with(1, (14, 1, &[3, 4])), &[1], t);
    refuses_type(C, op, &with(2, (32, 19, &[3, 5])), &[1], t);
    refuses_type(C, op, &with(2, (33, 19, &[3, 4])), &[1], t);
    refuses_type(D, op, &with(3, (32, 19, &[4, 3])), &[1], t);
    refuses_type(D, op, &with(3, (31, 19, &[3, 4])), &[1], t);
    refuses_type(D, op, &with(3, (32, 18, &[3, 4])), &[1], t);
    refuses_type(E, op, &with(4, (33, 0, &[3, 6])), &[1], t);
    refuses_type(E, op, &with(4, (33, 0, &[7, 3])), &[1], t);
    refuses_type(E, op, &with(4, (33, 1, &[3, 7])), &[1], t);
    refuses_type(OUT, op, &all, &[1], (61, 8, &[1, 3]));
    refuses_type(OUT, op, &all, &[1], (60, 8, &[3]));
    assert!(is_bound(refuses(op, &with(0, (63, 8, &[3])), &[1], (63, 8, &[3]))));
    assert!(is_bound(refuses(op, &with(1, (62, 0, &[3, 4])), &[1], t)));
    let (one, long): (Ty<'_>, Ty<'_>) = ((8, 0, &[1]), (8, 0, &[1, 4097]));
    assert!(is_reduction(refuses(op, &[one, long, long, long, (8, 0, &[7])], &[1], one)));
}

#[test]
fn corners_of_tails_are_drawn() {
    let op = Opcode::TailSum;
    parts_of_rows(op);
    longest(op, 0);
    let weighted = count(op, |case| attribute(case, 1) == 1);
    assert!(weighted > 100 && weighted < 300, "{weighted} sums are weighted");
    let reaching = |wanted: fn(usize, usize) -> bool| {
        count(op, |case| {
            let (a, t, bound) = (values(case, 0), values(case, 2), attribute(case, 0));
            let rows = a.chunks(case.operands[0].ty().row() as usize).zip(&t);
            let mut rows = rows.map(|(row, t)| (row.iter().filter(|a| **a >= t + bound).count(), row.len()));
            rows.any(|(reaching, all)| wanted(reaching, all))
        })
    };
    assert!(reaching(|some, all| 0 < some && some < all) > 60, "some reach");
    assert!(reaching(|some, _| some == 0) > 60 && reaching(|some, all| some == all) > 60, "none or all reach");
}

#[test]
fn corners_of_thresholds_are_drawn() {
    let op = Opcode::Threshold;
    longest(op, 1);
    let raised = count(op, |case| output(case) != values(case, 0));
    let kept = count(op, |case| output(case).iter().zip(values(case, 0)).any(|(y, t)| *y == t));
    assert!(raised > 60 && kept > 60, "{raised} raised, {kept} kept");
    let controls = |wanted: fn(&[i64]) -> bool| count(op, |case| any_controls(case, 4, wanted));
    assert!(controls(|row| row[3] < 1) > 30, "least k");
    assert!(controls(|row| row[4] < 1) > 30, "least q");
    assert!(controls(|row| row[4] > 1 << 16) > 30, "largest q");
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
