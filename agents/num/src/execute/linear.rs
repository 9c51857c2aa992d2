//! Rules N-11, N-12 and N-25 to N-27, and the products of N-51.

use tensorlink_types::Operator;

use super::{Rescale, collect, nth_row, rows, wide};
use crate::checked::{Heads, ScaledMatMul};
use crate::error::OpError;
use crate::tensor::{Mantissas, Tensor};

type Values = Result<Vec<i64>, OpError>;

/// Mantissas whose products with others are summed.
trait Factor<B = Self>: Copy {
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
            (Mantissas::I8(a), Mantissas::I8(b)) => $function(a, b, $($argument),*),
            (Mantissas::I16(a), Mantissas::I16(b)) => $function(a, b, $($argument),*),
            // The checker refused other widths.
            _ => Ok(Vec::new()),
        }
    };
}

pub(super) fn transpose(op: &Operator, a: &Tensor, rows: u64, columns: u64) -> Values {
    let area = rows.saturating_mul(columns);
    let matrices = a.ty().elements().checked_div(area).unwrap_or_default();
    let matrix = |b: u64| {
        let first = b.saturating_mul(area);
        let at =
            move |m: u64, n: u64| a.get(first.saturating_add(m.saturating_mul(columns)).saturating_add(n)).unwrap_or(0);
        (0..columns).flat_map(move |n| (0..rows).map(move |m| at(m, n)))
    };
    collect(op, (0..matrices).flat_map(matrix))
}

pub(super) fn mat_mul(op: &Operator, a: &Tensor, b: &Tensor, depth: u64, shift: i64) -> Values {
    fn products<T: Factor>(a: &[T], b: &[T], op: &Operator, depth: u64, round: Rescale) -> Values {
        let row = |a| rows(b, depth).map(move |b| round.apply(T::dot(a, b)));
        collect(op, rows(a, depth).flat_map(row))
    }
    narrow!(a, b, products(op, depth, Rescale::new(shift, op)))
}

/// What becomes of the sums of a row of the first operand: they are multiplied, by their column's number too, and
/// rounded.
pub(super) type Finish = (i64, Rescale);

pub(super) fn scaled_mat_mul(op: &Operator, [a, b, r, c]: [&Tensor; 4], product: &ScaledMatMul) -> Values {
    let round = Rescale::new(product.shift, op);
    let finish: Vec<Finish> = wide(r).into_iter().map(|r| (r, round)).collect();
    product_of_rows(op, [a, b, c], product, &finish)
}

/// Rules N-25 and N-51.
pub(super) fn product_of_rows(
    op: &Operator,
    [a, b, c]: [&Tensor; 3],
    product: &ScaledMatMul,
    finish: &[Finish],
) -> Values {
    fn products<A: Factor<B>, B>(
        a: &[A],
        b: &[B],
        op: &Operator,
        (finish, c): (&[Finish], &[i64]),
        product: &ScaledMatMul,
    ) -> Values {
        let offset = usize::try_from(product.offset).unwrap_or(usize::MAX);
        let row = |(a, finish): (_, &Finish)| {
            let (a, (r, round)) = (<[A]>::get(a, offset..).unwrap_or_default(), *finish);
            // The zip of a dot product ends with the shorter row, which is the second.
            let scaled = move |(b, c): (&[B], &i64)| r.wrapping_mul(*c).wrapping_mul(A::dot(a, b));
            rows(b, product.depth).zip(c).map(move |pair| round.apply(scaled(pair)))
        };
        collect(op, rows(a, product.row).zip(finish).flat_map(row))
    }
    let c = wide(c);
    let scales = (finish, c.as_slice());
    match (a.mantissas(), b.mantissas()) {
        (Mantissas::I16(a), Mantissas::I8(b)) => products(a, b, op, scales, product),
        _ => narrow!(a, b, products(op, scales, product)),
    }
}

pub(super) fn head_scores(op: &Operator, q: &Tensor, k: &Tensor, heads: &Heads) -> Values {
    fn products<T: Factor>(q: &[T], k: &[T], op: &Operator, heads: &Heads) -> Values {
        let (round, width) = (Rescale::new(heads.shift, op), heads.width);
        let (q_row, k_row) = (heads.heads.saturating_mul(width), heads.kv_heads.saturating_mul(width));
        let head = |h: u64| {
            let kv_head = heads.kv_head(h);
            rows(q, q_row).flat_map(move |q| {
                let q = nth_row(q, h, width);
                rows(k, k_row).map(move |k| round.apply(T::dot(q, nth_row(k, kv_head, width))))
            })
        };
        collect(op, (0..heads.heads).flat_map(head))
    }
    narrow!(q, k, products(op, heads))
}

pub(super) fn head_mix(op: &Operator, p: &Tensor, v: &Tensor, heads: &Heads) -> Values {
    fn products<T: Factor>(p: &[T], v: &[T], op: &Operator, heads: &Heads) -> Values {
        let round = Rescale::new(heads.shift, op);
        let one_head = |t: u64, h: u64| {
            let p = nth_row(p, h.saturating_mul(heads.tokens).saturating_add(t), heads.keys);
            let of_head = nth_row(v, heads.kv_head(h), heads.width.saturating_mul(heads.keys));
            rows(of_head, heads.keys).map(move |v| round.apply(T::dot(p, v)))
        };
        collect(op, (0..heads.tokens).flat_map(|t| (0..heads.heads).flat_map(move |h| one_head(t, h))))
    }
    narrow!(p, v, products(op, heads))
}
