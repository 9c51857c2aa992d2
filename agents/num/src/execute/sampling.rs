//! Rules N-32 to N-37.

use tensorlink_types::Operator;

use super::elementwise::blend;
use super::{Rescale, collect, rows, wide};
use crate::checked::{CONTROLS, Perturb, TailSum, WHOLE_SHARE};
use crate::error::OpError;
use crate::fixed::limit;
use crate::philox::philox4x32;
use crate::tensor::Tensor;

type Values = Result<Vec<i64>, OpError>;

/// The place of the first element that none exceeds.
fn first_largest(row: &[i64]) -> usize {
    let before = |best: (usize, i64), next: (usize, i64)| if next.1 > best.1 { next } else { best };
    row.iter().copied().enumerate().reduce(before).map_or(0, |(place, _)| place)
}

pub(super) fn row_arg_max(op: &Operator, a: &Tensor, depth: u64) -> Values {
    // SAFETY of the cast: below 4096.
    collect(op, rows(&wide(a), depth).map(|part| first_largest(part) as i64))
}

pub(super) fn row_pick(op: &Operator, a: &Tensor, place: &Tensor, depth: u64) -> Values {
    let last = depth.saturating_sub(1);
    let pick = |(first, place): (u64, i64)| {
        let place = u64::try_from(place).unwrap_or(0).min(last);
        a.get(first.saturating_mul(depth).saturating_add(place)).unwrap_or_default()
    };
    collect(op, (0u64..).zip(wide(place)).map(pick))
}

pub(super) fn tail_sum(op: &Operator, [a, w, t]: [&Tensor; 3], tail: &TailSum) -> Values {
    let (round, a, t) = (Rescale::new(tail.shift, op), wide(a), wide(t));
    let w = if tail.weighted { wide(w) } else { vec![1; a.len()] };
    let row_length = tail.depth.saturating_mul(tail.parts);
    let row = |((a, w), t): ((_, _), &i64)| {
        let least = t.wrapping_add(tail.bound);
        let sum = move |(a, w): (&[i64], &[i64])| {
            let reached = a.iter().zip(w).filter(|(a, _)| **a >= least);
            reached.fold(0i64, |sum, (_, w)| sum.wrapping_add(*w))
        };
        rows(a, tail.depth).zip(rows(w, tail.depth)).map(move |part| round.apply(sum(part)))
    };
    collect(op, rows(&a, row_length).zip(rows(&w, row_length)).zip(&t).flat_map(row))
}

/// The rows of controls.
fn controls(controls: &[i64]) -> impl Iterator<Item = [i64; CONTROLS as usize]> {
    rows(controls, CONTROLS).map(|row| row.try_into().unwrap_or_default())
}

pub(super) fn threshold(op: &Operator, operands: [&Tensor; 5], parts: u64, step: i64) -> Values {
    let limit = limit(op.output.bits());
    let [t, counts, masses, totals, settings] = operands.map(wide);
    let sum = |row: &[i64]| row.iter().fold(0i64, |sum, x| sum.wrapping_add(*x));
    let sums = rows(&counts, parts).zip(rows(&masses, parts).zip(rows(&totals, parts)));
    let raised = |((t, (counts, (masses, totals))), [_, _, _, k, q, _, _]): ((&i64, _), [i64; 7])| {
        let q = q.clamp(1, WHOLE_SHARE);
        let enough = sum(counts) >= k.max(1) || sum(masses).wrapping_mul(WHOLE_SHARE) >= sum(totals).wrapping_mul(q);
        if enough { t.wrapping_add(step).clamp(limit.wrapping_neg(), limit) } else { *t }
    };
    collect(op, t.iter().zip(sums).zip(controls(&settings)).map(raised))
}

pub(super) fn perturb(op: &Operator, [a, t, settings, table]: [&Tensor; 4], perturb: &Perturb) -> Values {
    let (round, lowest) = (Rescale::new(perturb.shift, op), limit(op.output.bits()).wrapping_neg());
    let (a, t, settings, table) = (wide(a), wide(t), wide(settings), wide(table));
    let table = table.as_slice();
    let row = |((row, t), [_, tau, position, _, _, s0, s1]): ((_, &i64), [i64; 7])| {
        let (least, tau) = (t.wrapping_add(perturb.bound), tau.max(0));
        // SAFETY of the casts: rule N-36 takes seeds, position and place modulo 2^32.
        let (seed, position) = ([s0 as u32, s1 as u32], position as u32);
        let draw = move |v: u64| philox4x32(seed, [v as u32, position, 0, 0]);
        (0u64..).zip(<[i64]>::iter(row)).map(move |(v, a)| match *a {
            a if a < least => lowest,
            a => {
                let [word, ..] = if tau > 0 { draw(v) } else { [0; 4] };
                let noise = if tau > 0 { gumbel(table, word).wrapping_mul(tau) } else { 0 };
                round.apply(a.wrapping_shl(perturb.places).wrapping_add(noise))
            }
        })
    };
    collect(op, rows(&a, perturb.row).zip(&t).zip(controls(&settings)).flat_map(row))
}

/// The draw that a word stands for, 16 fraction bits.
fn gumbel(table: &[i64], word: u32) -> i64 {
    let zeros = word.leading_zeros().min(31);
    // The bits after the leading one; of the last octave there are none.
    let fraction = word.wrapping_shl(zeros).wrapping_shl(1) >> 16;
    let entry = i64::from(zeros).wrapping_mul(257).wrapping_add((fraction >> 8).into());
    Rescale { shift: 8, limit: i64::MAX }.apply(blend(table, entry, (fraction & 0xff).into(), 8))
}

pub(super) fn choose(op: &Operator, [place, best, settings]: [&Tensor; 3], parts: u64, length: i64) -> Values {
    let limit = limit(op.output.bits());
    let (place, best, settings) = (wide(place), wide(best), wide(settings));
    let choice = |((place, best), [chosen, ..]): ((&[i64], &[i64]), [i64; 7])| {
        if chosen == 0 {
            return 0;
        }
        let part = first_largest(best);
        let within = place.get(part).copied().unwrap_or_default();
        // SAFETY of the cast: below 4096.
        (part as i64).wrapping_mul(length).wrapping_add(within).clamp(limit.wrapping_neg(), limit)
    };
    let pairs = rows(&place, parts).zip(rows(&best, parts));
    collect(op, pairs.zip(controls(&settings)).map(choice))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a table of whole steps, a draw is the number of its entry and the rest behind it.
    #[test]
    fn words_tell_octave_and_place() {
        let table: Vec<i64> = (0..32 * 257).map(|entry| entry << 8).collect();
        for (word, octave, rest) in [
            (0, 31, 0),
            (1, 31, 0),
            (2, 30, 0),
            (3, 30, 0x8000),
            (0x8000_0000, 0, 0),
            (0x8000_ffff, 0, 1),
            (0x0001_2345, 15, 0x2345),
            (u32::MAX, 0, 0xffff),
        ] {
            assert_eq!(gumbel(&table, word), octave * (257 << 8) + rest, "{word:#x}");
        }
    }
}
