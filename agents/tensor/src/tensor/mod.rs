//! A tensor that knows its exact type, and libtorch's view of it.
//!
//! | module | what lives there |
//! |---|---|
//! | `mod` | [`TorchTensor`] |
//! | `shared` | memory of caches, of which tensors are parts |

pub(crate) mod shared;

use std::fmt;
use std::sync::{Arc, OnceLock};

use tch::{Device, Kind, TchError};
use tensorlink_num::Tensor;
use tensorlink_num::tensor::Mantissas;
use tensorlink_program::EngineError;
use tensorlink_types::{TensorType, Width};

use crate::buffer::Buffer;
use crate::slice::{Slice, SliceMut, each_width};
use crate::torch::lengths;
use shared::Shared;

/// A tensor in the host's memory or on a GPU, in the storage width of its type. Clones share the memory, which is never
/// written again once the tensor exists. libtorch learns of what lies in the host's memory only when it is asked to
/// compute with it.
#[derive(Clone)]
pub struct TorchTensor(Arc<Inner>);

struct Inner {
    ty: TensorType,
    /// Where the mantissas lie, if that is the host's memory.
    place: Option<Place>,
    /// As libtorch knows it, of the kind and dimensions of `ty`, once it does.
    data: OnceLock<tch::Tensor>,
    /// On a GPU, and there for matrices of bytes alone: as [`lengths::as_second`] makes them, once it has.
    second: OnceLock<tch::Tensor>,
    /// Whose memory it is or is a part of: as long as this is held, nobody writes or frees it.
    _owner: Owner,
}

#[allow(dead_code, reason = "held, not read")]
enum Owner {
    /// libtorch's: that of `data`.
    Torch,
    /// Its own.
    Own(Buffer),
    /// That of a cache.
    Cache(Arc<Shared>),
    /// That of a host tensor.
    Host(Tensor),
    /// That of another.
    Part(TorchTensor),
}

/// Mantissas in the host's memory, aligned for their width.
#[derive(Clone, Copy)]
struct Place {
    address: *const u8,
    /// From the start of a row to the start of the next, in elements: more than a row has only in columns of a cache.
    stride: usize,
}

// SAFETY: the tensor is written only before `TorchTensor` is built and read-only after, and its owner may be dropped on
// any thread; libtorch allows concurrent reads of one tensor, and its reference counts are atomic.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl fmt::Debug for TorchTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {:?}", self.0.ty, self.device())
    }
}

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

/// Elements from one index of each dimension to the next, `row` of them from the start of a row to the start of
/// the next.
fn strides(ty: &TensorType, row: usize) -> Vec<i64> {
    let mut strides = vec![1];
    let mut stride = row as i64;
    for dim in ty.dims().iter().rev().skip(1) {
        strides.push(stride);
        stride *= i64::from(*dim);
    }
    strides.reverse();
    strides
}

impl TorchTensor {
    fn new(ty: TensorType, place: Option<Place>, data: Option<tch::Tensor>, owner: Owner) -> Self {
        let data = data.map_or_else(OnceLock::new, OnceLock::from);
        Self(Arc::new(Inner { ty, place, data, second: OnceLock::new(), _owner: owner }))
    }

    /// Checks that `data` is laid out as `ty` says; the caller vouches for the mantissas' range.
    ///
    /// # Errors
    /// [`EngineError::Device`] if libtorch answered with another shape, type or layout than it was asked for.
    pub(crate) fn wrap(ty: TensorType, data: tch::Tensor) -> Result<Self, EngineError> {
        let contiguous = data.is_contiguous();
        Self::by_libtorch(ty, data, contiguous, Owner::Torch)
    }

    /// A part of a cache: of the lines from one on, the elements from one on.
    ///
    /// # Errors
    /// As [`Self::wrap`].
    ///
    /// # Panics
    /// If the cache has fewer lines, or shorter ones.
    pub(crate) fn within(
        ty: TensorType,
        shared: &Arc<Shared>,
        (line, element): (usize, usize),
    ) -> Result<Self, EngineError> {
        let owner = Owner::Cache(Arc::clone(shared));
        let (rows, row) = (ty.rows() as usize, ty.row() as usize);
        if let Some(address) = shared.address((line, rows), (element, row)) {
            return Ok(Self::new(ty, Some(Place { address, stride: shared.length() }), None, owner));
        }
        let data = shared.part((line, rows), (element, row)).map_err(device)?;
        Self::by_libtorch(ty, data, true, owner)
    }

