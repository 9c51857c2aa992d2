//! Rows of a table, by their numbers (rule N-30).

use tch::{Kind, TchError, Tensor};
use tensorlink_num::operators::Gather;

use super::{OnTorch, rescale};
use crate::host::block::Precision;

/// Rule N-30: table, scale and ids in whatever widths they have; only what is drawn is widened.
pub(crate) fn gather(
    (table, scale, ids): (&Tensor, &Tensor, &Tensor),
    tokens: i64,
    to: Precision,
) -> Result<Tensor, TchError> {
    let last = table.size2()?.0 - 1;
    let ids = ids.f_reshape([-1])?.f_narrow(0, 0, tokens)?.f_to_kind(Kind::Int64)?.f_clamp(0, last)?;
    let rows = table.f_index_select(0, &ids)?.f_to_kind(Kind::Int64)?;
    let scales = scale.f_reshape([-1])?.f_index_select(0, &ids)?.f_to_kind(Kind::Int64)?;
    rescale(&rows.f_mul(&scales.f_reshape([-1, 1])?)?, to.shift, to.limit)
}

// By the function above: it takes operands in whatever widths they have.
impl OnTorch for Gather {}
