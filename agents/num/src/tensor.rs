//! A tensor of integer mantissas in host memory.

use std::sync::Arc;

use tensorlink_types::{TensorType, Width};
use thiserror::Error;

/// Mantissas in the storage width of their type, row-major.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mantissas {
    /// Up to 8 bits.
    I8(Vec<i8>),
    /// Up to 16 bits.
    I16(Vec<i16>),
    /// Up to 32 bits.
    I32(Vec<i32>),
    /// Up to 64 bits.
    I64(Vec<i64>),
}

/// A tensor: a type and as many mantissas as it says, each within its limit (rule N-1). Valid by construction. Clones
/// share the memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    ty: TensorType,
    mantissas: Arc<Mantissas>,
}

/// Why mantissas do not make a tensor of the given type.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TensorError {
    /// The number of elements or bytes differs from what the type says.
    #[error("{ty} needs {expected} {unit}, got {actual}")]
    Length {
        /// The type.
        ty: TensorType,
        /// `elements` or `bytes`.
        unit: &'static str,
        /// What the type says.
        expected: u64,
        /// What was given.
        actual: u64,
    },
    /// A mantissa exceeds the limit of the type's bits (rule N-1).
    #[error("element {index} of {ty} is {value}, beyond ±{}", ty.limit())]
    Range {
        /// The type.
        ty: TensorType,
        /// Row-major index of the first offender.
        index: u64,
        /// Its value.
        value: i64,
    },
}

macro_rules! each_width {
    ($mantissas:expr, $v:ident => $body:expr) => {
        match $mantissas {
            Mantissas::I8($v) => $body,
            Mantissas::I16($v) => $body,
            Mantissas::I32($v) => $body,
            Mantissas::I64($v) => $body,
        }
    };
}

