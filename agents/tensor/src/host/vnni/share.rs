//! Large products in parts for several threads.

use std::ops::Range;

use rayon::prelude::*;

use super::lanes::LANES;
use super::matrix::{Batch, Matrix, Memory, View};

/// Multiplications of bytes below which other threads cost more than they bring.
const WORTH_SHARING: usize = 1 << 22;
/// From this many rows of `a` on, packing pays.
pub(in crate::host) const PACKED_ROWS: usize = 12;
/// Rows of `b` whose heads are computed together when nothing is packed.
const KEYS: usize = 4 * LANES;

/// What one thread computes.
#[derive(Clone)]
pub(in crate::host) struct Part {
    pub(in crate::host) products: Range<usize>,
    pub(in crate::host) rows: Range<usize>,
    pub(in crate::host) columns: Range<usize>,
}

impl Part {
    /// Computes each of its products: operands, where in the whole product they begin, and what begins at the first
    /// element of their result. `out` begins at the part's.
    pub(in crate::host) fn each<T>(
        &self,
        batch: &Batch,
        (a_memory, b_memory): (Memory<'_>, Memory<'_>),
        out: &mut [T],
        compute: impl Fn(Matrix<'_>, Matrix<'_>, (usize, usize), &mut [T]),
    ) {
        let Self { products, rows, columns } = self;
        let first = batch.place(products.start, rows.start, columns.start);
        // A few rows stream `b`: heads that lie side by side in its rows are read together.
        let (b, step) = batch.b;
        let block = if rows.len() < PACKED_ROWS && step < b.stride { KEYS } else { columns.len() };
        for start in columns.clone().step_by(block.max(1)) {
            for product in products.clone() {
                let (a, b) = batch.operands(product);
                let a = Matrix::new(a_memory.0, a, a_memory.1).part(rows.start, rows.len());
                let b = Matrix::new(b_memory.0, b, b_memory.1).part(start, block.min(columns.end - start));
                let place = batch.place(product, rows.start, start) - first;
                compute(a, b, (rows.start, start), &mut out[place..]);
            }
        }
    }
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
