//! Rules N-26 and N-27: scores of heads, and what they mix.

use super::check::{A, B, Check, OUT, exponent, magnitude};
use super::linear::{Factor, narrow};
use super::site::{Runs, quotient};
use super::whole::{nth_row, rows};
use super::{Operation, Read, Site, Whole};
use crate::error::OpError;

type Values = Result<Vec<i64>, OpError>;

/// Lengths of the rules: `heads · width` is the row of the tensor of tokens, `kv_heads · width` that of keys, or the
/// rows of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heads {
    /// Rows of the tensor of tokens.
    pub tokens: u64,
    /// The S of the rules.
    pub keys: u64,
    /// Heads of queries.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Elements of a head.
    pub width: u64,
}

impl Heads {
    /// The key/value head that head `h` reads: `⌊h·G/H⌋`.
    fn kv_head(&self, h: u64) -> u64 {
        h.saturating_mul(self.kv_heads).checked_div(self.heads).unwrap_or_default()
    }
}

fn at(row: u64, length: u64, first: u64) -> u64 {
    row.saturating_mul(length).saturating_add(first)
}

/// `y[h,t,s] = rescale(Σ_d q[t,h,d]·k[s,g,d], shift)`, g being the key/value head of head h.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadScores {
    /// Lengths.
    pub heads: Heads,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for HeadScores {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (q, k) = (check.ty(A), check.ty(B));
        check.factors([(A, 2), (B, 2)])?;
        let (heads, width) = check.heads(q.row())?;
        check.require(A, heads.saturating_mul(width) == q.row(), "of rows that are whole heads")?;
        let kv_heads =
            check.kv_heads(k.row(), heads, width, "of rows of whole heads, as many as divide the first's")?;
        check.output_dims(&[heads, q.rows(), k.rows()], "heads by rows of the first operand by rows of the second")?;
        let shift = check.products(width)?;
        Ok(Self { heads: Heads { tokens: q.rows(), keys: k.rows(), heads, kv_heads, width }, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Values {
        fn products<T: Factor>(q: &[T], k: &[T], whole: &Whole<'_>, of: &HeadScores) -> Values {
            let (round, heads) = (whole.rescale(of.shift), of.heads);
            let width = heads.width;
            let (q_row, k_row) = (heads.heads.saturating_mul(width), heads.kv_heads.saturating_mul(width));
            let head = |h: u64| {
                let kv_head = heads.kv_head(h);
                rows(q, q_row).flat_map(move |q| {
                    let q = nth_row(q, h, width);
                    rows(k, k_row).map(move |k| round.apply(T::dot(q, nth_row(k, kv_head, width))))
                })
            };
            whole.collect((0..heads.heads).flat_map(head))
        }
        let [q, k] = whole.operands()?;
        narrow!(q, k, products(whole, self))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.rescale(site.dot(&self.runs(site))?, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(self.runs(site).reads().into())
    }
}

impl HeadScores {
    fn runs(&self, site: &Site<'_>) -> Runs {
        let heads = self.heads;
        let (row, s) = site.split(heads.keys);
        let (h, t) = quotient(row, heads.tokens);
        let (q_row, k_row) = (heads.heads.saturating_mul(heads.width), heads.kv_heads.saturating_mul(heads.width));
        let (a, b) = (h.saturating_mul(heads.width), heads.kv_head(h).saturating_mul(heads.width));
        Runs { a: at(t, q_row, a), b: at(s, k_row, b), count: heads.width }
    }
}

/// `y[t,h,d] = rescale(Σ_s p[h,t,s]·v[g,d,s], shift)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadMix {
    /// Lengths.
    pub heads: Heads,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for HeadMix {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (p, v, y) = (check.ty(A), check.ty(B), check.ty(OUT));
        check.factors([(A, 3), (B, 2)])?;
        let (heads, width) = check.heads(y.row())?;
        let (tokens, keys) = match *p.dims() {
            [h, t, s] if u64::from(h) == heads => (u64::from(t), u64::from(s)),
            _ => (0, 0),
        };
        check.require(A, keys > 0, "as many matrices as there are heads")?;
        check.require(B, v.row() == keys, "of rows as long as the first operand's")?;
        let whole = [tokens, heads.saturating_mul(width)];
        check.output_dims(&whole, "rows of one head of the first operand by whole heads")?;
        let kv_heads =
            check.kv_heads(v.rows(), heads, width, "as many rows as whole heads, whose count divides the heads")?;
        let shift = check.products(keys)?;
        Ok(Self { heads: Heads { tokens, keys, heads, kv_heads, width }, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Values {
        fn products<T: Factor>(p: &[T], v: &[T], whole: &Whole<'_>, of: &HeadMix) -> Values {
            let (round, heads) = (whole.rescale(of.shift), of.heads);
            let one_head = |t: u64, h: u64| {
                let p = nth_row(p, h.saturating_mul(heads.tokens).saturating_add(t), heads.keys);
                let of_head = nth_row(v, heads.kv_head(h), heads.width.saturating_mul(heads.keys));
                rows(of_head, heads.keys).map(move |v| round.apply(T::dot(p, v)))
            };
            whole.collect((0..heads.tokens).flat_map(|t| (0..heads.heads).flat_map(move |h| one_head(t, h))))
        }
        let [p, v] = whole.operands()?;
        narrow!(p, v, products(whole, self))
    }

    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        Ok(site.rescale(site.dot(&self.runs(site))?, self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        Ok(self.runs(site).reads().into())
    }
}

impl HeadMix {
    fn runs(&self, site: &Site<'_>) -> Runs {
        let heads = self.heads;
        let (t, column) = site.split(heads.heads.saturating_mul(heads.width));
        let (h, d) = quotient(column, heads.width);
        let (p_row, v_row) = (at(h, heads.tokens, t), at(heads.kv_head(h), heads.width, d));
        Runs { a: at(p_row, heads.keys, 0), b: at(v_row, heads.keys, 0), count: heads.keys }
    }
}

impl Check<'_> {
    /// How many key/value heads of `width` make `length` of the second operand: their number divides the heads.
    fn kv_heads(&self, length: u64, heads: u64, width: u64, requirement: &'static str) -> Result<u64, OpError> {
        let kv_heads = length.checked_div(width).unwrap_or_default();
        let whole = kv_heads.saturating_mul(width) == length;
        self.require(B, whole && heads.checked_rem(kv_heads) == Some(0), requirement)?;
        Ok(kv_heads)
    }

    /// Bounds of `depth` products of the two operands; the shift of attribute 1.
    fn products(&self, depth: u64) -> Result<i64, OpError> {
        let (a, b) = (self.ty(A), self.ty(B));
        let depth = self.reduction(depth)?;
        self.accumulator(magnitude(a).saturating_mul(magnitude(b)).saturating_mul(u128::from(depth)))?;
        self.bound_shift(1, exponent(a).saturating_add(exponent(b)))
    }
}
