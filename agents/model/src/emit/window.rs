//! Layers whose tokens see only those shortly before them.
//!
//! No operator hides what lies beyond a window (rule N-8 hides what comes later), so its scores are lowered until they
//! have no probability at all. A token `m` of window W does not see `k` where `m − k − (W − 1)` is positive, a product
//! of two numbers for each token. Scores are lowered by so much times that number, where it is positive, that 32 bits
//! hold no less: the maximum and the probabilities of what is seen are those of the seen scores alone, bit for bit. So
//! a cache that reads the last W keys only gives the same bits.

use tensorlink_types::Opcode;

use super::{Emitter, Value, WORD_BITS};
use crate::plan::error::PlanError;

/// Finest exponent of scores in layers with a window. The least number of 32 bits then lies `2^16` below any score of
/// 16 bits, and scores are divided by at most 1024 ([`MAX_SCORE_SCALE`]): powers of e^−64 have no digit (rule N-20).
///
/// [`MAX_SCORE_SCALE`]: crate::config::MAX_SCORE_SCALE
pub(super) const WINDOW_EXPONENT: i16 = 15;
/// Bits of lowered scores.
const LOWERED_BITS: u8 = 32;
/// What a token beyond the window is lowered by, for each place: more than 32 bits hold.
const LOWERED: i64 = 1 << 33;
/// Numbers of a token whose products with those of another are their distance.
const NUMBERS: u32 = 2;

impl Emitter<'_> {
    /// Scores `heads × tokens × keys` of a text from its beginning, those beyond the layer's window lowered.
    pub(super) fn within_window(&mut self, layer: u32, scores: Value) -> Result<Value, PlanError> {
        let a = self.architecture;
        let Some(local) = a.local(layer).filter(|local| local.window < a.context) else { return Ok(scores) };
        // Every program of a stage has the same constants, short texts' as well.
        for part in ["queries", "keys", "scale", "places"] {
            self.constant(&format!("embedding.window.{part}"))?;
        }
        let [_, tokens, keys] = *scores.ty.dims() else { return Ok(scores) };
        if tokens <= local.window {
            return Ok(scores);
        }
        let beyond = match self.beyond.take() {
            Some(beyond) => beyond,
            None => self.beyond_window([tokens, keys])?,
        };
        self.beyond = Some(beyond.clone());
        let name = format!("layers.{layer}.attention.scores.seen");
        let to = self.ty(&name, LOWERED_BITS, scores.ty.exponent(), scores.ty.dims())?;
        let attributes = vec![1, LOWERED.wrapping_neg(), 0];
        Ok(self.push(&name, Opcode::Combine, &[&scores, &beyond], attributes, to))
    }

    /// How many places each key lies beyond the window of each token; 0 within.
    fn beyond_window(&mut self, [tokens, keys]: [u32; 2]) -> Result<Value, PlanError> {
        let (scale, places) = (self.constant("embedding.window.scale")?, self.constant("embedding.window.places")?);
        let [queries, keys] = [("queries", tokens), ("keys", keys)].map(|(part, rows)| {
            let name = format!("embedding.window.{part}");
            let table = self.constant(&name)?;
            let to = self.ty(&name, WORD_BITS, 0, &[rows, NUMBERS])?;
            Ok::<_, PlanError>(self.gather(&name, &table, &scale, &places, to))
        });
        let (queries, keys) = (queries?, keys?);
        let rows = |x: &Value| x.ty.dims().first().copied().unwrap_or_default();
        let to = self.ty("embedding.window", WORD_BITS, 0, &[rows(&queries), rows(&keys)])?;
        let distance = self.push("embedding.window.distance", Opcode::MatMul, &[&queries, &keys], vec![0], to.clone());
        Ok(self.push("embedding.window.beyond", Opcode::Relu, &[&distance], vec![], to))
    }
}
