//! A function of an integer, tabulated: where a tensor has more elements than there are arguments, each is
//! computed once.

use super::block::{BLOCK, Element};

/// Values of a function from `low` on.
pub(crate) struct Values {
    pub(crate) low: i64,
    values: Vec<i32>,
}

impl Values {
    /// Computes them if that is less work than computing `uses` elements, and results fit.
    pub(crate) fn tabulate(
        (low, high): (i64, i64),
        (uses, limit): (usize, i64),
        mut function: impl FnMut(&mut [i64]),
    ) -> Option<Self> {
        let count = usize::try_from(high.checked_sub(low)?.checked_add(1)?).ok()?;
        if count == 0 || count > uses / 2 || i32::try_from(limit).is_err() || i32::try_from(count).is_err() {
            return None;
        }
        let mut values = Vec::with_capacity(count);
        let mut block: Vec<i64> = Vec::with_capacity(BLOCK);
        for start in (low..=high).step_by(BLOCK) {
            block.clear();
            block.extend((start..=high).take(BLOCK));
            function(&mut block);
            // The limit fits.
            values.extend(block.iter().map(|y| *y as i32));
        }
        Some(Self { low, values })
    }

    /// The index of the last value.
    pub(crate) fn last(&self) -> i32 {
        (self.values.len() - 1) as i32
    }

    /// Replaces indices from the lowest argument, none beyond [`Self::last`], by values; as [`Self::fetch`].
    pub(crate) fn replace(&self, indices: &mut [i32]) {
        for index in indices {
            *index = self.values[*index as usize];
        }
    }

    /// Values at indices from the lowest argument, none beyond [`Self::last`].
    ///
    /// One by one, in code for every processor: the gathering instructions that compilers choose for newer ones take
    /// several times as long.
    pub(crate) fn fetch<Y: Element>(&self, indices: &[i32], out: &mut [Y]) {
        for (out, index) in out.iter_mut().zip(indices) {
            *out = Y::narrow(i64::from(self.values[*index as usize]));
        }
    }
}
