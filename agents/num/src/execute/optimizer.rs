//! Rules N-42 and N-43.

use tensorlink_types::Operator;

use super::{collect, wide};
use crate::error::OpError;
use crate::fixed::limit;
use crate::tensor::Tensor;

type Values = Result<Vec<i64>, OpError>;

pub(super) fn ratio(op: &Operator, m: &Tensor, v: &Tensor, places: u32, floor: i64) -> Values {
    let limit = limit(op.output.bits());
    let ratio = |(m, v): (i64, i64)| {
        let divisor = v.max(0).isqrt().wrapping_add(floor);
        let dividend = m.wrapping_shl(places.wrapping_add(1)).wrapping_add(divisor);
        let quotient = dividend.checked_div_euclid(divisor.wrapping_mul(2)).unwrap_or_default();
        quotient.clamp(limit.wrapping_neg(), limit)
    };
    collect(op, wide(m).into_iter().zip(wide(v)).map(ratio))
}

pub(super) fn shrink(op: &Operator, s: &Tensor, places: u32, most: i64) -> Values {
    let (one, limit) = (1i64.wrapping_shl(places), limit(op.output.bits()));
    let share = |s: i64| one.wrapping_mul(most).checked_div(s.max(0).isqrt().max(1)).unwrap_or_default();
    collect(op, wide(s).into_iter().map(|s| one.min(share(s)).min(limit)))
}
