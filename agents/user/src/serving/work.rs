//! What a stage multiplies for some tokens of a text, and of which shape its model is: workers multiply the same shape
//! with about the same part of what they can.

use std::ops::Range;

use tensorlink_model::Plan;
use tensorlink_node::price::multiply_adds;
use tensorlink_types::{B256, Program, keccak256};

/// Multiply-adds of a stage: of a token, of each pair of tokens, and of a choice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct StageWork {
    token: f64,
    pair: f64,
    choice: f64,
}

impl StageWork {
    /// By its program of `one` token, and that of two: attention is of pairs. Where layers see a window, it is less.
    pub(super) fn of(plan: &Plan, one: &Program) -> Self {
        let one = multiply_adds(one) as f64;
        // A model of a single token has no pairs.
        let two = plan.program(2).map_or(2.0 * one, |program| multiply_adds(&program) as f64);
        let pair = (two - 2.0 * one).max(0.0) / 2.0;
        let architecture = plan.architecture();
        let choice =
            if plan.chooses() { f64::from(architecture.width) * f64::from(architecture.vocabulary) } else { 0.0 };
        Self { token: (one - pair - choice).max(0.0), pair, choice }
    }

    /// For the tokens of a text that the stage does not hold yet. Only after the last of them one is chosen.
    pub(super) fn multiply_adds(&self, tokens: Range<u32>) -> f64 {
        if tokens.is_empty() {
            return 0.0;
        }
        let [start, end] = [tokens.start, tokens.end].map(f64::from);
        self.token.mul_add(end - start, self.pair.mul_add(end.mul_add(end, -start * start), self.choice))
    }
}

/// What tells models of one shape in one setting from others: their weights may differ.
pub(super) fn shape(plan: &Plan) -> B256 {
    // A record of numbers and names has a text.
    keccak256(serde_json::to_vec(&(plan.architecture(), plan.setting())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use tensorlink_model::fixture::integers::quantized;
    use tensorlink_model::random::{Dimensions, llama, weights};
    use tensorlink_model::{Head, Setting};
    use tensorlink_types::TensorRoot;

    use super::*;

    #[test]
    fn a_stage_multiplies_what_its_program_does_and_chooses_one_token_of_a_prompt() {
        let size = Dimensions { vocabulary: 64, width: 16, layers: 2, heads: 2, kv_heads: 1, hidden: 24, context: 32 };
        let architecture = llama(size);
        let model = quantized(&architecture, Setting::Standard, &weights(&architecture, 1).unwrap()).unwrap();
        let plan = |layers| model.plan(layers, Head::Choice, |_| TensorRoot::default()).unwrap();
        let (first, last) = (plan(0..1), plan(1..2));
        let whole = |plan: &Plan, tokens| multiply_adds(&plan.program(tokens).unwrap()) as f64;
        let [of_first, of_last] = [&first, &last].map(|plan| StageWork::of(plan, &plan.program(1).unwrap()));
        let choice = 64.0 * 16.0;
        for tokens in [1, 2, 3, 17, 32] {
            assert_eq!(of_first.multiply_adds(0..tokens), whole(&first, tokens));
            let chosen = f64::from(tokens - 1) * choice;
            assert_eq!(of_last.multiply_adds(0..tokens), whole(&last, tokens) - chosen);
        }
        assert_eq!(of_last.multiply_adds(17..18), whole(&last, 18) - whole(&last, 17));
        assert_eq!(of_last.multiply_adds(17..17), 0.0);
        assert_eq!(shape(&first), shape(&last));
    }
}
