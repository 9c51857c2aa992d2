//! A libtorch tensor that knows its exact type.

use std::fmt;
use std::sync::Arc;

use tch::{Device, Kind, TchError};
use tensorlink_graph::EngineError;
use tensorlink_num::Tensor;
use tensorlink_num::tensor::Mantissas;
use tensorlink_types::{TensorType, Width};

/// A tensor in libtorch's memory, on the host or a GPU, in the storage width of its type. Clones share the memory, which
/// is never written again once the tensor exists.
#[derive(Clone)]
pub struct TorchTensor(Arc<Inner>);

struct Inner {
    ty: TensorType,
    /// Of the kind and dimensions of `ty`; contiguous, unless it lies in shared memory as columns.
    data: tch::Tensor,
    /// Memory that `data` is a part of, unless that is its own.
    owner: Option<Owner>,
}

/// Whose memory a tensor is a part of: as long as this is held, nobody writes or frees it.
#[derive(Clone)]
enum Owner {
    /// That of a cache.
    Cache(#[allow(dead_code, reason = "held, not read")] Arc<Shared>),
    /// That of a host tensor.
    Host(#[allow(dead_code, reason = "held, not read")] Tensor),
}

// SAFETY: the tensor is written only before `TorchTensor` is built and read-only after; libtorch allows concurrent
// reads of one tensor, and its reference counts are atomic.
unsafe impl Sync for Inner {}

/// Memory that is written further while no tensor is a part of it: whoever writes needs it mutably, and tensors hold it.
pub(crate) struct Shared(tch::Tensor);

// SAFETY: as for `Inner`; writing takes `&mut`.
unsafe impl Sync for Shared {}

impl Shared {
    pub(crate) const fn new(data: tch::Tensor) -> Self {
        Self(data)
    }

    /// For reading.
    pub(crate) const fn data(&self) -> &tch::Tensor {
        &self.0
    }

    /// For writing.
    pub(crate) const fn data_mut(&mut self) -> &mut tch::Tensor {
        &mut self.0
    }
}

impl fmt::Debug for TorchTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {:?}", self.0.ty, self.0.data.device())
    }
}

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

/// Runs one body for whatever width a [`Slice`], [`SliceMut`] or [`Mantissas`] has.
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

/// A device error from libtorch, on one line: its messages carry a C++ backtrace.
pub(crate) fn device(error: TchError) -> EngineError {
    let text = error.to_string();
    EngineError::Device(text.lines().next().unwrap_or("libtorch failed without a message").to_owned())
}

/// libtorch's element type for a storage width.
pub(crate) const fn kind(width: Width) -> Kind {
    match width {
        Width::I8 => Kind::Int8,
        Width::I16 => Kind::Int16,
        Width::I32 => Kind::Int,
        Width::I64 => Kind::Int64,
    }
}

/// Dimensions as libtorch takes them.
pub(crate) fn dims(ty: &TensorType) -> Vec<i64> {
    ty.dims().iter().map(|d| i64::from(*d)).collect()
}

/// Elements from one index of each dimension to the next, rows one after another.
fn strides(ty: &TensorType) -> Vec<i64> {
    let mut strides = Vec::with_capacity(ty.dims().len());
    let mut stride = 1;
    for dim in ty.dims().iter().rev() {
        strides.push(stride);
        stride *= i64::from(*dim);
    }
    strides.reverse();
    strides
}

impl TorchTensor {
    /// Checks that `data` is laid out as `ty` says; the caller vouches for the mantissas' range.
    ///
    /// # Errors
    /// [`EngineError::Device`] if libtorch answered with another shape, type or layout than it was asked for.
    pub(crate) fn wrap(ty: TensorType, data: tch::Tensor) -> Result<Self, EngineError> {
        Self::owned(ty, data, None)
    }

    fn owned(ty: TensorType, data: tch::Tensor, owner: Option<Owner>) -> Result<Self, EngineError> {
        let actual = data.f_kind().map_err(device)?;
        if data.size() != dims(&ty) || actual != kind(ty.width()) || !data.is_contiguous() {
            let size = data.size();
            return Err(EngineError::Device(format!("libtorch gave {actual:?} {size:?} where {ty} was due")));
        }
        Ok(Self(Arc::new(Inner { ty, data, owner })))
    }

