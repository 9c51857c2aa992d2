//! A decoder that keeps nothing: every token costs the whole text again. For tests, and as the reference of decoders that do.

use tensorlink_graph::Engine;
use tensorlink_graph::transformer::{Output, StageRunner, tokens};
use tensorlink_num::philox::philox4x32;

use super::decoder::{Decoder, Turn};
use super::sampling::Controls;
use crate::gateway::exact::cover;
use crate::gateway::local::EmbedError;

/// A decoder whose stages, in order, cover all of its layers.
pub struct Whole<E: Engine> {
    stages: Vec<StageRunner<E>>,
}

impl<E: Engine> Whole<E> {
    /// Takes the stages of a model, first to last.
    ///
    /// # Errors
    /// If they are not all of a model's, or the model makes vectors of texts and continues none.
    pub fn new(stages: Vec<StageRunner<E>>) -> Result<Self, EmbedError> {
        match cover(&stages)?.output {
            Output::Logits { .. } => Ok(Self { stages }),
            Output::Embedding(_) => Err("this model makes vectors of texts and continues none".into()),
        }
    }

    fn next(&self, ids: &[u32], controls: &Controls) -> Result<u32, EmbedError> {
        let mut x = tokens(ids)?;
        for stage in &self.stages {
            x = stage.run(&x)?;
        }
        let logits = x.to_f64();
        let last = logits.rchunks(logits.len() / ids.len()).next().unwrap_or_default();
        Ok(choose(last, controls))
    }
}

impl<E: Engine> Decoder for Whole<E> {
    type Text = Vec<u32>;

    fn begin(&mut self) -> Result<Vec<u32>, EmbedError> {
        Ok(Vec::new())
    }

    fn advance(&mut self, batch: &mut [Turn<'_, Vec<u32>>]) -> Vec<Result<u32, EmbedError>> {
        let next = |Turn { text, step }: &mut Turn<'_, Vec<u32>>| {
            text.extend(&step.tokens);
            self.next(text, &step.controls)
        };
        batch.iter_mut().map(next).collect()
    }
}

/// A token by its logits: rules N-35 to N-37 in floating point.
fn choose(logits: &[f64], controls: &Controls) -> u32 {
    let [_, temperature, position, among, share, key0, key1] = *controls;
    let temperature = temperature as f64 / 4096.0;
    let mut order: Vec<(u32, f64)> = (0..).zip(logits.iter().copied()).collect();
    // Stable: of equal logits the first token comes first.
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let top = order.first().map_or(0.0, |first| first.1);
    let weight = |logit: f64| ((logit - top) / temperature.max(1e-6)).exp();
    let due = share as f64 / 65536.0 * order.iter().map(|(_, logit)| weight(*logit)).sum::<f64>();
    let word = |value: i64| u32::try_from(value).unwrap_or_default();
    let (mut seen, mut best) = (0.0, (0, f64::NEG_INFINITY));
    for (place, (token, logit)) in (0i64..).zip(order) {
        if place > 0 && (place >= among || seen >= due) {
            break;
        }
        seen += weight(logit);
        let [draw, ..] = philox4x32([word(key0), word(key1)], [token, word(position), 0, 0]);
        let gumbel = -(-((f64::from(draw) + 0.5) / 4_294_967_296.0).ln()).ln();
        let score = logit + temperature * gumbel;
        if score > best.1 {
            best = (token, score);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::generation::Sampling;

    const LOGITS: [f64; 4] = [1.0, 3.0, 3.0, 2.0];

    fn drawn(sampling: Sampling) -> [usize; 4] {
        let mut counts = [0; 4];
        for seed in 0..2000 {
            let token = choose(&LOGITS, &Sampling { seed, ..sampling }.controls(5));
            counts[usize::try_from(token).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn no_temperature_takes_the_first_largest() {
        assert_eq!(drawn(Sampling { temperature: 0.0, ..Sampling::new(0) }), [0, 2000, 0, 0]);
    }

    #[test]
    fn draws_follow_the_distribution_and_its_cuts() {
        let [a, b, c, d] = drawn(Sampling::new(0));
        // e^1, e^3, e^3, e^2 of their sum 50.28: 5.4 %, 39.9 %, 39.9 %, 14.7 %.
        assert!((70..150).contains(&a) && (720..880).contains(&b) && (720..880).contains(&c), "{a} {b} {c} {d}");
        let [a, b, c, d] = drawn(Sampling { top_k: Some(2), ..Sampling::new(0) });
        assert!(a == 0 && d == 0 && b > 800 && c > 800);
        let [a, .., d] = drawn(Sampling { top_p: 0.9, ..Sampling::new(0) });
        assert!(a == 0 && d > 200);
        assert_eq!(drawn(Sampling { top_p: 0.0, ..Sampling::new(0) }), [0, 2000, 0, 0]);
    }
}