impl Mantissas {
    /// Number of mantissas.
    pub fn len(&self) -> usize {
        each_width!(self, v => v.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Storage width.
    pub const fn width(&self) -> Width {
        match self {
            Self::I8(_) => Width::I8,
            Self::I16(_) => Width::I16,
            Self::I32(_) => Width::I32,
            Self::I64(_) => Width::I64,
        }
    }

    /// The mantissa at a row-major index, if there is one.
    pub fn get(&self, index: usize) -> Option<i64> {
        #[allow(clippy::useless_conversion, reason = "the macro also widens what is 64 bits already")]
        {
            each_width!(self, v => v.get(index).map(|m| i64::from(*m)))
        }
    }

    /// All mantissas, widened.
    pub fn to_vec(&self) -> Vec<i64> {
        #[allow(clippy::useless_conversion, reason = "the macro also widens what is 64 bits already")]
        {
            each_width!(self, v => v.iter().map(|m| i64::from(*m)).collect())
        }
    }
}

impl Tensor {
    /// Checks mantissas given in storage width.
    ///
    /// # Errors
    /// [`TensorError::Length`] if count or width do not fit the type, [`TensorError::Range`] if a mantissa exceeds it.
    pub fn new(ty: TensorType, mantissas: Mantissas) -> Result<Self, TensorError> {
        let (expected, actual) = (ty.byte_len(), mantissas.len().saturating_mul(mantissas.width().bytes()) as u64);
        if mantissas.width() != ty.width() || expected != actual {
            return Err(TensorError::Length { ty, unit: "bytes", expected, actual });
        }
        let limit = ty.limit();
        #[allow(clippy::useless_conversion, reason = "the macro also widens what is 64 bits already")]
        let offender = each_width!(&mantissas, v => {
            let first = || v.iter().position(|m| i64::from(*m).unsigned_abs() > limit.unsigned_abs());
            if within(v, limit) { None } else { first() }
        });
        match offender {
            Some(index) => {
                let value = mantissas.get(index).unwrap_or_default();
                Err(TensorError::Range { ty, index: index as u64, value })
            }
            None => Ok(Self { ty, mantissas: Arc::new(mantissas) }),
        }
    }

    /// Narrows widened mantissas into the type's storage width.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_wide(ty: TensorType, values: &[i64]) -> Result<Self, TensorError> {
        let (expected, actual) = (ty.elements(), values.len() as u64);
        if expected != actual {
            return Err(TensorError::Length { ty, unit: "elements", expected, actual });
        }
        let limit = ty.limit();
        if let Some(index) = values.iter().position(|m| m.unsigned_abs() > limit.unsigned_abs()) {
            let value = values.get(index).copied().unwrap_or_default();
            return Err(TensorError::Range { ty, index: index as u64, value });
        }
        // SAFETY of the casts: every value was just checked against the limit of these bits.
        let mantissas = match ty.width() {
            Width::I8 => Mantissas::I8(values.iter().map(|m| *m as i8).collect()),
            Width::I16 => Mantissas::I16(values.iter().map(|m| *m as i16).collect()),
            Width::I32 => Mantissas::I32(values.iter().map(|m| *m as i32).collect()),
            Width::I64 => Mantissas::I64(values.to_vec()),
        };
        Ok(Self { ty, mantissas: Arc::new(mantissas) })
    }

    /// A tensor of zeros.
    pub fn zeros(ty: TensorType) -> Self {
        let n = ty.elements() as usize;
        let mantissas = match ty.width() {
            Width::I8 => Mantissas::I8(vec![0; n]),
            Width::I16 => Mantissas::I16(vec![0; n]),
            Width::I32 => Mantissas::I32(vec![0; n]),
            Width::I64 => Mantissas::I64(vec![0; n]),
        };
        Self { ty, mantissas: Arc::new(mantissas) }
    }

    /// Decodes canonical bytes: row-major, little-endian two's complement (rule C-1, without padding).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_bytes(ty: TensorType, bytes: &[u8]) -> Result<Self, TensorError> {
        let (expected, actual) = (ty.byte_len(), bytes.len() as u64);
        if expected != actual {
            return Err(TensorError::Length { ty, unit: "bytes", expected, actual });
        }
        // Every chunk has the width of its type. An iterator that knows its length takes no more memory than it needs.
        macro_rules! decode {
            ($t:ty) => {
                bytes
                    .chunks_exact(size_of::<$t>())
                    .map(|c| c.try_into().map(<$t>::from_le_bytes).unwrap_or_default())
                    .collect()
            };
        }
        let mantissas = match ty.width() {
            Width::I8 => Mantissas::I8(decode!(i8)),
            Width::I16 => Mantissas::I16(decode!(i16)),
            Width::I32 => Mantissas::I32(decode!(i32)),
            Width::I64 => Mantissas::I64(decode!(i64)),
        };
        Self::new(ty, mantissas)
    }

    /// Canonical bytes (rule C-1, without padding).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.append_to(&mut bytes);
        bytes
    }

    /// Appends the canonical bytes.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        each_width!(&*self.mantissas, v => {
            bytes.reserve(size_of_val(v.as_slice()));
            for mantissa in v {
                bytes.extend_from_slice(&mantissa.to_le_bytes());
            }
        });
    }

    /// The type.
    pub const fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The mantissas.
    pub fn mantissas(&self) -> &Mantissas {
        &self.mantissas
    }

    /// The mantissa at a row-major index, if there is one.
    pub fn get(&self, index: u64) -> Option<i64> {
        self.mantissas.get(usize::try_from(index).ok()?)
    }

    /// The values as floats: mantissa times `2^−exponent`. For people and metrics only.
    pub fn to_f64(&self) -> Vec<f64> {
        let unit = (-f64::from(self.ty.exponent())).exp2();
        self.mantissas.to_vec().into_iter().map(|m| m as f64 * unit).collect()
    }
}

/// Whether none exceeds the limit: by the extremes, which compilers find many elements at a time.
fn within<T: Copy + Ord + Into<i64>>(mantissas: &[T], limit: i64) -> bool {
    let Some(first) = mantissas.first() else { return true };
    let (low, high) = mantissas.iter().fold((*first, *first), |(low, high), m| (low.min(*m), high.max(*m)));
    low.into() >= limit.saturating_neg() && high.into() <= limit
}
