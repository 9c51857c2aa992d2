//! Caches of the reference engine: mantissas in a list, made into a tensor whenever they are read.

use std::ops::Range;
use std::sync::Arc;

use tensorlink_num::Tensor;
use tensorlink_program::engine::{Engine, EngineError};
use tensorlink_program::interpreter::Reference;
use tensorlink_types::TensorType;

use super::engine::{CacheEngine, Layout};
use crate::emit::with_rows;

/// Rows, one after another.
#[derive(Clone, Debug)]
pub struct Rows {
    layout: Layout,
    values: Vec<i64>,
}

fn malformed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Malformed(error.to_string())
}

/// Number of rows of a tensor, and elements of one.
fn shape(ty: &TensorType) -> (u32, usize) {
    let rows = ty.dims().first().copied().unwrap_or(1);
    // A tensor in memory has no more elements than a usize counts.
    (rows, (ty.elements() / u64::from(rows)) as usize)
}

impl CacheEngine for Reference {
    type Room = Rows;

    fn room(&self, layout: &Layout) -> Result<Rows, EngineError> {
        Ok(Rows { layout: layout.clone(), values: Vec::new() })
    }

    fn write(&self, room: &mut Rows, at: u32, rows: &Self::Tensor) -> Result<(), EngineError> {
        let (count, width) = shape(rows.ty());
        let due = with_rows(&room.layout.row, count).map_err(malformed)?;
        let kept = (at as usize).saturating_mul(width);
        if *rows.ty() != due || at.saturating_add(count) > room.layout.most || kept > room.values.len() {
            return Err(EngineError::Malformed(format!("{} do not follow row {at} of {:?}", rows.ty(), room.layout)));
        }
        room.values.truncate(kept);
        room.values.extend(rows.mantissas().to_vec());
        Ok(())
    }

    fn read(&self, room: &Rows, rows: Range<u32>) -> Result<Self::Tensor, EngineError> {
        let count = rows.end.saturating_sub(rows.start);
        let ty = with_rows(&room.layout.row, count).map_err(malformed)?;
        let (_, width) = shape(&ty);
        let place = |row: u32| (row as usize).saturating_mul(width);
        let values = room.values.get(place(rows.start)..place(rows.end));
        let values = values.ok_or_else(|| malformed("rows not written yet"))?;
        if !room.layout.columns {
            return Ok(Arc::new(Tensor::from_wide(ty, values)?));
        }
        let columns = u32::try_from(width).map_err(malformed)?;
        let ty = TensorType::new(ty.bits(), ty.exponent(), &[columns, count]).map_err(malformed)?;
        let column = |column: usize| values.iter().skip(column).step_by(width).copied();
        let turned: Vec<i64> = (0..width).flat_map(column).collect();
        Ok(Arc::new(Tensor::from_wide(ty, &turned)?))
    }

    fn part(&self, tensor: &Self::Tensor, rows: Range<u32>) -> Result<Self::Tensor, EngineError> {
        let rows: Vec<u32> = rows.collect();
        self.pick(tensor, &rows)
    }

    fn pick(&self, tensor: &Self::Tensor, rows: &[u32]) -> Result<Self::Tensor, EngineError> {
        let (_, width) = shape(tensor.ty());
        let count = u32::try_from(rows.len()).map_err(malformed)?;
        let ty = with_rows(tensor.ty(), count).map_err(malformed)?;
        let all = tensor.mantissas().to_vec();
        let row = |row: &u32| {
            let start = (*row as usize).saturating_mul(width);
            all.get(start..start.saturating_add(width))
        };
        let rows: Option<Vec<&[i64]>> = rows.iter().map(row).collect();
        let rows = rows.ok_or_else(|| malformed(format!("rows that {} has not", tensor.ty())))?;
        Ok(Arc::new(Tensor::from_wide(ty, &rows.concat())?))
    }

    fn stack(&self, tensors: &[Self::Tensor]) -> Result<Self::Tensor, EngineError> {
        let first = tensors.first().ok_or_else(|| malformed("no rows to stack"))?.ty();
        let (mut count, mut values) = (0u32, Vec::new());
        for tensor in tensors {
            let (rows, _) = shape(tensor.ty());
            if with_rows(first, rows).as_ref() != Ok(tensor.ty()) {
                return Err(EngineError::Malformed(format!("{} among rows of {first}", tensor.ty())));
            }
            count = count.saturating_add(rows);
            values.extend(tensor.mantissas().to_vec());
        }
        self.import(&Tensor::from_wide(with_rows(first, count).map_err(malformed)?, &values)?)
    }
}
