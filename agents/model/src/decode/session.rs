//! A text's state in one stage.

use std::sync::Arc;

use tensorlink_program::executor::ExecuteError;
use tensorlink_types::TensorType;

use super::DecodeError;
use super::attention::Span;
use super::engine::{CacheEngine, Layout};
use super::piece::Piece;
use crate::emit::Core;
use crate::plan::Plan;

/// What the sessions of a runner have in common; its identity says whose they are.
#[derive(Debug)]
pub(super) struct Kind {
    /// Keys and values of each layer.
    pub(super) layers: Vec<[Layout; 2]>,
    /// Most tokens of a text.
    pub(super) context: u32,
}

impl Kind {
    /// Of a plan's sessions; `body` is its body for any number of rows.
    pub(super) fn of(plan: &Plan, body: &Piece) -> Self {
        let context = plan.architecture().context;
        let layout = |ty: &TensorType, columns| Layout { row: ty.clone(), columns, most: context };
        let layer = |core: &Core| [layout(&core.key.ty, false), layout(&core.value.ty, true)];
        Self { layers: body.cut.cores.iter().map(layer).collect(), context }
    }

    pub(super) fn bytes_per_token(&self) -> u64 {
        self.layers.iter().flatten().map(|layout| layout.row.byte_len()).fold(0, u64::saturating_add)
    }
}

/// A text's keys and values in one stage. Its memory grows with the text and may be twice what its tokens need
/// ([`bytes_per_token`](super::CachedRunner::bytes_per_token)), but never more than a whole context needs.
pub struct Session<E: CacheEngine> {
    pub(super) kind: Arc<Kind>,
    /// Keys and values of each layer; those beyond the position do not count.
    pub(super) layers: Vec<[E::Room; 2]>,
    /// The text's tokens on a stage that chooses, as its controls name them; those beyond the position do not count.
    pub(super) tokens: Vec<i64>,
    pub(super) position: u32,
}

impl<E: CacheEngine> Session<E> {
    pub(super) fn new(engine: &E, kind: &Arc<Kind>) -> Result<Self, DecodeError> {
        let room = |layout: &Layout| engine.room(layout);
        let layer = |[keys, values]: &[Layout; 2]| Ok([room(keys)?, room(values)?]);
        let layers = kind.layers.iter().map(layer).collect::<Result<_, _>>();
        let layers = layers.map_err(|source| ExecuteError::Transfer { what: "keys and values", source })?;
        Ok(Self { kind: Arc::clone(kind), layers, tokens: Vec::new(), position: 0 })
    }

    /// Tokens that the text had before the rows of a call, on a stage that chooses.
    pub(super) fn before(&self, span: &Span) -> &[i64] {
        self.tokens.get(..span.past as usize).unwrap_or(&self.tokens)
    }

    /// Goes on by the rows of a call, with their tokens where they are known.
    pub(super) fn go_on(&mut self, span: &Span, tokens: impl Iterator<Item = i64>) {
        self.tokens.truncate(span.past as usize);
        self.tokens.extend(tokens);
        self.position = span.positions().end;
    }

    /// Tokens computed.
    pub const fn position(&self) -> u32 {
        self.position
    }

    /// Forgets all tokens but the first `position`.
    ///
    /// # Errors
    /// [`DecodeError::Position`] beyond the tokens computed.
    pub const fn cut_back(&mut self, position: u32) -> Result<(), DecodeError> {
        if position > self.position {
            return Err(DecodeError::Position { position, tokens: self.position });
        }
        self.position = position;
        Ok(())
    }
}
