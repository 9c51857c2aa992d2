//! Keys and values of texts that go on, in memory that grows by doubling.
//!
//! A tensor that was read is a part of that memory. As long as it lives nothing is written there: who writes then
//! writes into a copy.

use std::ops::Range;
use std::sync::Arc;

use tch::{Device, Tensor};
use tensorlink_model::decode::{CacheEngine, Layout};
use tensorlink_program::EngineError;
use tensorlink_types::{TensorType, TypeError};

use crate::TorchEngine;
use crate::host::linear::transposed;
use crate::tensor::shared::Shared;
use crate::tensor::{TorchTensor, device as failed};

/// Rows of the first memory: rows of keys and columns of values then begin at multiples of 64 bytes.
const FIRST: u32 = 64;

/// Memory for rows, see [`CacheEngine::Room`].
pub struct TorchRoom {
    layout: Layout,
    /// `[capacity, width]`, or `[width, capacity]` for columns.
    memory: Arc<Shared>,
    device: Device,
    capacity: u32,
    written: u32,
}

impl TorchRoom {
    /// Makes room for `rows`, keeping the first `kept`, in memory that nobody reads.
    fn make_room(&mut self, rows: u32, kept: u32) -> Result<&mut Shared, EngineError> {
        let capacity = if rows > self.capacity {
            rows.max(self.capacity.saturating_mul(2)).max(FIRST).min(self.layout.most)
        } else {
            self.capacity
        };
        if capacity != self.capacity || Arc::get_mut(&mut self.memory).is_none() {
            let mut new = memory(&self.layout, capacity, self.device)?;
            if kept > 0 {
                new.put((0, 0), &self.read(0..kept)?)?;
            }
            (self.memory, self.capacity) = (Arc::new(new), capacity);
        }
        let shared = Arc::get_mut(&mut self.memory);
        shared.ok_or_else(|| EngineError::Device("a cache that is read while it grows".to_owned()))
    }

    fn read(&self, rows: Range<u32>) -> Result<TorchTensor, EngineError> {
        let row = &self.layout.row;
        let width = u32::try_from(row.row()).map_err(malformed)?;
        let count = rows.end.saturating_sub(rows.start);
        let first = rows.start as usize;
        let (dims, place) =
            if self.layout.columns { ([width, count], (0, first)) } else { ([count, width], (first, 0)) };
        let ty = TensorType::new(row.bits(), row.exponent(), &dims).map_err(malformed)?;
        TorchTensor::within(ty, &self.memory, place)
    }
}

/// Memory for so many rows.
fn memory(layout: &Layout, capacity: u32, device: Device) -> Result<Shared, EngineError> {
    let (rows, width) = (capacity as usize, usize::try_from(layout.row.row()).map_err(malformed)?);
    let size = if layout.columns { (width, rows) } else { (rows, width) };
    Shared::new(layout.row.width(), size, device)
}

fn malformed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Malformed(error.to_string())
}

/// The same type with other rows, row being an index of the first dimension.
fn with_rows(ty: &TensorType, rows: u32) -> Result<TensorType, TypeError> {
    let mut dims = ty.dims().to_vec();
    if let Some(first) = dims.first_mut() {
        *first = rows;
    }
    TensorType::new(ty.bits(), ty.exponent(), &dims)
}

/// Rows that a tensor has.
fn rows_of(ty: &TensorType) -> u32 {
    ty.dims().first().copied().unwrap_or_default()
}

impl TorchEngine {
    /// Rows as columns.
    fn turned(&self, rows: &TorchTensor) -> Result<TorchTensor, EngineError> {
        let [m, n] = *rows.ty().dims() else { return Err(malformed("rows of more dimensions than two")) };
        let ty = TensorType::new(rows.ty().bits(), rows.ty().exponent(), &[n, m]).map_err(malformed)?;
        if self.device() != crate::Device::Cpu {
            let turned = rows.data()?.f_tr().and_then(|turned| turned.f_contiguous());
            return TorchTensor::wrap(ty, turned.map_err(failed)?);
        }
        let slice = rows.slice()?;
        TorchTensor::build(&ty, |mut out| transposed(self.simd(), slice, (m as usize, n as usize), &mut out))
    }
}

