//! Rule N-36: elements perturbed by Gumbel draws.

use super::check::{A, B, C, Check, D, OUT, exponent, magnitude};
use super::controls::{Controls, rows_of_controls};
use super::site::{Cell, one, run};
use super::whole::{Rescale, blend, rows};
use super::{Operation, Read, Site, Whole};
use crate::bounds::{GUMBEL_EXPONENT, GUMBEL_TABLE_LEN, MAX_PERTURB_PLACES, PERTURB_EXPONENT};
use crate::error::OpError;
use crate::fixed::{limit, rescale};
use crate::philox::philox4x32;

/// Entries of the table of Gumbel draws for each number of leading zeros.
const OCTAVE: u64 = 257;

/// `y[m,v] = rescale(a[m,v]·2^c + τ·g, shift)`, g a Gumbel draw, or the lowest number below `t[m] + bound`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Perturb {
    /// Length of a row.
    pub row: u64,
    /// Added to the threshold.
    pub bound: i64,
    /// The c of the rule.
    pub places: u32,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for Perturb {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (a, controls, table) = (check.ty(A), check.ty(C), check.ty(D));
        check.same_shape(OUT, A)?;
        check.require(A, a.bits() <= 32, "of at most 32 bits")?;
        let bound = check.threshold(B)?;
        check.controls(C, a.rows())?;
        check.require(C, controls.bits() <= 32, "of at most 32 bits")?;
        let holds = table.elements() == GUMBEL_TABLE_LEN && table.exponent() == GUMBEL_EXPONENT && table.bits() <= 32;
        check.require(D, holds, "8224 entries of at most 32 bits, exponent 16")?;
        let places = PERTURB_EXPONENT.saturating_sub(exponent(a));
        check.require(A, (0..=MAX_PERTURB_PLACES).contains(&places), "of an exponent from -12 to 28")?;
        // SAFETY of the cast: between 0 and 40.
        let places = places as u32;
        let noise = magnitude(controls).saturating_mul(magnitude(table));
        check.accumulator(magnitude(a).saturating_mul(1u128.wrapping_shl(places)).saturating_add(noise))?;
        Ok(Self { row: a.row(), bound, places, shift: check.bound_shift(1, PERTURB_EXPONENT)? })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([a, t, settings, table], round) = (whole.wide()?, whole.rescale(self.shift));
        let (lowest, table) = (whole.limit().wrapping_neg(), table.as_slice());
        let row = |((row, t), [_, tau, position, _, _, s0, s1]): ((_, &i64), [i64; 7])| {
            let (least, tau) = (t.wrapping_add(self.bound), tau.max(0));
            // SAFETY of the casts: rule N-36 takes seeds, position and place modulo 2^32.
            let (seed, position) = ([s0 as u32, s1 as u32], position as u32);
            let draw = move |v: u64| philox4x32(seed, [v as u32, position, 0, 0]);
            (0u64..).zip(<[i64]>::iter(row)).map(move |(v, a)| match *a {
                a if a < least => lowest,
                a => {
                    let [word, ..] = if tau > 0 { draw(v) } else { [0; 4] };
                    let noise = if tau > 0 { gumbel(table, word).wrapping_mul(tau) } else { 0 };
                    round.apply(a.wrapping_shl(self.places).wrapping_add(noise))
                }
            })
        };
        whole.collect(rows(&a, self.row).zip(&t).zip(rows_of_controls(&settings)).flat_map(row))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (m, v) = site.split(self.row);
        let (a, controls) = (site.here(0)?, Controls::of_row(site, 2, m)?);
        if a < site.get(1, m)?.saturating_add(self.bound.into()) {
            return Ok(limit(site.bits()).saturating_neg());
        }
        let x = a.saturating_mul(1i128.wrapping_shl(self.places));
        let tau = controls.temperature();
        if tau == 0 {
            return Ok(site.rescale(x, self.shift));
        }
        let g = rescale(site.interpolate(3, &cell(controls.draw(v)), 8)?, 8, 63);
        Ok(site.rescale(x.saturating_add(tau.saturating_mul(g.into())), self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        let (m, v) = site.split(self.row);
        let least = site.get(1, m)?.saturating_add(self.bound.into());
        let controls = Controls::of_row(site, 2, m)?;
        let draws = site.here(0)? >= least && controls.temperature() > 0;
        let drawn = draws.then(|| run(3, cell(controls.draw(v)).entry, 2));
        Ok([one(0, site.index), one(1, m), Controls::read(2, m)].into_iter().chain(drawn).collect())
    }
}

/// The draw that a word stands for, 16 fraction bits.
fn gumbel(table: &[i64], word: u32) -> i64 {
    let zeros = word.leading_zeros().min(31);
    // The bits after the leading one; of the last octave there are none.
    let fraction = word.wrapping_shl(zeros).wrapping_shl(1) >> 16;
    let entry = i64::from(zeros).wrapping_mul(257).wrapping_add((fraction >> 8).into());
    Rescale { shift: 8, limit: i64::MAX }.apply(blend(table, entry, (fraction & 0xff).into(), 8))
}

/// The cell of a word: its leading zeros tell the octave, the 16 bits after its leading one the place in it.
fn cell(word: u32) -> Cell {
    let n = word.leading_zeros().min(31);
    let shifted = u64::from(word).wrapping_shl(n.saturating_add(1)) & u64::from(u32::MAX);
    let m = shifted >> 16;
    let entry = u64::from(n).saturating_mul(OCTAVE).saturating_add(m >> 8);
    Cell { entry, rest: (m & 0xff).into() }
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

    #[test]
    fn words_tell_cells() {
        let cell = |word| {
            let Cell { entry, rest } = cell(word);
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
