//! Rules N-11, N-12 and N-25: products of matrices, and matrices turned.

use super::check::{A, B, C, Check, D, OUT, exponent, magnitude};
use super::site::{Runs, one, quotient};
use super::whole::{Rescale, rows, wide};
use super::{Operation, Read, Site, Whole};
use crate::error::OpError;
use crate::tensor::{Mantissas, Tensor};

type Values = Result<Vec<i64>, OpError>;

/// `y[m,n] = rescale(Σ_k a[m,k]·b[n,k], shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatMul {
    /// Rows of b.
    pub columns: u64,
    /// Length of a row.
    pub depth: u64,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for MatMul {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (a, b) = (check.ty(A), check.ty(B));
        check.factors([(A, 2), (B, 2)])?;
        check.require(B, a.row() == b.row(), "of rows as long as the first operand's")?;
        check.output_dims(&[a.rows(), b.rows()], "rows of the first operand by rows of the second")?;
        let depth = check.reduction(a.row())?;
        check.accumulator(magnitude(a).saturating_mul(magnitude(b)).saturating_mul(u128::from(depth)))?;
        let shift = check.bound_shift(0, exponent(a).saturating_add(exponent(b)))?;
        Ok(Self { columns: b.rows(), depth, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Values {
        fn products<T: Factor>(a: &[T], b: &[T], whole: &Whole<'_>, depth: u64, round: Rescale) -> Values {
            let row = |a| rows(b, depth).map(move |b| round.apply(T::dot(a, b)));
            whole.collect(rows(a, depth).flat_map(row))
        }
        let [a, b] = whole.operands()?;
        narrow!(a, b, products(whole, self.depth, whole.rescale(self.shift)))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.rescale(site.dot(&self.runs(site))?, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(self.runs(site).reads().into())
    }
}

impl MatMul {
    fn runs(&self, site: &Site<'_>) -> Runs {
        let (m, n) = site.split(self.columns);
        Runs { a: m.saturating_mul(self.depth), b: n.saturating_mul(self.depth), count: self.depth }
    }
}

/// `y[m,n] = rescale(r[m]·c[n]·Σ_k a[m, offset + k]·b[n,k], shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScaledMatMul {
    /// What is summed.
    pub product: RowProduct,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for ScaledMatMul {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (product, shift) = check.product_of_rows(magnitude(check.ty(C)))?;
        Ok(Self { product, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Values {
        let ([a, b, r, c], round) = (whole.operands()?, whole.rescale(self.shift));
        let finish: Vec<Finish> = wide(r).into_iter().map(|r| (r, round)).collect();
        self.product.execute(whole, [a, b, c], &finish)
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let (m, n) = site.split(self.product.columns);
        let scale = site.get(2, m)?.saturating_mul(site.get(3, n)?);
        Ok(site.rescale(scale.saturating_mul(site.dot(&self.product.runs(site))?), self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(self.product.reads(site))
    }
}

/// What N-25 and N-51 share: row m of the first operand is read from `offset` on, `depth` of its `row` elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowProduct {
    /// Rows of b.
    pub columns: u64,
    /// Length of a row of a.
    pub row: u64,
    /// Where in a row of a the product begins.
    pub offset: u64,
    /// Length of a row of b.
    pub depth: u64,
}

/// What becomes of the sums of a row of the first operand: they are multiplied, by their column's number too, and
/// rounded.
pub(super) type Finish = (i64, Rescale);

impl RowProduct {
    pub(super) fn runs(&self, site: &Site<'_>) -> Runs {
        let (m, n) = site.split(self.columns);
        let a = m.saturating_mul(self.row).saturating_add(self.offset);
        Runs { a, b: n.saturating_mul(self.depth), count: self.depth }
    }

    pub(super) fn reads(&self, site: &Site<'_>) -> Vec<Read> {
        let ([a, b], (m, n)) = (self.runs(site).reads(), site.split(self.columns));
        vec![a, b, one(2, m), one(3, n)]
    }

    /// Of a, b and the numbers of columns.
    pub(super) fn execute(&self, whole: &Whole<'_>, [a, b, c]: [&Tensor; 3], finish: &[Finish]) -> Values {
        fn products<A: Factor<B>, B>(
            a: &[A],
            b: &[B],
            whole: &Whole<'_>,
            (finish, c): (&[Finish], &[i64]),
            product: &RowProduct,
        ) -> Values {
            let offset = usize::try_from(product.offset).unwrap_or(usize::MAX);
            let row = |(a, finish): (_, &Finish)| {
                let (a, (r, round)) = (<[A]>::get(a, offset..).unwrap_or_default(), *finish);
                // The zip of a dot product ends with the shorter row, which is the second.
                let scaled = move |(b, c): (&[B], &i64)| r.wrapping_mul(*c).wrapping_mul(A::dot(a, b));
                rows(b, product.depth).zip(c).map(move |pair| round.apply(scaled(pair)))
            };
            whole.collect(rows(a, product.row).zip(finish).flat_map(row))
        }
        let c = wide(c);
        let scales = (finish, c.as_slice());
        match (a.mantissas(), b.mantissas()) {
            (Mantissas::I16(a), Mantissas::I8(b)) => products(a, b, whole, scales, self),
            _ => narrow!(a, b, products(whole, scales, self)),
        }
    }
}

/// `y[n,m] = a[m,n]`, of one matrix or of several, one after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transpose {
    /// Rows of a matrix of a.
    pub rows: u64,
    /// Their length.
    pub columns: u64,
}

impl Operation for Transpose {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let a = check.ty(A);
        let (rows, holds) = match (a.dims(), check.ty(OUT).dims()) {
            (&[m, n], &[p, q]) => (m, [m, n] == [q, p]),
            (&[batch, m, n], &[same, p, q]) => (m, [batch, m, n] == [same, q, p]),
            ([_, _] | [_, _, _], _) => (1, false),
            _ => (0, false),
        };
        check.require(A, rows > 0, "of rank 2 or 3")?;
        check.require(OUT, holds, "the first operand's shape with its last two dimensions exchanged")?;
        check.same_precision()?;
        Ok(Self { rows: rows.into(), columns: a.row() })
    }

    fn execute(&self, whole: &Whole<'_>) -> Values {
        let ([a], Self { rows, columns }) = (whole.operands()?, *self);
        let area = rows.saturating_mul(columns);
        let matrices = a.ty().elements().checked_div(area).unwrap_or_default();
        let matrix = |b: u64| {
            let first = b.saturating_mul(area);
            let place = move |m: u64, n: u64| first.saturating_add(m.saturating_mul(columns)).saturating_add(n);
            let at = move |m: u64, n: u64| a.get(place(m, n)).unwrap_or(0);
            (0..columns).flat_map(move |n| (0..rows).map(move |m| at(m, n)))
        };
        whole.collect((0..matrices).flat_map(matrix))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.clamp(site.get(0, self.place(site))?))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(vec![one(0, self.place(site))])
    }
}

impl Transpose {
    fn place(&self, site: &Site<'_>) -> u64 {
        let (matrix, within) = site.split(self.rows.saturating_mul(self.columns));
        let (n, m) = quotient(within, self.rows);
        let first = matrix.saturating_mul(self.rows).saturating_mul(self.columns);
        first.saturating_add(m.saturating_mul(self.columns)).saturating_add(n)
    }
}

/// Mantissas whose products with others are summed.
pub(super) trait Factor<B = Self>: Copy {
    /// `Σ a·b` over at most 4096 elements.
    fn dot(a: &[Self], b: &[B]) -> i64;
}

impl Factor for i8 {
    /// Products of at most 2^14: the sum fits 32 bits, which vectorises best.
    fn dot(a: &[Self], b: &[Self]) -> i64 {
        let term = |(a, b): (&Self, &Self)| i32::from(*a).wrapping_mul(i32::from(*b));
        a.iter().zip(b).map(term).fold(0i32, i32::wrapping_add).into()
    }
}

impl Factor for i16 {
    /// Products of at most 2^30, sums of at most 2^42.
    fn dot(a: &[Self], b: &[Self]) -> i64 {
        let term = |(a, b): (&Self, &Self)| i64::from(i32::from(*a).wrapping_mul(i32::from(*b)));
        a.iter().zip(b).map(term).fold(0i64, i64::wrapping_add)
    }
}

impl Factor<i8> for i16 {
    /// Products of at most 2^22, sums of at most 2^34.
    fn dot(a: &[Self], b: &[i8]) -> i64 {
        let term = |(a, b): (&Self, &i8)| i64::from(i32::from(*a).wrapping_mul(i32::from(*b)));
        a.iter().zip(b).map(term).fold(0i64, i64::wrapping_add)
    }
}

/// Calls a function on the mantissas of two operands in their common width.
macro_rules! narrow {
    ($a:expr, $b:expr, $function:ident($($argument:expr),*)) => {
        match ($a.mantissas(), $b.mantissas()) {
            ($crate::tensor::Mantissas::I8(a), $crate::tensor::Mantissas::I8(b)) => $function(a, b, $($argument),*),
            ($crate::tensor::Mantissas::I16(a), $crate::tensor::Mantissas::I16(b)) => $function(a, b, $($argument),*),
            // The checker refused other widths.
            _ => Ok(Vec::new()),
        }
    };
}
pub(super) use narrow;

impl Check<'_> {
    /// What N-25 and N-51 share: `Σ_k a[m, offset + k]·b[n,k]` times `c[n]`, and a number for each row of a that is at
    /// most `factor`; and the shift.
    pub(super) fn product_of_rows(&self, factor: u128) -> Result<(RowProduct, i64), OpError> {
        let (a, b, r, c) = (self.ty(A), self.ty(B), self.ty(C), self.ty(D));
        self.mixed_factors([(A, 2), (B, 2)])?;
        self.require(B, b.row() <= a.row(), "of rows no longer than the first operand's")?;
        self.require(C, r.elements() == a.rows(), "one element for each row of the first operand")?;
        self.require(D, c.elements() == b.rows(), "one element for each row of the second operand")?;
        self.output_dims(&[a.rows(), b.rows()], "rows of the first operand by rows of the second")?;
        let depth = self.reduction(b.row())?;
        // SAFETY of the casts: a row has fewer than 2^32 elements; the offset is not negative.
        let offset = self.attribute(0, 0, a.row().saturating_sub(depth) as i64)? as u64;
        let sum = magnitude(a).saturating_mul(magnitude(b)).saturating_mul(u128::from(depth));
        self.accumulator(sum.saturating_mul(factor).saturating_mul(magnitude(c)))?;
        let exponents = [a, b, r, c].into_iter().fold(0i64, |sum, ty| sum.saturating_add(exponent(ty)));
        let shift = self.bound_shift(1, exponents)?;
        Ok((RowProduct { columns: b.rows(), row: a.row(), offset, depth }, shift))
    }
}
