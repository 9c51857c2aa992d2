//! Attention of a session's rows against its own keys and values.

use std::ops::Range;

use super::core::Cores;
use super::engine::CacheEngine;
use super::piece::Frame;
use super::{DecodeError, moving};

/// A session's rows in a call.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// The first of them among the rows of all.
    pub(super) first: u32,
    /// How many.
    pub(super) rows: u32,
    /// Tokens that the session had before.
    pub(super) past: u32,
}

impl Span {
    pub(super) const fn range(&self) -> Range<u32> {
        self.first..self.first.saturating_add(self.rows)
    }

    pub(super) const fn positions(&self) -> Range<u32> {
        self.past..self.past.saturating_add(self.rows)
    }

    /// Rows whose attention is computed in one: all of a text's beginning, otherwise one by one, because causal
    /// operators see as many keys as there are rows.
    pub(super) const fn together(&self) -> u32 {
        if self.past == 0 { self.rows } else { 1 }
    }
}

/// The attention of a layer.
pub(super) struct Attention<'a, E: CacheEngine> {
    pub(super) engine: &'a E,
    pub(super) constants: &'a [E::Tensor],
    pub(super) cores: &'a Cores,
    /// Its number in the stage.
    pub(super) layer: usize,
    /// Tokens that each sees, itself included, if not all before it.
    pub(super) window: Option<u32>,
}

impl<E: CacheEngine> Attention<'_, E> {
    /// Keeps a session's keys and values, and adds what its rows gather.
    pub(super) fn run(
        &self,
        [keys, values]: &mut [E::Room; 2],
        [query, key, value]: &[E::Tensor; 3],
        span: &Span,
        mixed: &mut Vec<E::Tensor>,
    ) -> Result<(), DecodeError> {
        let engine = self.engine;
        let own = |all| engine.part(all, span.range()).map_err(moving);
        engine.write(keys, span.past, &own(key)?).map_err(moving)?;
        engine.write(values, span.past, &own(value)?).map_err(moving)?;
        let together = span.together();
        for first in span.range().step_by(together.max(1) as usize) {
            let end = span.past.saturating_add(first - span.first).saturating_add(together);
            // A single row sees all keys that it is given: the last ones. Of several each has a window of its own.
            let begin = self.window.filter(|_| together == 1).map_or(0, |window| end.saturating_sub(window));
            let piece = self.cores.with_keys(self.layer, end.saturating_sub(begin))?;
            let mut frame = Frame::new(self.constants, None);
            let query = engine.part(query, first..first.saturating_add(together)).map_err(moving)?;
            let read = |room| engine.read(room, begin..end).map_err(moving);
            let seen = [query, read(keys)?, read(values)?];
            frame.states.extend((0..).zip(seen));
            piece.run(engine, &mut frame, 0..piece.len())?;
            mixed.push(piece.output(&frame)?);
        }
        Ok(())
    }
}