    /// A part of shared memory: rows of it, or the first columns.
    ///
    /// # Errors
    /// As [`Self::wrap`].
    pub(crate) fn within(ty: TensorType, data: tch::Tensor, shared: Arc<Shared>) -> Result<Self, EngineError> {
        let actual = data.f_kind().map_err(device)?;
        let rows = data.stride().last() == Some(&1);
        if data.size() != dims(&ty) || actual != kind(ty.width()) || !rows {
            let size = data.size();
            return Err(EngineError::Device(format!("libtorch gave {actual:?} {size:?} where {ty} was due")));
        }
        Ok(Self(Arc::new(Inner { ty, data, owner: Some(Owner::Cache(shared)) })))
    }

    /// A part of this tensor, `data` being one of its own.
    ///
    /// # Errors
    /// As [`Self::wrap`].
    pub(crate) fn inside(&self, ty: TensorType, data: tch::Tensor) -> Result<Self, EngineError> {
        match &self.0.owner {
            Some(Owner::Cache(shared)) => Self::within(ty, data, Arc::clone(shared)),
            owner => Self::owned(ty, data, owner.clone()),
        }
    }

    /// Copies a host tensor to a device. If that is the host, mantissas of at most 32 bits stay where they are: weights would fill its memory
    /// twice, and no operation gives an operand on as its result, which libtorch does only with what has 64 bits already.
    pub(crate) fn import(tensor: &Tensor, target: Device) -> Result<Self, EngineError> {
        let ty = tensor.ty().clone();
        let address = match (tensor.mantissas(), target) {
            (Mantissas::I8(v), Device::Cpu) => Some(v.as_ptr().cast()),
            (Mantissas::I16(v), Device::Cpu) => Some(v.as_ptr().cast()),
            (Mantissas::I32(v), Device::Cpu) => Some(v.as_ptr().cast()),
            _ => None,
        };
        if let Some(address) = address {
            // SAFETY: as many elements as the dimensions say (rule N-1), one after another; the owner keeps them, and every part of
            // the tensor has the owner; nothing writes a `TorchTensor` that exists, nor the mantissas of a `Tensor`.
            let data =
                unsafe { tch::Tensor::f_from_blob(address, &dims(&ty), &strides(&ty), kind(ty.width()), Device::Cpu) };
            return Self::owned(ty, data.map_err(device)?, Some(Owner::Host(tensor.clone())));
        }
        let flat = each_width!(Mantissas, tensor.mantissas(), v => tch::Tensor::f_from_slice(v)).map_err(device)?;
        let data = flat.f_view(dims(&ty).as_slice()).and_then(|t| t.f_to_device(target)).map_err(device)?;
        Self::wrap(ty, data)
    }

    /// Copies the tensor to host memory; checks every mantissa (rule N-1).
    pub(crate) fn export(&self) -> Result<Tensor, EngineError> {
        let data = self.0.data.f_to_device(Device::Cpu).and_then(|data| data.f_contiguous()).map_err(device)?;
        let host = self.inside(self.0.ty.clone(), data)?;
        let mantissas = match host.slice()? {
            Slice::I8(v) => Mantissas::I8(v.to_vec()),
            Slice::I16(v) => Mantissas::I16(v.to_vec()),
            Slice::I32(v) => Mantissas::I32(v.to_vec()),
            Slice::I64(v) => Mantissas::I64(v.to_vec()),
        };
        Ok(Tensor::new(self.0.ty.clone(), mantissas)?)
    }

    /// Type of the tensor.
    pub fn ty(&self) -> &TensorType {
        &self.0.ty
    }

    /// The libtorch tensor, for reading.
    pub(crate) fn data(&self) -> &tch::Tensor {
        &self.0.data
    }

