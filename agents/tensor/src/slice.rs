//! Mantissas in the host's memory, of whatever width.

/// Host memory of a tensor in its storage width.
#[derive(Clone, Copy)]
pub(crate) enum Slice<'a> {
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
}

/// Host memory of a tensor being written.
pub(crate) enum SliceMut<'a> {
    I8(&'a mut [i8]),
    I16(&'a mut [i16]),
    I32(&'a mut [i32]),
    I64(&'a mut [i64]),
}

/// Runs one body for whatever width a [`Slice`], [`SliceMut`] or [`Mantissas`](tensorlink_num::tensor::Mantissas) has.
macro_rules! each_width {
    ($kind:ident, $value:expr, $v:ident => $body:expr) => {
        match $value {
            $kind::I8($v) => $body,
            $kind::I16($v) => $body,
            $kind::I32($v) => $body,
            $kind::I64($v) => $body,
        }
    };
}
pub(crate) use each_width;

/// Runs one body for an operand and an output of the same width.
macro_rules! same_width {
    ($a:expr, $out:expr, ($x:ident, $y:ident) => $body:expr) => {
        match ($a, $out) {
            ($crate::slice::Slice::I8($x), $crate::slice::SliceMut::I8($y)) => $body,
            ($crate::slice::Slice::I16($x), $crate::slice::SliceMut::I16($y)) => $body,
            ($crate::slice::Slice::I32($x), $crate::slice::SliceMut::I32($y)) => $body,
            ($crate::slice::Slice::I64($x), $crate::slice::SliceMut::I64($y)) => $body,
            _ => {
                return Err(tensorlink_program::EngineError::Malformed("output and operand differ in width".to_owned()))
            }
        }
    };
}
pub(crate) use same_width;

macro_rules! slice_mut {
    ($($t:ty => $variant:ident),*) => {$(
        impl<'a> From<&'a mut [$t]> for SliceMut<'a> {
            fn from(memory: &'a mut [$t]) -> Self {
                Self::$variant(memory)
            }
        }
    )*};
}
slice_mut!(i8 => I8, i16 => I16, i32 => I32, i64 => I64);
