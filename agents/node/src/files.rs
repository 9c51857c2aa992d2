//! Tensors in files: canonical bytes, one tensor after another, without padding. Types come from the program.

use tensorlink_num::{Tensor, TensorError};
use tensorlink_types::TensorType;
use thiserror::Error;

/// A file that does not hold the tensors it should.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum FileError {
    /// The length is not that of the tensors together.
    #[error("the file has {actual} bytes, its tensors need {expected}")]
    Length {
        /// Bytes the tensors need.
        expected: u64,
        /// Bytes there are.
        actual: u64,
    },
    /// A mantissa is outside its type.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// Bytes that tensors of these types need.
pub fn file_len<'a>(types: impl IntoIterator<Item = &'a TensorType>) -> u64 {
    types.into_iter().map(TensorType::byte_len).sum()
}

/// Writes tensors one after another.
pub fn join<'a>(tensors: impl IntoIterator<Item = &'a Tensor, IntoIter: Clone>) -> Vec<u8> {
    let tensors = tensors.into_iter();
    // Of states in gigabytes no part is moved when more room is needed.
    let length = file_len(tensors.clone().map(Tensor::ty));
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    for tensor in tensors {
        tensor.append_to(&mut bytes);
    }
    bytes
}

/// Reads tensors one after another.
///
/// # Errors
/// [`FileError`] if the bytes are not exactly these tensors.
pub fn split<'a>(bytes: &[u8], types: impl IntoIterator<Item = &'a TensorType>) -> Result<Vec<Tensor>, FileError> {
    let types: Vec<&TensorType> = types.into_iter().collect();
    let (expected, actual) = (file_len(types.iter().copied()), bytes.len() as u64);
    if expected != actual {
        return Err(FileError::Length { expected, actual });
    }
    let mut rest = bytes;
    let mut tensors = Vec::with_capacity(types.len());
    for ty in types {
        let (head, tail) = rest.split_at_checked(ty.byte_len() as usize).unwrap_or((rest, &[]));
        tensors.push(Tensor::from_bytes(ty.clone(), head)?);
        rest = tail;
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_round_trip_and_lengths_are_checked() {
        let types = [TensorType::new(8, 0, &[3]).unwrap(), TensorType::new(26, 24, &[2, 2]).unwrap()];
        let tensors = [
            Tensor::from_wide(types[0].clone(), &[1, -2, 127]).unwrap(),
            Tensor::from_wide(types[1].clone(), &[1 << 24, 0, -5, 7]).unwrap(),
        ];
        let bytes = join(&tensors);
        assert_eq!(split(&bytes, &types).unwrap(), tensors);
        assert_eq!(split(&bytes[1..], &types), Err(FileError::Length { expected: 19, actual: 18 }));
    }
}