    /// Host memory of the tensor.
    ///
    /// # Errors
    /// [`EngineError::Device`] if the tensor lies on a GPU.
    pub(crate) fn slice(&self) -> Result<Slice<'_>, EngineError> {
        let (slice, stride) = self.strided()?;
        if stride == self.0.ty.row() as usize {
            return Ok(slice);
        }
        Err(EngineError::Malformed(format!("{} lies in columns of a cache: only HeadMix reads those", self.0.ty)))
    }

    /// Host memory of the tensor, and from the start of a row to the start of the next.
    ///
    /// # Errors
    /// [`EngineError::Device`] if the tensor lies on a GPU.
    pub(crate) fn strided(&self) -> Result<(Slice<'_>, usize), EngineError> {
        let Inner { ty, data, .. } = &*self.0;
        let (address, len, stride) = host_memory(ty, data)?;
        // SAFETY: `host_memory` vouches for `len` initialised elements of the type's width at `address`, aligned by
        // libtorch's allocator; `self` keeps them alive, and nothing writes them (see `TorchTensor` and `Shared`).
        let slice = unsafe {
            match ty.width() {
                Width::I8 => Slice::I8(std::slice::from_raw_parts(address.cast(), len)),
                Width::I16 => Slice::I16(std::slice::from_raw_parts(address.cast(), len)),
                Width::I32 => Slice::I32(std::slice::from_raw_parts(address.cast(), len)),
                Width::I64 => Slice::I64(std::slice::from_raw_parts(address.cast(), len)),
            }
        };
        Ok((slice, stride))
    }

    /// Allocates a tensor on the host and lets `fill` write every element of it.
    pub(crate) fn build(
        ty: &TensorType,
        fill: impl FnOnce(SliceMut<'_>) -> Result<(), EngineError>,
    ) -> Result<Self, EngineError> {
        let data = tch::Tensor::f_empty(dims(ty).as_slice(), (kind(ty.width()), Device::Cpu)).map_err(device)?;
        let (address, len, _) = host_memory(ty, &data)?;
        // In tests, what `fill` forgets is no mantissa that a reference could have.
        if cfg!(debug_assertions) {
            // SAFETY: `host_memory` vouches for `len` elements of the type's width, which nothing else refers to.
            unsafe { address.write_bytes(0x55, len * ty.width().bytes()) };
        }
        // Otherwise left as libtorch gave it: clearing it takes as long as many an operator, which writes every element
        // anyway and reads none before.
        // SAFETY: as in `slice`; the tensor was just made, so that this is the only reference to its memory,
        // which libtorch's allocator, foreign code, leaves with some bits: any are an integer.
        let memory = unsafe {
            match ty.width() {
                Width::I8 => SliceMut::I8(std::slice::from_raw_parts_mut(address.cast(), len)),
                Width::I16 => SliceMut::I16(std::slice::from_raw_parts_mut(address.cast(), len)),
                Width::I32 => SliceMut::I32(std::slice::from_raw_parts_mut(address.cast(), len)),
                Width::I64 => SliceMut::I64(std::slice::from_raw_parts_mut(address.cast(), len)),
            }
        };
        fill(memory)?;
        Self::wrap(ty.clone(), data)
    }
}

/// Address and extent of a tensor's elements and the distance of its rows, after checking all that a slice relies on: host
/// memory, element type, rows one after another, count, alignment.
fn host_memory(ty: &TensorType, data: &tch::Tensor) -> Result<(*mut u8, usize, usize), EngineError> {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let (len, row) = (size(ty.elements()), size(ty.row()));
    let address = data.data_ptr().cast::<u8>();
    let stride = match data.stride().as_slice() {
        _ if data.is_contiguous() => Some(row),
        [stride, 1] => usize::try_from(*stride).ok().filter(|stride| *stride >= row),
        _ => None,
    };
    let sound = data.device() == Device::Cpu
        && data.f_kind().map_err(device)? == kind(ty.width())
        && data.size() == dims(ty)
        && data.numel() == len
        && !address.is_null()
        && address.addr().is_multiple_of(ty.width().bytes());
    match stride {
        // The last row ends before the next would begin.
        Some(stride) if sound => Ok((address, (size(ty.rows()) - 1) * stride + row, stride)),
        _ => Err(EngineError::Device(format!("{ty} is not in host memory"))),
    }
}
