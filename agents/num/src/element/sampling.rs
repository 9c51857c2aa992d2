//! Rules N-32 to N-37: how a token is chosen.

use super::Site;
use super::tables::Cell;
use crate::checked::{CONTROLS, Perturb, TailSum, WHOLE_SHARE};
use crate::error::OpError;
use crate::fixed::rescale;
use crate::philox::philox4x32;

/// Entries of the table of Gumbel draws for each number of leading zeros.
const OCTAVE: u64 = 257;

/// A row of controls.
pub(super) struct Controls([i128; CONTROLS as usize]);

impl Controls {
    fn temperature(&self) -> i128 {
        let [_, temperature, ..] = self.0;
        temperature.max(0)
    }

    /// Output word 0 of Philox4x32-10 for place `v` of a row.
    fn draw(&self, v: u64) -> u32 {
        let [_, _, position, _, _, s0, s1] = self.0;
        // SAFETY of the casts: rule N-36 takes each modulo 2^32.
        let [word, ..] = philox4x32([s0 as u32, s1 as u32], [v as u32, position as u32, 0, 0]);
        word
    }
}

impl<F: Fn(usize, u64) -> Option<i64>> Site<'_, F> {
    /// Row m of the controls, given by this operand.
    fn controls(&self, operand: usize, m: u64) -> Result<Controls, OpError> {
        let mut row = [0; CONTROLS as usize];
        for (i, slot) in (m.saturating_mul(CONTROLS)..).zip(&mut row) {
            *slot = self.get(operand, i)?;
        }
        Ok(Controls(row))
    }

    /// The place of the first largest of `count` elements of an operand from `first` on.
    pub(super) fn first_largest(&self, operand: usize, first: u64, count: u64) -> Result<u64, OpError> {
        let (mut place, mut largest) = (0, i128::MIN);
        for k in 0..count {
            let x = self.get(operand, first.saturating_add(k))?;
            if x > largest {
                (place, largest) = (k, x);
            }
        }
        Ok(place)
    }

    /// Rule N-33: the index of the element picked.
    pub(super) fn picked(&self, depth: u64) -> Result<u64, OpError> {
        let last = i128::from(depth).saturating_sub(1).max(0);
        // SAFETY of the cast: clamped between 0 and a length.
        let place = self.get(1, self.index)?.clamp(0, last) as u64;
        Ok(self.index.saturating_mul(depth).saturating_add(place))
    }

    pub(super) fn tail_sum(&self, tail: &TailSum) -> Result<i128, OpError> {
        let first = self.index.saturating_mul(tail.depth);
        let least = self.get(2, self.split(tail.parts).0)?.saturating_add(tail.bound.into());
        (first..first.saturating_add(tail.depth)).try_fold(0i128, |sum, i| {
            let unit = if tail.weighted { self.get(1, i)? } else { 1 };
            Ok(if self.get(0, i)? >= least { sum.saturating_add(unit) } else { sum })
        })
    }

    pub(super) fn threshold(&self, parts: u64, step: i64) -> Result<i128, OpError> {
        let first = self.index.saturating_mul(parts);
        let sum = |operand| {
            (first..first.saturating_add(parts))
                .try_fold(0i128, |sum, i| Ok::<_, OpError>(sum.saturating_add(self.get(operand, i)?)))
        };
        let (t, counts, masses, totals) = (self.get(0, self.index)?, sum(1)?, sum(2)?, sum(3)?);
        let Controls([_, _, _, k, q, _, _]) = self.controls(4, self.index)?;
        let whole = i128::from(WHOLE_SHARE);
        let heavy = masses.saturating_mul(whole) >= totals.saturating_mul(q.clamp(1, whole));
        Ok(if counts >= k.max(1) || heavy { t.saturating_add(step.into()) } else { t })
    }

    /// The accumulator of rule N-36; none where the element is below its threshold.
    pub(super) fn perturbed(&self, perturb: &Perturb) -> Result<Option<i128>, OpError> {
        let (m, v) = self.split(perturb.row);
        let (a, controls) = (self.get(0, self.index)?, self.controls(2, m)?);
        if a < self.get(1, m)?.saturating_add(perturb.bound.into()) {
            return Ok(None);
        }
        let x = a.saturating_mul(1i128.wrapping_shl(perturb.places));
        let tau = controls.temperature();
        if tau == 0 {
            return Ok(Some(x));
        }
        let g = rescale(self.interpolate(3, &gumbel_cell(controls.draw(v)), 8)?, 8, 63);
        Ok(Some(x.saturating_add(tau.saturating_mul(g.into()))))
    }

    /// Where in its table Perturb finds its draw; none where it draws nothing.
    pub(super) fn perturb_cell(&self, perturb: &Perturb) -> Result<Option<Cell>, OpError> {
        let (m, v) = self.split(perturb.row);
        let least = self.get(1, m)?.saturating_add(perturb.bound.into());
        let controls = self.controls(2, m)?;
        let draws = self.get(0, self.index)? >= least && controls.temperature() > 0;
        Ok(draws.then(|| gumbel_cell(controls.draw(v))))
    }

    pub(super) fn choice(&self, parts: u64, length: i64) -> Result<i128, OpError> {
        let first = self.index.saturating_mul(parts);
        let (part, Controls([chosen, ..])) = (self.first_largest(1, first, parts)?, self.controls(2, self.index)?);
        let mut within = 0;
        for k in 0..parts {
            let place = self.get(0, first.saturating_add(k))?;
            if k == part {
                within = place;
            }
        }
        Ok(if chosen == 0 { 0 } else { i128::from(part).saturating_mul(length.into()).saturating_add(within) })
    }
}

/// The cell of a word: its leading zeros tell the octave, the 16 bits after its leading one the place in it.
fn gumbel_cell(word: u32) -> Cell {
    let n = word.leading_zeros().min(31);
    let shifted = u64::from(word).wrapping_shl(n.saturating_add(1)) & u64::from(u32::MAX);
    let m = shifted >> 16;
    let entry = u64::from(n).saturating_mul(OCTAVE).saturating_add(m >> 8);
    Cell { entry, rest: (m & 0xff).into(), octaves: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_octave_and_place() {
        let cell = |word| {
            let Cell { entry, rest, .. } = gumbel_cell(word);
            (entry / OCTAVE, entry % OCTAVE, rest)
        };
        for (word, expected) in [
            (0, (31, 0, 0)),
            (1, (31, 0, 0)),
            (2, (30, 0, 0)),
            (3, (30, 128, 0)),
            (0x8000_0000, (0, 0, 0)),
            (0x8000_ffff, (0, 0, 1)),
            (0x0001_2345, (15, 0x23, 0x45)),
            (u32::MAX, (0, 255, 255)),
        ] {
            assert_eq!(cell(word), expected, "{word:#x}");
        }
    }
}
