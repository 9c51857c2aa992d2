//! Rules N-49 to N-51.

use tensorlink_types::Operator;

use super::linear::{Finish, product_of_rows};
use super::{Rescale, collect, rows, wide};
use crate::checked::{ScaledMatMul, row_shift};
use crate::error::OpError;
use crate::tensor::Tensor;

type Values = Result<Vec<i64>, OpError>;

pub(super) fn row_shifts(op: &Operator, a: &Tensor, depth: u64, bits: u32) -> Values {
    let shift = |row: &[i64]| {
        let largest = row.iter().map(|a| a.unsigned_abs()).max().unwrap_or_default();
        let length = u64::BITS.saturating_sub(largest.leading_zeros());
        i64::from(length.saturating_sub(bits.saturating_sub(1)))
    };
    collect(op, rows(&wide(a), depth).map(shift))
}

pub(super) fn shift_rows(op: &Operator, a: &Tensor, s: &Tensor, depth: u64) -> Values {
    let row = |(row, s): (_, i64)| {
        let round = Rescale::new(row_shift(s), op);
        <[i64]>::iter(row).map(move |a| round.apply(*a))
    };
    collect(op, rows(&wide(a), depth).zip(wide(s)).flat_map(row))
}

pub(super) fn shifted_mat_mul(op: &Operator, [a, b, s, c]: [&Tensor; 4], product: &ScaledMatMul) -> Values {
    let of_row = |s| (1, Rescale::new(product.shift.wrapping_sub(row_shift(s)), op));
    let finish: Vec<Finish> = wide(s).into_iter().map(of_row).collect();
    product_of_rows(op, [a, b, c], product, &finish)
}
