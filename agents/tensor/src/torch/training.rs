//! What training adds (rules N-38 to N-48), in `int64`.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::StepContext;
use tensorlink_num::philox::key_words;

use super::norm::square_root;
use super::rescale;
use super::sampling::philox_words;

/// `g` is `[K, T]`, of whose columns those with one id are summed; `[entries, K]`.
pub(super) fn gather_grad(g: &Tensor, ids: &Tensor, entries: i64) -> Result<Tensor, TchError> {
    let (width, tokens) = g.size2()?;
    let ids = ids.f_reshape([-1])?.f_narrow(0, 0, tokens)?.f_clamp(0, entries - 1)?;
    let sums = Tensor::f_zeros([entries, width], (Kind::Int64, g.device()))?;
    sums.f_index_add(0, &ids, &g.f_transpose(0, 1)?.f_contiguous()?)
}

/// `⌊(2·m·2^bits + d) / 2d⌋`, `d = ⌊√v⌋ + floor`.
pub(super) fn ratio(m: &Tensor, v: &Tensor, (bits, floor): (u32, i64), limit: i64) -> Result<Tensor, TchError> {
    let divisor = square_root(&v.f_clamp_min(0)?)?.f_add_scalar(floor)?;
    let dividend = m.f_bitwise_left_shift_tensor_scalar(i64::from(bits) + 1)?.f_add(&divisor)?;
    dividend.f_div_tensor_mode(&divisor.f_mul_scalar(2)?, "floor")?.f_clamp(-limit, limit)
}

/// `min(2^bits, ⌊most·2^bits / √s⌋)`.
pub(super) fn shrink(s: &Tensor, most: i64, bits: u32, limit: i64) -> Result<Tensor, TchError> {
    let root = square_root(&s.f_clamp_min(0)?)?.f_clamp_min(1)?;
    root.f_full_like(most << bits)?.f_div_tensor_mode(&root, "floor")?.f_clamp_max((1i64 << bits).min(limit))
}

/// Row of a table for the step.
pub(super) fn at_step(table: &Tensor, context: &StepContext) -> Result<Tensor, TchError> {
    let rows = table.size().first().copied().unwrap_or(1);
    table.f_narrow(0, i64::from(context.step).min(rows - 1), 1)
}

/// Words that Philox draws for every element of a tensor.
fn words(like: &Tensor, stream: u32, draws: u32, context: &StepContext) -> Result<Tensor, TchError> {
    let places = Tensor::f_arange(like.numel() as i64, (Kind::Int64, like.device()))?;
    let (low, high) = (places.f_bitwise_and(0xffff_ffff)?, places.f_bitwise_right_shift_tensor_scalar(32)?);
    let constant = |value: u32| low.f_full_like(i64::from(value));
    let counter =
        [low.shallow_clone(), constant(context.step)?, constant(stream)?, high.f_add_scalar(i64::from(draws))?];
    let [first, second] = key_words(&context.job_key);
    philox_words(counter, [constant(first)?, constant(second)?])?.f_reshape(like.size())
}

/// Rule N-46: `c·a` rescaled where the draw is below `keep`.
pub(super) fn dropout(
    a: &Tensor,
    (keep, stream): (u64, u32),
    (c, shift, limit): (i64, i32, i64),
    context: &StepContext,
) -> Result<Tensor, TchError> {
    let words = words(a, stream, tensorlink_num::kernel::DROPOUT_DRAWS, context)?;
    // At most 2^32.
    let dropped = words.f_ge(keep as i64)?;
    rescale(&a.f_mul_scalar(c)?, shift, limit)?.f_masked_fill(&dropped, 0)
}

/// Rule N-48; `p` a matrix, `z` a column.
pub(super) fn dither(
    p: &Tensor,
    z: &Tensor,
    (bits, stream): (u32, u32),
    limit: i64,
    context: &StepContext,
) -> Result<Tensor, TchError> {
    let divisor = z.f_clamp_min(1)?;
    let words = words(p, stream, tensorlink_num::kernel::DITHER_DRAWS, context)?;
    let rest = words.f_mul(&divisor)?.f_bitwise_right_shift_tensor_scalar(32)?;
    let dividend = p.f_bitwise_left_shift_tensor_scalar(i64::from(bits))?.f_add(&rest)?;
    dividend.f_div_tensor_mode(&divisor, "floor")?.f_clamp(-limit, limit)
}
