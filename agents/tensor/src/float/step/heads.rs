//! Heads of attention.

use tch::{Kind, TchError, Tensor};

use super::{per, product};

/// `Σ_d q[t,h,d]·k[s,g,d]` of every head; operands with the lengths of their rows.
pub(super) fn scores(
    (q, q_row): (&Tensor, i64),
    (k, k_row): (&Tensor, i64),
    (heads, products): (i64, Kind),
) -> Result<Tensor, TchError> {
    let width = per(q_row, heads).max(1);
    let q = q.f_reshape([-1, heads, width])?.f_transpose(0, 1)?;
    let k = k.f_reshape([-1, per(k_row, width), width])?.f_permute([1, 2, 0])?;
    product(&q, &shared(k, heads)?, products)
}

/// `Σ_s p[h,t,s]·v[g,d,s]`; the values transposed, with the length of their rows; of so many heads, to rows of
/// this length.
pub(super) fn mix(
    p: &Tensor,
    (v, keys): (&Tensor, i64),
    (heads, row, products): (i64, i64, Kind),
) -> Result<Tensor, TchError> {
    let v = v.f_reshape([-1, per(row, heads).max(1), keys])?.f_transpose(1, 2)?;
    let mixed = product(&p.f_reshape([heads, -1, keys])?, &shared(v, heads)?, products)?;
    mixed.f_transpose(0, 1)
}

/// Sums over the heads of each group; rows with their length, to rows of this one.
pub(super) fn group_sum((x, x_row): (&Tensor, i64), heads: i64, row: i64) -> Result<Tensor, TchError> {
    let width = per(x_row, heads).max(1);
    let kv_heads = per(row, width).max(1);
    x.f_reshape([-1, kv_heads, per(heads, kv_heads), width])?.f_sum_dim_intlist([2i64].as_slice(), false, None)
}

/// Keys or values of each of their heads, for each head that shares them.
fn shared(x: Tensor, heads: i64) -> Result<Tensor, TchError> {
    let (kv_heads, _, _) = x.size3()?;
    if kv_heads == heads { Ok(x) } else { x.f_repeat_interleave_self_int(per(heads, kv_heads), 0, None) }
}
