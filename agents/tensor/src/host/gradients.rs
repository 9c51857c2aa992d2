//! Sums that gradients are made of: GatherGrad over the tokens of a word, GroupSum over the heads of a group.

use super::block::{for_blocks, rescale_block};
use super::elementwise::Precision;
use crate::simd::{Simd, multiversion};
use crate::tensor::{Slice, SliceMut};

/// Rule N-41; `tokens` is the row of `g`, `width` that of the output.
pub(crate) fn gather_grad(
    simd: Simd,
    (g, ids): (Slice<'_>, Slice<'_>),
    (tokens, width): (usize, usize),
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let last = (out.len() / width).saturating_sub(1) as i64;
    let entries: Vec<usize> = (0..tokens).map(|t| ids.get(t).clamp(0, last) as usize).collect();
    let mut order: Vec<usize> = (0..tokens).collect();
    order.sort_by_key(|t| entries[*t]);
    let g = g.to_wide();
    let (mut sums, zeros) = (vec![0i64; width], vec![0i64; width]);
    let mut tokens_of = order.chunk_by(|a, b| entries[*a] == entries[*b]).peekable();
    for entry in 0..out.len() / width {
        let Some(same) = tokens_of.next_if(|same| entries[same[0]] == entry) else {
            out.store(simd, entry * width, &zeros);
            continue;
        };
        for (k, sum) in sums.iter_mut().enumerate() {
            *sum = same.iter().map(|t| g[k * tokens + t]).sum();
        }
        rescale_block(simd, &mut sums, to.shift, to.limit);
        out.store(simd, entry * width, &sums);
    }
}

multiversion! {
    fn add(sums: &mut [i64], more: &[i64]) {
        for (sum, more) in sums.iter_mut().zip(more) {
            *sum += *more;
        }
    }
}

/// Rule N-45: `share` heads of `width` elements to a group.
pub(crate) fn group_sum(
    simd: Simd,
    a: Slice<'_>,
    (share, width): (usize, usize),
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let mut other = vec![0i64; width];
    let mut sums = vec![0i64; width];
    for group in 0..out.len() / width {
        a.load(simd, group * share * width, &mut sums);
        for head in 1..share {
            a.load(simd, (group * share + head) * width, &mut other);
            add(simd, &mut sums, &other);
        }
        rescale_block(simd, &mut sums, to.shift, to.limit);
        out.store(simd, group * width, &sums);
    }
}

/// Rule N-47: of every `row` elements `width` from `offset` on.
pub(crate) fn slice(simd: Simd, a: Slice<'_>, row: usize, (offset, width): (usize, usize), out: &mut SliceMut<'_>) {
    for_blocks::<i64>(simd, out, |start, block| {
        super::rows::for_rows(start, width, block, |m, first, part| a.load(simd, m * row + offset + first, part));
    });
}
