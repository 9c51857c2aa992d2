//! The text that was held out, or as much of it as is soon computed.

use anyhow::Result;
use tensorlink_tensor::float::FloatTraining;
use tensorlink_training::TrainingSet;

/// Most sequences that are tested on, evenly from all that were held out.
const MOST: usize = 48;
/// Sequences that are computed at once.
const AT_ONCE: usize = 8;

/// Sequences of tokens, and what follows each.
pub(crate) struct HeldOut {
    sequences: Vec<[Vec<i64>; 2]>,
    tokens: usize,
}

impl HeldOut {
    pub(crate) fn of(rows: &TrainingSet) -> Self {
        let tokens = rows.features.ty().row() as usize;
        let [features, labels] = [&rows.features, &rows.labels].map(|ids| ids.mantissas().to_vec());
        let all = features.chunks(tokens).zip(labels.chunks(tokens));
        let apart = all.len().div_ceil(MOST).max(1);
        let sequences = all.step_by(apart).map(|(ids, following)| [ids.to_vec(), following.to_vec()]);
        Self { sequences: sequences.collect(), tokens }
    }

    /// Mean loss in nats.
    pub(crate) fn loss(&self, model: &FloatTraining) -> Result<f64> {
        let mut sum = 0.0;
        for some in self.sequences.chunks(AT_ONCE) {
            let joined = |part: usize| some.iter().flat_map(|pair| pair[part].iter().copied()).collect::<Vec<_>>();
            sum += model.loss(&joined(0), &joined(1), self.tokens)? * some.len() as f64;
        }
        Ok(sum / self.sequences.len() as f64)
    }
}
