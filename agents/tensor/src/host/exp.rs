//! ExpNeg: powers of two under the maximum of a row, by a table.

use super::block::{BLOCK, Element, rescale};
use super::cells::{Cells, LIMIT_63};
use super::reductions::Rows;
use super::values::Values;
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, each_width};

/// Largest exponent of ExpNeg, in 16 fraction bits: beyond it the result is 0.
const EXP_MAX: i64 = 40 << 16;

/// Attributes of rule N-20, and what bounds its operands.
#[derive(Clone, Copy)]
pub(crate) struct ExpNeg {
    pub(crate) multiplier: i64,
    pub(crate) input_shift: i32,
    /// How far an element can lie under its row's maximum.
    pub(crate) distance: i64,
    /// Limit of the output.
    pub(crate) limit: i64,
}

impl ExpNeg {
    /// A distance from which on the function is constant.
    fn end(&self) -> i64 {
        let (multiplier, places) = (u128::from(self.multiplier.unsigned_abs()), self.input_shift.unsigned_abs());
        let argument = u128::from(EXP_MAX.unsigned_abs());
        // z·c·2^−s reaches the largest argument.
        let product: u128 = if self.input_shift > 0 { argument << places } else { (argument >> places) + 1 };
        i64::try_from(product.div_ceil(multiplier)).unwrap_or(i64::MAX).min(self.distance)
    }
}

multiversion! {
    /// First half of rule N-20, from distances to the row's maximum.
    fn exp_cells(block: &mut [i64], rest: &mut [i64], places: &mut [i64], multiplier: i64, input_shift: i32) {
        for x in block.iter_mut() {
            *x *= multiplier;
        }
        rescale(block, input_shift, LIMIT_63);
        for ((x, rest), places) in block.iter_mut().zip(rest).zip(places) {
            let u = (*x).min(EXP_MAX);
            (*x, *rest, *places) = (u >> 8 & 0xff, u & 0xff, (u >> 16) + 8);
        }
    }
}

multiversion! {
    /// Rounds each element by its own number of places, at least one, half to even (rule N-2).
    fn round_each(block: &mut [i64], places: &[i64], limit: i64) {
        for (x, places) in block.iter_mut().zip(places) {
            let odd = (*x >> *places) & 1;
            let below_half = (1i64 << (*places - 1)) - 1;
            *x = ((*x + below_half + odd) >> *places).clamp(-limit, limit);
        }
    }
}

multiversion! {
    /// Distances under the maximum, in `i64`.
    fn distances<T: Element>(a: &[T], max: i64, block: &mut [i64]) {
        for (x, a) in block.iter_mut().zip(a) {
            *x = (max - a.wide()).max(0);
        }
    }
}

multiversion! {
    fn to_i32(block: &[i64], out: &mut [i32]) {
        for (out, x) in out.iter_mut().zip(block) {
            *out = *x as i32;
        }
    }
}

multiversion! {
    /// Distances under the maximum that fit `i32`, up to the last.
    fn indices<T: Element>(a: &[T], max: i64, last: i32, indices: &mut [i32]) {
        let max = max as i32;
        for (index, a) in indices.iter_mut().zip(a) {
            *index = (max - a.wide() as i32).clamp(0, last);
        }
    }
}

/// The function of rule N-20, ready for many elements.
pub(crate) struct Powers {
    simd: Simd,
    attributes: ExpNeg,
    table: Vec<i64>,
    /// The function of each distance, where that was less work.
    values: Option<Values>,
}

impl Powers {
    /// Prepares for so many elements. The output has 26 bits.
    pub(crate) fn new(simd: Simd, table: Slice<'_>, attributes: ExpNeg, uses: usize) -> Self {
        let mut powers = Self { simd, attributes, table: table.to_wide(), values: None };
        if i32::try_from(attributes.distance).is_ok() {
            let (range, mut cells) = ((0, attributes.end()), Cells::new());
            powers.values =
                Values::tabulate(range, (uses, attributes.limit), |block| powers.compute(block, &mut cells));
        }
        powers
    }

    /// Of a power.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const fn limit(&self) -> i64 {
        self.attributes.limit
    }

    /// Powers of distances.
    fn compute(&self, block: &mut [i64], cells: &mut Cells<i64>) {
        let ExpNeg { multiplier, input_shift, limit, .. } = self.attributes;
        exp_cells(self.simd, block, &mut cells.rest, &mut cells.places, multiplier, input_shift);
        cells.interpolate(self.simd, &self.table, block, 8);
        round_each(self.simd, block, &cells.places, limit);
    }

    /// Powers of visible elements of a row with this maximum.
    pub(crate) fn row<T: Element>(&self, a: &[T], max: i64, cells: &mut Cells<i64>, out: &mut [i32]) {
        if let Some(values) = &self.values {
            indices(self.simd, a, max, values.last(), out);
            values.replace(out);
            return;
        }
        let mut buffer = [0i64; BLOCK];
        for (a, out) in a.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            let block = &mut buffer[..out.len()];
            distances(self.simd, a, max, block);
            self.compute(block, cells);
            to_i32(self.simd, block, out);
        }
    }
}

/// Rule N-20; the output has 26 bits.
pub(crate) fn exp_neg(
    simd: Simd,
    (a, max, table): (Slice<'_>, Slice<'_>, Slice<'_>),
    attributes: ExpNeg,
    rows: Rows,
    out: &mut [i32],
) {
    let powers = Powers::new(simd, table, attributes, a.len());
    let (max, mut cells) = (max.to_wide(), Cells::new());
    each_width!(Slice, a, a => {
        let lines = a.chunks_exact(rows.length).zip(out.chunks_exact_mut(rows.length));
        for ((m, (a, out)), max) in lines.enumerate().zip(&max) {
            let (seen, hidden) = out.split_at_mut(rows.visible(m));
            powers.row(&a[..seen.len()], *max, &mut cells, seen);
            hidden.fill(0);
        }
    });
}