impl CacheEngine for TorchEngine {
    type Room = TorchRoom;

    fn room(&self, layout: &Layout) -> Result<TorchRoom, EngineError> {
        // libtorch's operators may give their operand itself where they have nothing to change, which are those on
        // 64 bits.
        if layout.row.dims().len() != 2 || rows_of(&layout.row) != 1 || layout.row.bits() > 32 {
            return Err(EngineError::Malformed(format!("{} is no row of at most 32 bits to keep", layout.row)));
        }
        let device = self.device().into();
        let memory = Arc::new(memory(layout, 0, device)?);
        Ok(TorchRoom { layout: layout.clone(), memory, device, capacity: 0, written: 0 })
    }

    fn write(&self, room: &mut TorchRoom, at: u32, rows: &TorchTensor) -> Result<(), EngineError> {
        let (count, ty) = (rows_of(rows.ty()), rows.ty());
        let end = at.saturating_add(count);
        if with_rows(&room.layout.row, count).as_ref() != Ok(ty) || end > room.layout.most || at > room.written {
            return Err(EngineError::Malformed(format!("{ty} does not follow row {at} of {:?}", room.layout)));
        }
        let columns = room.layout.columns;
        let memory = room.make_room(end, at)?;
        if columns {
            memory.put((0, at as usize), &self.turned(rows)?)?;
        } else {
            memory.put((at as usize, 0), rows)?;
        }
        room.written = end;
        Ok(())
    }

    fn read(&self, room: &TorchRoom, rows: Range<u32>) -> Result<TorchTensor, EngineError> {
        if rows.is_empty() || rows.end > room.written {
            return Err(EngineError::Malformed(format!("rows {rows:?} of {}", room.written)));
        }
        room.read(rows)
    }

    fn part(&self, tensor: &TorchTensor, rows: Range<u32>) -> Result<TorchTensor, EngineError> {
        let (start, count) = (rows.start, rows.end.saturating_sub(rows.start));
        if start == 0 && count == rows_of(tensor.ty()) {
            return Ok(tensor.clone());
        }
        if count == 0 || rows.end > rows_of(tensor.ty()) {
            return Err(EngineError::Malformed(format!("rows {rows:?} of {}", tensor.ty())));
        }
        let ty = with_rows(tensor.ty(), count).map_err(malformed)?;
        tensor.part(ty, start)
    }

    fn pick(&self, tensor: &TorchTensor, rows: &[u32]) -> Result<TorchTensor, EngineError> {
        if rows.iter().any(|row| *row >= rows_of(tensor.ty())) {
            return Err(EngineError::Malformed(format!("rows that {} has not", tensor.ty())));
        }
        let count = u32::try_from(rows.len()).map_err(malformed)?;
        let ty = with_rows(tensor.ty(), count).map_err(malformed)?;
        let rows: Vec<i64> = rows.iter().map(|row| i64::from(*row)).collect();
        let index = Tensor::f_from_slice(&rows).and_then(|index| index.f_to_device(self.device().into()));
        let all = tensor.data()?;
        TorchTensor::wrap(ty, index.and_then(|index| all.f_index_select(0, &index)).map_err(failed)?)
    }

    fn stack(&self, tensors: &[TorchTensor]) -> Result<TorchTensor, EngineError> {
        let first = tensors.first().ok_or_else(|| malformed("no rows to stack"))?.ty();
        let mut count = 0u32;
        for tensor in tensors {
            let rows = rows_of(tensor.ty());
            if with_rows(first, rows).as_ref() != Ok(tensor.ty()) {
                return Err(EngineError::Malformed(format!("{} among rows of {first}", tensor.ty())));
            }
            count = count.saturating_add(rows);
        }
        let ty = with_rows(first, count).map_err(malformed)?;
        let data: Vec<&Tensor> = tensors.iter().map(TorchTensor::data).collect::<Result<_, _>>()?;
        TorchTensor::wrap(ty, Tensor::f_cat(&data, 0).map_err(failed)?)
    }
}
