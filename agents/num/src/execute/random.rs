//! Rules N-46 and N-48.

use tensorlink_types::Operator;

use super::{Rescale, collect, rows, wide};
use crate::checked::{DITHER_DRAWS, DROPOUT_DRAWS};
use crate::context::StepContext;
use crate::error::OpError;
use crate::fixed::limit;
use crate::philox::draw_element;
use crate::tensor::Tensor;

type Values = Result<Vec<i64>, OpError>;

pub(super) fn dropout(
    op: &Operator,
    a: &Tensor,
    context: &StepContext,
    (keep, stream): (u64, u32),
    (c, shift): (i64, i64),
) -> Values {
    let round = Rescale::new(shift, op);
    let kept = |i| u64::from(draw_element(&context.job_key, i, context.step, stream, DROPOUT_DRAWS)) < keep;
    let element = |(i, a): (u64, i64)| if kept(i) { round.apply(a.wrapping_mul(c)) } else { 0 };
    collect(op, (0..).zip(wide(a)).map(element))
}

pub(super) fn dither(
    op: &Operator,
    [p, z]: [&Tensor; 2],
    context: &StepContext,
    depth: u64,
    (places, stream): (u32, u32),
) -> Values {
    let (p, z, limit) = (wide(p), wide(z), limit(op.output.bits()));
    let word = |i| i64::from(draw_element(&context.job_key, i, context.step, stream, DITHER_DRAWS));
    let element = |(i, (p, d)): (u64, (i64, i64))| {
        let rest = word(i).wrapping_mul(d) >> 32;
        let quotient = p.wrapping_shl(places).wrapping_add(rest).checked_div_euclid(d).unwrap_or_default();
        quotient.clamp(limit.wrapping_neg(), limit)
    };
    let pairs = rows(&p, depth).zip(&z).flat_map(|(row, z)| row.iter().map(|p| (*p, (*z).max(1))));
    collect(op, (0..).zip(pairs).map(element))
}
