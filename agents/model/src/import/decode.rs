//! Floats out of the bytes of a tensor.

use std::fmt::{self, Display, Formatter};

use half::{bf16, f16};

use super::super::gguf::Blocks;
use super::super::layout::Window;

/// How a tensor holds its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dtype {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// The upper halves of 32-bit floats.
    Bf16,
    /// Blocks of small integers with scales.
    Blocks(Blocks),
    /// Something that is not read.
    Other(safetensors::Dtype),
}

impl From<safetensors::Dtype> for Dtype {
    fn from(theirs: safetensors::Dtype) -> Self {
        match theirs {
            safetensors::Dtype::F32 => Self::F32,
            safetensors::Dtype::F16 => Self::F16,
            safetensors::Dtype::BF16 => Self::Bf16,
            other => Self::Other(other),
        }
    }
}

impl Display for Dtype {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::F32 => f.write_str("F32"),
            Self::F16 => f.write_str("F16"),
            Self::Bf16 => f.write_str("BF16"),
            Self::Blocks(blocks) => f.write_str(blocks.name()),
            Self::Other(theirs) => write!(f, "{theirs:?}"),
        }
    }
}

/// The elements of a window as floats, row by row; fewer if the data is shorter, none for a type that is not read.
pub(crate) fn floats(dtype: Dtype, data: &[u8], window: &Window) -> Vec<f32> {
    match dtype {
        Dtype::F32 => gather(data, window, f32::from_le_bytes),
        Dtype::F16 => gather(data, window, |bytes| f16::from_le_bytes(bytes).to_f32()),
        Dtype::Bf16 => gather(data, window, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        Dtype::Blocks(blocks) => unpack(blocks, data, window),
        Dtype::Other(_) => Vec::new(),
    }
}

fn gather<const N: usize>(data: &[u8], window: &Window, decode: impl Fn([u8; N]) -> f32 + Copy) -> Vec<f32> {
    let (elements, _) = data.as_chunks::<N>();
    let mut values = Vec::with_capacity(window.rows.saturating_mul(window.columns).min(elements.len()));
    for row in 0..window.rows {
        let rest = elements.get(window.begin(row)..).unwrap_or_default();
        if window.column == 1 {
            let row = rest.get(..window.columns).unwrap_or_default();
            values.extend(row.iter().copied().map(decode));
        } else {
            values.extend(rest.iter().step_by(window.column.max(1)).take(window.columns).copied().map(decode));
        }
    }
    values
}

/// As [`gather`], where a row begins anywhere in a block.
fn unpack(blocks: Blocks, data: &[u8], window: &Window) -> Vec<f32> {
    let all = (data.len() / blocks.bytes()).saturating_mul(blocks.elements());
    let mut values = Vec::with_capacity(window.rows.saturating_mul(window.columns).min(all));
    let step = window.column.max(1);
    let mut unpacked = Vec::new();
    for row in 0..window.rows {
        let begin = window.begin(row);
        let (first, before) = (begin / blocks.elements(), begin % blocks.elements());
        let count = before.saturating_add(window.columns.saturating_mul(step)).div_ceil(blocks.elements());
        unpacked.clear();
        for block in data.chunks_exact(blocks.bytes()).skip(first).take(count) {
            blocks.unpack(block, &mut unpacked);
        }
        values.extend(unpacked.iter().skip(before).step_by(step).take(window.columns));
    }
    values
}