    fn by_libtorch(ty: TensorType, data: tch::Tensor, laid_out: bool, owner: Owner) -> Result<Self, EngineError> {
        let actual = data.f_kind().map_err(device)?;
        if data.size() != dims(&ty) || actual != kind(ty.width()) || !laid_out {
            let size = data.size();
            return Err(EngineError::Device(format!("libtorch gave {actual:?} {size:?} where {ty} was due")));
        }
        let place = if data.device() == Device::Cpu { Some(host_memory(&ty, &data)?) } else { None };
        Ok(Self::new(ty, place, Some(data), owner))
    }

    /// Rows of this tensor, a row being an index of the first dimension; of its type but for their number.
    ///
    /// # Errors
    /// [`EngineError::Device`] if libtorch fails.
    pub(crate) fn part(&self, ty: TensorType, first: u32) -> Result<Self, EngineError> {
        let count = ty.dims().first().copied().unwrap_or_default();
        let all = self.ty().dims().first().copied().unwrap_or_default();
        assert!(count > 0 && first.saturating_add(count) <= all, "rows of the tensor");
        let owner = Owner::Part(self.clone());
        let Some(Place { address, stride }) = self.0.place else {
            let data = self.data()?.f_narrow(0, first.into(), count.into()).map_err(device)?;
            return Self::by_libtorch(ty, data, true, owner);
        };
        let first = first as usize;
        let (offset, stride) = match ty.dims() {
            [_] => (first, ty.row() as usize),
            // Memory that is held fits the address space, and so does a part of it.
            _ => ((self.ty().rows() / u64::from(all)) as usize * first * stride, stride),
        };
        // SAFETY: an element of the tensor.
        let address = unsafe { address.add(offset * ty.width().bytes()) };
        Ok(Self::new(ty, Some(Place { address, stride }), None, owner))
    }

    /// Brings a host tensor to a device. If that is the host, the mantissas stay where they are.
    ///
    /// # Errors
    /// [`EngineError::Device`] when the device's memory runs out.
    pub(crate) fn import(tensor: &Tensor, target: Device) -> Result<Self, EngineError> {
        let ty = tensor.ty().clone();
        if target == Device::Cpu {
            let address = each_width!(Mantissas, tensor.mantissas(), v => v.as_ptr().cast());
            let place = Place { address, stride: ty.row() as usize };
            return Ok(Self::new(ty, Some(place), None, Owner::Host(tensor.clone())));
        }
        let flat = each_width!(Mantissas, tensor.mantissas(), v => tch::Tensor::f_from_slice(v)).map_err(device)?;
        let data = flat.f_view(dims(&ty).as_slice()).and_then(|t| t.f_to_device(target)).map_err(device)?;
        Self::wrap(ty, data)
    }

