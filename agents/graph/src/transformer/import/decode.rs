//! Floats out of the bytes of a tensor.

use half::{bf16, f16};
use safetensors::Dtype;

use super::super::layout::Window;

/// Whether [`floats`] knows a type.
pub(super) const fn known(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16)
}

/// The elements of a window as floats, row by row; fewer if the data is shorter, none for a type that is not
/// [`known`].
pub(in crate::transformer) fn floats(dtype: Dtype, data: &[u8], window: &Window) -> Vec<f32> {
    match dtype {
        Dtype::F32 => gather(data, window, f32::from_le_bytes),
        Dtype::F16 => gather(data, window, |bytes| f16::from_le_bytes(bytes).to_f32()),
        Dtype::BF16 => gather(data, window, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        _ => Vec::new(),
    }
}

fn gather<const N: usize>(data: &[u8], window: &Window, decode: impl Fn([u8; N]) -> f32 + Copy) -> Vec<f32> {
    let (elements, _) = data.as_chunks::<N>();
    let mut values = Vec::with_capacity(window.rows.saturating_mul(window.columns).min(elements.len()));
    for row in 0..window.rows {
        let start = window.start.saturating_add(row.saturating_mul(window.row));
        let rest = elements.get(start..).unwrap_or_default();
        if window.column == 1 {
            let row = rest.get(..window.columns).unwrap_or_default();
            values.extend(row.iter().copied().map(decode));
        } else {
            values.extend(rest.iter().step_by(window.column.max(1)).take(window.columns).copied().map(decode));
        }
    }
    values
}
