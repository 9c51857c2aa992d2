//! Gradients of rows and the optimiser (rules N-38 to N-45), in `int64`.

use tch::{Kind, TchError, Tensor};

use super::norm::square_root;
use super::rescale;

/// A matrix with a row for each element of `b`, and `b` as a column.
pub(super) fn runs(a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    let column = b.f_reshape([-1, 1])?;
    Ok((a.f_reshape([column.numel() as i64, -1])?, column))
}

/// `g` is K × T; `entries × K`.
pub(super) fn gather_grad(
    g: &Tensor,
    ids: &Tensor,
    (entries, width): (i64, i64),
    (shift, limit): (i32, i64),
) -> Result<Tensor, TchError> {
    let ids = ids.f_reshape([-1])?.f_narrow(0, 0, g.size2()?.1)?.f_clamp(0, entries - 1)?;
    let none = Tensor::f_zeros([entries, width], (Kind::Int64, g.device()))?;
    // Sums of integers are the same in any order.
    rescale(&none.f_index_add(0, &ids, &g.f_transpose(0, 1)?)?, shift, limit)
}

/// What rules N-42 and N-43 take the root of; few libraries have a root of integers.
fn root(v: &Tensor) -> Result<Tensor, TchError> {
    square_root(&v.f_clamp_min(0)?)
}

/// `⌊(2·m·2^bits + d) / 2d⌋`.
pub(super) fn ratio(m: &Tensor, v: &Tensor, (bits, floor): (u32, i64), limit: i64) -> Result<Tensor, TchError> {
    let d = root(v)?.f_add_scalar(floor)?;
    let dividend = m.f_bitwise_left_shift_tensor_scalar(i64::from(bits) + 1)?.f_add(&d)?;
    dividend.f_div_tensor_mode(&d.f_mul_scalar(2)?, "floor")?.f_clamp(-limit, limit)
}

pub(super) fn shrink(s: &Tensor, (most, bits): (i64, u32), limit: i64) -> Result<Tensor, TchError> {
    let (root, one) = (root(s)?.f_clamp_min(1)?, 1i64 << bits);
    root.f_full_like(one * most)?.f_div_tensor_mode(&root, "floor")?.f_clamp_max(one.min(limit))
}

/// The row for a step of a table of rows of `width`.
pub(super) fn at_step(table: &Tensor, step: u32, width: i64) -> Result<Tensor, TchError> {
    let rows = table.f_reshape([-1, width])?;
    rows.f_select(0, i64::from(step).min(rows.size2()?.0 - 1))
}

/// Rows of `a` in heads of `depth`, to rows of `row`.
pub(super) fn group_sum(a: &Tensor, (depth, row): (i64, i64), (shift, limit): (i32, i64)) -> Result<Tensor, TchError> {
    let (tokens, width) = a.size2()?;
    let kv_heads = row / depth;
    let heads = a.f_reshape([tokens, kv_heads, width / row, depth])?;
    rescale(&heads.f_sum_dim_intlist(&[2i64][..], false, Kind::Int64)?, shift, limit)
}