    /// Copies the tensor to host memory; checks every mantissa (rule N-1).
    pub(crate) fn export(&self) -> Result<Tensor, EngineError> {
        let copy;
        let slice = match self.slice() {
            Ok(slice) => slice,
            // On a GPU, or columns of a cache.
            Err(_) => {
                let data = self.data()?.f_to_device(Device::Cpu).and_then(|data| data.f_contiguous());
                copy = Self::wrap(self.0.ty.clone(), data.map_err(device)?)?;
                copy.slice()?
            }
        };
        let mantissas = match slice {
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

    /// Where the tensor lies.
    pub(crate) fn device(&self) -> Device {
        match (self.0.place, self.0.data.get()) {
            (None, Some(data)) => data.device(),
            _ => Device::Cpu,
        }
    }

    /// The libtorch tensor, for reading.
    ///
    /// # Errors
    /// [`EngineError::Device`] if libtorch fails.
    pub(crate) fn data(&self) -> Result<&tch::Tensor, EngineError> {
        if let Some(data) = self.0.data.get() {
            return Ok(data);
        }
        let Inner { ty, place, .. } = &*self.0;
        let Place { address, stride } = place.ok_or_else(|| EngineError::Device(format!("{ty} lies nowhere")))?;
        let dims = dims(ty);
        let data = if let (Slice::I64(v), _) = self.strided()? {
            // An operator of libtorch may give on as its result what has 64 bits, and would not hold the owner: so that
            // is copied.
            tch::Tensor::f_from_slice(v).and_then(|data| data.f_view(dims.as_slice()))
        } else {
            let (strides, kind) = (strides(ty, stride), kind(ty.width()));
            // SAFETY: the place has what `strided` reads there, and the owner keeps it as long as `self` is; nothing
            // writes it.
            unsafe { tch::Tensor::f_from_blob(address, &dims, &strides, kind, Device::Cpu) }
        };
        let data = data.map_err(device)?;
        Ok(self.0.data.get_or_init(|| data))
    }

    /// The libtorch tensor in the lengths that a GPU wants of the second matrix of a product. It is made once: weights
    /// serve many products.
    ///
    /// # Errors
    /// [`EngineError::Device`] if libtorch fails.
    pub(crate) fn as_second(&self) -> Result<&tch::Tensor, EngineError> {
        if let Some(second) = self.0.second.get() {
            return Ok(second);
        }
        let data = self.data()?;
        if self.device() == Device::Cpu {
            return Ok(data);
        }
        let second = lengths::as_second(data).map_err(device)?;
        Ok(self.0.second.get_or_init(|| second))
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
        let Inner { ty, place, .. } = &*self.0;
        let absent = || EngineError::Device(format!("{ty} is not in host memory"));
        let Place { address, stride } = place.ok_or_else(absent)?;
        // The last row ends before the next would begin. What lies in memory has as many elements as a usize counts.
        let len = (ty.rows() as usize - 1) * stride + ty.row() as usize;
        // SAFETY: a place has `len` initialised elements of the type's width, aligned; `self` keeps them alive, and
        // nothing writes them.
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

    /// Makes a tensor on the host and lets `fill` write every element of it.
    ///
    /// # Errors
    /// What `fill` gives; [`EngineError::Device`] for more elements than memory has.
    pub(crate) fn build(
        ty: &TensorType,
        fill: impl FnOnce(SliceMut<'_>) -> Result<(), EngineError>,
    ) -> Result<Self, EngineError> {
        let mut buffer = room(ty)?;
        fill(memory(&mut buffer, ty))?;
        Ok(Self::built(ty, buffer))
    }

    /// Makes several at once.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub(crate) fn build_all(
        types: &[&TensorType],
        fill: impl FnOnce(&mut [SliceMut<'_>]) -> Result<(), EngineError>,
    ) -> Result<Vec<Self>, EngineError> {
        let mut buffers = types.iter().map(|ty| room(ty)).collect::<Result<Vec<_>, _>>()?;
        let mut slices: Vec<_> = buffers.iter_mut().zip(types).map(|(buffer, ty)| memory(buffer, ty)).collect();
        fill(&mut slices)?;
        Ok(buffers.into_iter().zip(types).map(|(buffer, ty)| Self::built(ty, buffer)).collect())
    }

    fn built(ty: &TensorType, buffer: Buffer) -> Self {
        let place = Place { address: buffer.as_ptr(), stride: ty.row() as usize };
        Self::new(ty.clone(), Some(place), None, Owner::Own(buffer))
    }
}

/// Memory for a tensor.
fn room(ty: &TensorType) -> Result<Buffer, EngineError> {
    let large = || EngineError::Device(format!("{ty} is larger than memory"));
    let bytes = usize::try_from(ty.byte_len()).map_err(|_| large())?;
    let mut buffer = Buffer::take(bytes).ok_or_else(large)?;
    // In tests, what nobody fills is no mantissa that a reference could have.
    if cfg!(debug_assertions) {
        buffer.slice_mut::<i8>(bytes).fill(0x55);
    }
    Ok(buffer)
}

/// Its elements.
fn memory<'a>(buffer: &'a mut Buffer, ty: &TensorType) -> SliceMut<'a> {
    let len = ty.elements() as usize;
    match ty.width() {
        Width::I8 => SliceMut::I8(buffer.slice_mut(len)),
        Width::I16 => SliceMut::I16(buffer.slice_mut(len)),
        Width::I32 => SliceMut::I32(buffer.slice_mut(len)),
        Width::I64 => SliceMut::I64(buffer.slice_mut(len)),
    }
}

/// Where libtorch keeps the elements of a contiguous tensor of a type's kind, after checking what else a slice
/// relies on.
fn host_memory(ty: &TensorType, data: &tch::Tensor) -> Result<Place, EngineError> {
    let address = data.data_ptr().cast::<u8>().cast_const();
    if !data.is_contiguous() || address.is_null() || !address.addr().is_multiple_of(ty.width().bytes()) {
        return Err(EngineError::Device(format!("libtorch laid {ty} out in another way than was asked for")));
    }
    Ok(Place { address, stride: ty.row() as usize })
}
