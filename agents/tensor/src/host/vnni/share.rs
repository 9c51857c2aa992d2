//! Large products in parts for several threads.

use std::ops::Range;

use rayon::prelude::*;

use super::lanes::LANES;
use super::matrix::{Batch, View};

/// Multiplications of bytes below which other threads cost more than they bring.
const WORTH_SHARING: usize = 1 << 22;

/// What one thread computes.
#[derive(Clone)]
pub(in crate::host) struct Part {
    pub(in crate::host) products: Range<usize>,
    pub(in crate::host) rows: Range<usize>,
    pub(in crate::host) columns: Range<usize>,
}

/// Splits the work between threads so that each writes a stretch of the output; elements of the operands have so many
/// bytes. `run` computes a part into what begins at the part's first element.
pub(in crate::host) fn share<T: Send>(
    threads: usize,
    batch: &Batch,
    bytes: usize,
    out: &mut [T],
    run: impl Fn(&Part, &mut [T]) + Sync,
) {
    let Batch { count, a: (View { rows: m, .. }, _), b: (View { rows: n, .. }, _), out: (step, stride), .. } = *batch;
    let whole = Part { products: 0..count, rows: 0..m, columns: 0..n };
    let share = threads > 1 && batch.work() * bytes >= WORTH_SHARING;
    if share && count > 1 && step >= m * stride {
        let products = count.div_ceil(threads);
        in_stretches(out, products * step, &|i, out| {
            let start = i * products;
            run(&Part { products: start..count.min(start + products), ..whole.clone() }, out);
        });
    } else if share && m >= 2 * LANES {
        let rows = m.div_ceil(threads).next_multiple_of(LANES);
        in_stretches(out, rows * stride, &|i, out| {
            let start = i * rows;
            run(&Part { rows: start..m.min(start + rows), ..whole.clone() }, out);
        });
    } else if share && count == 1 && m == 1 {
        let columns = n.div_ceil(threads).next_multiple_of(LANES);
        in_stretches(out, columns, &|i, out| {
            let start = i * columns;
            run(&Part { columns: start..n.min(start + columns), ..whole.clone() }, out);
        });
    } else {
        run(&whole, out);
    }
}

/// Stretches of so many elements, each by a thread that is free. Not generic over what it runs: the compiler would make
/// a scheduler of its own for each kernel.
fn in_stretches<T: Send>(out: &mut [T], length: usize, run: &(dyn Fn(usize, &mut [T]) + Sync)) {
    out.par_chunks_mut(length).enumerate().for_each(|(i, out)| run(i, out));
}
