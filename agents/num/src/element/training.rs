//! Rules N-41 to N-43, N-45, N-46 and N-48.

use super::Site;
use crate::checked::{DITHER_DRAWS, DROPOUT_DRAWS, Heads};
use crate::error::OpError;
use crate::fixed::div;
use crate::philox::draw_element;

impl<F: Fn(usize, u64) -> Option<i64>> Site<'_, F> {
    /// `Σ_t (i(t) = v ? g[k,t] : 0)`.
    pub(super) fn gathered(&self, tokens: u64, width: u64, entries: u64) -> Result<i128, OpError> {
        let (v, k) = self.split(width);
        let first = k.saturating_mul(tokens);
        (0..tokens).try_fold(0i128, |sum, t| {
            let g = self.get(0, first.saturating_add(t))?;
            Ok(if self.entry(1, entries, t)? == v { sum.saturating_add(g) } else { sum })
        })
    }

    /// `div(m·2^bits, ⌊√v⌋ + floor)`.
    pub(super) fn ratio(&self, places: u32, floor: i64) -> Result<i128, OpError> {
        let (m, v) = (self.get(0, self.index)?, self.get(1, self.index)?);
        let divisor = v.max(0).isqrt().saturating_add(floor.into());
        // The divisor is at least 1, so there is a quotient.
        Ok(div(m.saturating_mul(1i128.wrapping_shl(places)), divisor).unwrap_or_default())
    }

    /// `min(2^bits, ⌊limit·2^bits / √s⌋)`.
    pub(super) fn shrink(&self, places: u32, limit: i64) -> Result<i128, OpError> {
        let one = 1i128.wrapping_shl(places);
        let root = self.get(0, self.index)?.max(0).isqrt().max(1);
        Ok(one.min(one.saturating_mul(limit.into()).checked_div(root).unwrap_or_default()))
    }

    /// `Σ_h a[t, h·D + d]` over the heads of the element's group.
    pub(super) fn group_sum(&self, heads: &Heads) -> Result<i128, OpError> {
        self.group_places(heads).try_fold(0i128, |sum, place| Ok(sum.saturating_add(self.get(0, place)?)))
    }

    /// Where the elements lie that GroupSum adds; a group has `heads.keys` heads.
    pub(super) fn group_places(&self, heads: &Heads) -> impl Iterator<Item = u64> + use<F> {
        let Heads { heads: all, kv_heads, width, keys: share, .. } = *heads;
        let (t, column) = self.split(kv_heads.saturating_mul(width));
        let (g, d) = super::places::quotient(column, width);
        let head = move |h: u64| t.saturating_mul(all).saturating_add(g.saturating_mul(share)).saturating_add(h);
        (0..share).map(move |h| head(h).saturating_mul(width).saturating_add(d))
    }

    /// Whether Dropout leaves the element.
    pub(super) fn is_kept(&self, keep: u64, stream: u32) -> bool {
        u64::from(self.word(stream, DROPOUT_DRAWS)) < keep
    }

    /// `⌊(p·2^bits + ⌊w·d/2^32⌋) / d⌋`.
    pub(super) fn dithered(&self, depth: u64, places: u32, stream: u32) -> Result<i128, OpError> {
        let (p, d) = (self.get(0, self.index)?, self.get(1, self.split(depth).0)?.max(1));
        let rest = i128::from(self.word(stream, DITHER_DRAWS)).saturating_mul(d).wrapping_shr(32);
        // The floor, the divisor being positive.
        let sum = p.saturating_mul(1i128.wrapping_shl(places)).saturating_add(rest);
        Ok(sum.checked_div_euclid(d).unwrap_or_default())
    }

    fn word(&self, stream: u32, draws: u32) -> u32 {
        draw_element(&self.context.job_key, self.index, self.context.step, stream, draws)
    }
}
