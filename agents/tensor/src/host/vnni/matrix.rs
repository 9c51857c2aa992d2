//! Where the operands of products lie in memory.

use super::lanes::LANES;

/// Memory of mantissas, and bytes of each.
pub(in crate::host) type Memory<'a> = (&'a [u8], usize);

/// Rows of equal length, equally far apart, in elements of a tensor's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct View {
    /// First element of the first row.
    pub(crate) first: usize,
    /// Number of rows.
    pub(crate) rows: usize,
    /// Length of a row.
    pub(crate) width: usize,
    /// From the start of a row to the start of the next.
    pub(crate) stride: usize,
}

impl View {
    /// A whole matrix.
    pub(crate) const fn whole(rows: usize, width: usize) -> Self {
        Self { first: 0, rows, width, stride: width }
    }
}

/// Products `out_i = a_i·b_iᵀ` of one size, between parts of two tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// How many.
    pub(crate) count: usize,
    /// `a` of product 0, and how far on the next product's begins.
    pub(crate) a: (View, usize),
    /// `b` of product 0, and how far on the next `b` begins.
    pub(crate) b: (View, usize),
    /// Products in a row that have the same `b`.
    pub(crate) share: usize,
    /// How far on the next product's result begins, and the next row of a result.
    pub(crate) out: (usize, usize),
}

impl Batch {
    /// One product of `m × k` by `n × k`; rows of `a` begin at `offset` of rows of length `stride`.
    pub(crate) const fn single((m, n, k): (usize, usize, usize), (offset, stride): (usize, usize)) -> Self {
        let a = View { first: offset, rows: m, width: k, stride };
        Self { count: 1, a: (a, 0), b: (View::whole(n, k), 0), share: 1, out: (m * n, n) }
    }

    /// The same products, where they are of one row each: those that have the same `b` are rows of one product. As they
    /// are, if that left some of so many threads nothing to do.
    pub(crate) const fn gathered(self, threads: usize) -> Self {
        let (a, step) = self.a;
        if a.rows != 1 || !self.count.is_multiple_of(self.share) || self.count / self.share < threads {
            return self;
        }
        Self {
            count: self.count / self.share,
            a: (View { rows: self.share, stride: step, ..a }, self.share * step),
            b: self.b,
            share: 1,
            out: (self.share * self.out.0, self.out.0),
        }
    }

    /// Operands of one product.
    pub(in crate::host) const fn operands(&self, product: usize) -> (View, View) {
        let ((mut a, a_step), (mut b, b_step)) = (self.a, self.b);
        a.first += product * a_step;
        b.first += product / self.share * b_step;
        (a, b)
    }

    /// Where an element of a result lies.
    pub(in crate::host) const fn place(&self, product: usize, row: usize, column: usize) -> usize {
        product * self.out.0 + row * self.out.1 + column
    }

    /// Of the magnitude of sums, where operands have these limits.
    pub(in crate::host) fn bound(&self, a_limit: i64, b_limit: i64) -> u128 {
        u128::from(a_limit.unsigned_abs()) * u128::from(b_limit.unsigned_abs()) * self.a.0.width as u128
    }

    /// Multiplications of all products.
    pub(in crate::host) const fn work(&self) -> usize {
        self.count * self.a.0.rows * self.b.0.rows * self.a.0.width
    }
}

/// Rows of bytes.
#[derive(Clone, Copy)]
pub(in crate::host) struct Matrix<'a> {
    bytes: &'a [u8],
    pub(in crate::host) rows: usize,
    pub(in crate::host) width: usize,
    /// From the start of a row to the start of the next.
    pub(in crate::host) stride: usize,
}

impl<'a> Matrix<'a> {
    /// A view of memory whose elements have `size` bytes.
    pub(in crate::host) fn new(memory: &'a [u8], view: View, size: usize) -> Self {
        let View { first, rows, width, stride } = view;
        let bytes = &memory[first * size..];
        assert!(rows == 0 || (rows - 1) * stride * size + width * size <= bytes.len(), "rows within the memory");
        Self { bytes, rows, width: width * size, stride: stride * size }
    }

    /// One row.
    pub(in crate::host) fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.stride..][..self.width]
    }

    /// Sixteen rows from `first` on. The last one stands for those that are not there.
    pub(in crate::host) fn sixteen(&self, first: usize) -> [&'a [u8]; LANES] {
        let mut rows = [self.row(first); LANES];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = self.row((first + i).min(self.rows - 1));
        }
        rows
    }

    /// Rows from one on, and what follows in memory.
    pub(in crate::host) fn from(&self, row: usize) -> &'a [u8] {
        &self.bytes[(row * self.stride).min(self.bytes.len())..]
    }

    /// At most `count` rows from `start` on.
    pub(in crate::host) fn part(&self, start: usize, count: usize) -> Self {
        let rows = count.min(self.rows.saturating_sub(start));
        Self { bytes: self.from(start), rows, ..*self }
    }

    /// The first bytes of each row.
    pub(in crate::host) fn narrow(&self, width: usize) -> Self {
        Self { width: width.min(self.width), ..*self }
    }
}
