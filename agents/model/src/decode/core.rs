//! Attention of one session: emitted once for each number of rows, fitted to the number of keys.

use tensorlink_types::{TensorType, TypeError};

use super::piece::Piece;
use crate::emit::Core;
use crate::plan::{Plan, PlanError};

/// The attention of every layer of a stage, of so many rows.
#[derive(Debug)]
pub(super) struct Cores {
    layers: Vec<Piece>,
    /// The number of keys it was emitted for: one that no other dimension has.
    mark: u32,
}

impl Cores {
    pub(super) fn new(plan: &Plan, cores: &[Core], rows: u32) -> Result<Self, PlanError> {
        let a = plan.architecture();
        // More than each of them, and than the two numbers of a token's place.
        let others = [a.query_width(), a.key_width(), a.heads, rows, a.context];
        let mark = others.into_iter().fold(2, u32::saturating_add);
        let layers = cores.iter().map(|core| Piece::core(plan, core, rows, mark)).collect::<Result<_, _>>()?;
        Ok(Self { layers, mark })
    }

    /// That of a layer, by its number in the stage, for so many keys.
    pub(super) fn with_keys(&self, layer: usize, keys: u32) -> Result<Piece, PlanError> {
        let piece = self.layers.get(layer).ok_or(PlanError::Unsupported("a layer of another stage"))?;
        let fitted = |ty: &TensorType| {
            if !ty.dims().contains(&self.mark) {
                return Ok(ty.clone());
            }
            let dims: Vec<u32> = ty.dims().iter().map(|dim| if *dim == self.mark { keys } else { *dim }).collect();
            TensorType::new(ty.bits(), ty.exponent(), &dims)
        };
        let typed = |source: TypeError| PlanError::Type { name: format!("{keys} keys of layer {layer}"), source };
        piece.retyped(fitted).map_err(typed)
    }
}
