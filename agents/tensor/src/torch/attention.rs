//! Products of attention in `f64`: 4096 products of 2^30 stay below 2^53.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::{HeadMix, HeadScores};

use super::OnTorch;

/// `kv_heads × (heads that share one · rows) × depth` by `kv_heads × columns × depth`, in int64.
fn product(a: &Tensor, b: &Tensor) -> Result<Tensor, TchError> {
    a.f_to_kind(Kind::Double)?.f_bmm(&b.f_to_kind(Kind::Double)?.f_transpose(1, 2)?)?.f_to_kind(Kind::Int64)
}

/// Sums of rule N-26, in int64: `q` is T × (H·D), `k` is S × (G·D); H × T × S.
pub(crate) fn scores(q: &Tensor, k: &Tensor, heads: i64) -> Result<Tensor, TchError> {
    let ((t, width), (s, all)) = (q.size2()?, k.size2()?);
    let depth = width / heads;
    let kv_heads = all / depth;
    let q = q.f_reshape([t, heads, depth])?.f_transpose(0, 1)?.f_reshape([kv_heads, heads / kv_heads * t, depth])?;
    let k = k.f_reshape([s, kv_heads, depth])?.f_transpose(0, 1)?;
    product(&q, &k)?.f_reshape([heads, t, s])
}

/// Sums of rule N-27, in int64: `p` is H × T × S, `v` is (G·D) × S of heads as wide as the output's; T × (H·D).
pub(crate) fn mix(p: &Tensor, v: &Tensor, depth: i64) -> Result<Tensor, TchError> {
    let ((heads, t, s), (all, _)) = (p.size3()?, v.size2()?);
    let kv_heads = all / depth;
    let sums = product(&p.f_reshape([kv_heads, heads / kv_heads * t, s])?, &v.f_reshape([kv_heads, depth, s])?)?;
    sums.f_reshape([heads, t, depth])?.f_transpose(0, 1)?.f_reshape([t, heads * depth])?.f_contiguous()
}

// By the functions above.
impl OnTorch for HeadMix {}
impl OnTorch for HeadScores {}
