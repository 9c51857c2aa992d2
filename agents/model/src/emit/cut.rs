//! What an emitted program leaves to a cache of keys and values.
//!
//! Everything but attention computes row by row, so that rows of several texts can be computed in one operator. A
//! program emitted for a cache therefore stops where attention begins and goes on with what it gives. Two kinds of
//! tensors come from outside then, as `Source::State`, which programs of transformers have none of otherwise: the first
//! [`TABLES`] numbers are tables of positions at the positions of the rows, number `TABLES + i` what the attention of
//! the i-th layer gives.

use tensorlink_types::{Operator, Source, TensorType};

use super::{Emitter, STREAM_BITS, Value};
use crate::plan::error::PlanError;

/// Most tables of positions: that of layers whose tokens see all, and that of the others.
pub(crate) const TABLES: u32 = 2;

/// What a program leaves to a cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cut {
    /// The constants that have a row for each position and are read, in the order of their numbers.
    pub(crate) positions: Vec<u32>,
    /// Attention, layer by layer.
    pub(crate) cores: Vec<Core>,
}

/// Attention of a layer: from queries, keys and values to what each token gathers.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    /// The layer.
    pub(crate) layer: u32,
    /// The operator before which it stands.
    pub(crate) before: usize,
    pub(crate) query: Value,
    pub(crate) key: Value,
    pub(crate) value: Value,
}

impl Emitter<'_> {
    /// Emits for a cache from now on, for constants in this order.
    pub(crate) fn for_cache(mut self, constants: Vec<String>) -> Self {
        self.constants = constants;
        self.cut = Some(Cut::default());
        self
    }

    /// Whether attention is left to a cache.
    pub(super) const fn cuts(&self) -> bool {
        self.cut.is_some()
    }

    /// Operators, their names, and what they leave to the cache.
    pub(crate) fn into_cut(self) -> (Vec<Operator>, Vec<String>, Cut) {
        (self.operators, self.names, self.cut.unwrap_or_default())
    }

    /// A constant with a row for each position: that of the first token first, or, for a cache, those of the rows.
    pub(super) fn positions(&mut self, name: &str) -> Result<Value, PlanError> {
        let table = self.constant(name)?;
        let Some(cut) = &mut self.cut else { return Ok(table) };
        let Source::Constant(place) = table.source else { return Ok(table) };
        let number = cut.positions.iter().position(|known| *known == place).unwrap_or_else(|| {
            cut.positions.push(place);
            cut.positions.len().saturating_sub(1)
        });
        let ty =
            with_rows(&table.ty, self.tokens).map_err(|source| PlanError::Type { name: name.to_owned(), source })?;
        // SAFETY of the cast: below `TABLES`.
        Ok(Value { source: Source::State(number as u32), ty })
    }

    /// Leaves the attention of a layer to the cache.
    pub(super) fn leave(&mut self, layer: u32, query: Value, key: Value, value: Value) -> Result<Value, PlanError> {
        let site = format!("layers.{layer}.attention.mixed");
        let ty = self.activation(&site, STREAM_BITS, &[self.tokens, self.architecture.query_width()])?;
        let before = self.operators.len();
        let cores = &mut self.cut.get_or_insert_default().cores;
        // SAFETY of the cast: a model has fewer than 2^32 layers.
        let number = TABLES.saturating_add(cores.len() as u32);
        cores.push(Core { layer, before, query, key, value });
        Ok(Value { source: Source::State(number), ty })
    }

    /// The attention that was left: operators from `State(0)`, the queries of this emitter's tokens, `State(1)`, the
    /// keys, and `State(2)`, the values, transposed. Of several tokens, which begin a text, each sees as many keys as
    /// there are tokens up to it, as far as the layer's window reaches; a single one sees all keys.
    pub(crate) fn core(&mut self, core: &Core, keys: u32) -> Result<(), PlanError> {
        let name = format!("layers.{}.attention", core.layer);
        let typed = |source| PlanError::Type { name: name.clone(), source };
        let given = |number: u32, ty| Value { source: Source::State(number), ty };
        let query = given(0, with_rows(&core.query.ty, self.tokens).map_err(typed)?);
        let key = given(1, with_rows(&core.key.ty, keys).map_err(typed)?);
        let (bits, exponent) = (core.value.ty.bits(), core.value.ty.exponent());
        let value = given(2, TensorType::new(bits, exponent, &[self.architecture.key_width(), keys]).map_err(typed)?);
        let causal = i64::from(self.tokens > 1);
        let probabilities = self.weighed(core.layer, &query, &key, causal)?;
        self.mix(core.layer, &probabilities, &value)?;
        Ok(())
    }
}

/// The same type with another number of rows, or of elements if it has no rows.
pub(crate) fn with_rows(ty: &TensorType, rows: u32) -> Result<TensorType, tensorlink_types::TypeError> {
    let mut dims = ty.dims().to_vec();
    if let Some(first) = dims.first_mut() {
        *first = rows;
    }
    TensorType::new(ty.bits(), ty.exponent(), &dims)
}
