//! Programs that choose tokens, against what choosing means.

use std::collections::BTreeSet;

use tensorlink_model::choice::{SamplingParams, controls};
use tensorlink_model::decode::{CachedRunner, DecodeError, Turn};
use tensorlink_model::random::{self, Dimensions};
use tensorlink_model::{Head, PlanError, Quantized, RunError, StageRunner, tokens};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_program::executor::ExecuteError;
use tensorlink_types::{Source, TensorRoot};

use crate::transformer::{SIZE, TEXT, quantized};

fn runner(model: &Quantized, head: Head) -> StageRunner<Reference> {
    let layers = 0..model.architecture().layers;
    let (plan, constants) = model.stage_with(layers, head, |_| TensorRoot::default()).unwrap();
    StageRunner::new(Reference, plan, &constants).unwrap()
}

/// Logits of every token of a text.
fn logits(model: &Quantized, text: &[u32]) -> Vec<Vec<f64>> {
    let logits = runner(model, Head::Output).run(&tokens(text).unwrap()).unwrap();
    logits.to_f64().chunks(model.architecture().vocabulary as usize).map(<[f64]>::to_vec).collect()
}

/// Tokens chosen after every token of a text.
fn chosen(runner: &StageRunner<Reference>, text: &[u32], choice: SamplingParams) -> Vec<usize> {
    let rows: Vec<_> = text.iter().map(|id| (*id, Some(choice))).collect();
    let controls = controls(0, &rows).unwrap();
    ids(&runner.choose(&tokens(text).unwrap(), &controls).unwrap())
}

fn ids(tensor: &Tensor) -> Vec<usize> {
    tensor.mantissas().to_vec().into_iter().map(|id| usize::try_from(id).unwrap()).collect()
}

/// Token numbers, likeliest first; the first of equals first.
fn ranked(logits: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    order
}

/// Probabilities at a temperature.
fn softmax(logits: &[f64], temperature: f64) -> Vec<f64> {
    let most = logits.iter().fold(f64::NEG_INFINITY, |most, x| most.max(*x));
    let powers: Vec<f64> = logits.iter().map(|x| ((x - most) / temperature).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

#[test]
fn without_temperature_the_largest_logit_is_chosen() {
    // The last vocabulary is longer than one operator reduces.
    let wide = random::llama(Dimensions { vocabulary: 9000, layers: 1, ..SIZE });
    for architecture in [random::gpt2(SIZE), random::llama(SIZE), wide] {
        let model = quantized(architecture);
        let due: Vec<usize> = logits(&model, &TEXT).iter().map(|logits| ranked(logits)[0]).collect();
        let runner = runner(&model, Head::Choice);
        let (few, share) = (
            SamplingParams { top_k: 3, ..SamplingParams::default() },
            SamplingParams { top_p: 0.2, min_p: 0.9, ..SamplingParams::default() },
        );
        for choice in [SamplingParams::default(), few, share] {
            assert_eq!(chosen(&runner, &TEXT, choice), due);
        }
    }
}

#[test]
fn tokens_are_chosen_as_often_as_they_are_likely() {
    let model = quantized(random::llama(Dimensions { vocabulary: 8, layers: 1, ..SIZE }));
    let text: Vec<u32> = TEXT.iter().map(|id| id % 8).collect();
    let logits = logits(&model, &text);
    let runner = runner(&model, Head::Choice);
    for (temperature, top_k) in [(0.5, 0), (1.0, 0), (2.0, 0), (1.0, 4)] {
        let mut counts = vec![[0.0f64; 8]; text.len()];
        let draws = 400;
        for seed in 0..draws {
            let choice = SamplingParams { temperature, top_k, seed, ..SamplingParams::default() };
            let ids = chosen(&runner, &text, choice);
            counts.iter_mut().zip(ids).for_each(|(counts, id)| counts[id] += 1.0);
        }
        let (mut statistic, mut degrees) = (0.0, 0.0);
        for (counts, logits) in counts.iter().zip(&logits) {
            let kept = if top_k == 0 { 8 } else { top_k as usize };
            let allowed: Vec<usize> = ranked(logits)[..kept].to_vec();
            let own: Vec<f64> = allowed.iter().map(|id| logits[*id]).collect();
            for (id, probability) in allowed.iter().zip(softmax(&own, temperature)) {
                let due = probability * f64::from(draws as u32);
                statistic += (counts[*id] - due).powi(2) / due;
            }
            degrees += kept as f64 - 1.0;
        }
        // Wilson and Hilferty's approximation of chi-square's quantile at 99.9 %.
        let ninth = 2.0 / (9.0 * degrees);
        let most = degrees * (1.0 - ninth + 3.09 * f64::sqrt(ninth)).powi(3);
        assert!(statistic < most, "temperature {temperature}, top {top_k}: {statistic} of {degrees} degrees");
    }
}

/// Tokens that may be chosen, and their chances: logits over the temperature, then the top k, of these the top p, of
/// these those that min p allows, as `transformers` has it. A token is left if only so much is wrong with its chance.
fn allowed(logits: &[f64], choice: SamplingParams, wrong: f64) -> Vec<(usize, f64)> {
    let SamplingParams { temperature, top_k, top_p, min_p, .. } = choice;
    let mut left = ranked(logits);
    if top_k > 0 {
        let least = logits[left[top_k as usize - 1]];
        left.retain(|id| logits[*id] >= least);
    }
    let chances = |ids: &[usize]| softmax(&ids.iter().map(|id| logits[*id]).collect::<Vec<_>>(), temperature);
    let (own, mut likelier) = (chances(&left), 0.0);
    let heavy = own.iter().take_while(|chance| {
        let enough = likelier >= top_p + wrong;
        likelier += *chance;
        !enough
    });
    // Ties are all allowed.
    let least = logits[left[heavy.count().max(1) - 1]];
    let most = logits[left[0]];
    let likely = |id: &usize| ((logits[*id] - most) / temperature).exp() >= min_p * (1.0 - wrong);
    left.retain(|id| logits[*id] >= least && likely(id));
    let chances = chances(&left);
    left.into_iter().zip(chances).collect()
}

#[test]
fn tokens_are_chosen_among_those_that_are_allowed() {
    let model = quantized(random::gpt2(Dimensions { layers: 1, ..SIZE }));
    let logits = logits(&model, &TEXT);
    let runner = runner(&model, Head::Choice);
    let (draws, mut least, mut most) = (100, usize::MAX, 0);
    for (temperature, top_k, top_p, min_p) in [
        (3.0, 1, 1.0, 0.0),
        (3.0, 4, 1.0, 0.0),
        (1.0, 0, 0.3, 0.0),
        (3.0, 0, 0.7, 0.0),
        (0.2, 0, 0.7, 0.0),
        (0.05, 0, 0.9, 0.0),
        (0.5, 6, 0.5, 0.0),
        (64.0, 6, 0.5, 0.0),
        (64.0, 0, 1.0, 0.998),
        (3.0, 0, 1.0, 0.8),
        (0.3, 0, 1.0, 0.3),
        (0.01, 0, 1.0, 1e-6),
        (1.0, 0, 0.2, 0.4),
        (1.0, 9, 0.9, 0.7),
        (2.0, 0, 1.0, 1.0),
        (0.0003, 0, 0.9, 0.5),
    ] {
        let choice = SamplingParams { temperature, top_k, top_p, min_p, ..SamplingParams::default() };
        let mut seen = vec![BTreeSet::new(); TEXT.len()];
        for seed in 0..draws {
            let ids = chosen(&runner, &TEXT, SamplingParams { seed, ..choice });
            seen.iter_mut().zip(ids).for_each(|(seen, id)| seen.extend([id]));
        }
        for (seen, logits) in seen.iter().zip(&logits) {
            let more: BTreeSet<usize> = allowed(logits, choice, 1e-3).into_iter().map(|(id, _)| id).collect();
            assert!(seen.is_subset(&more), "{choice:?}: {seen:?} of {more:?}");
            // What is drawn every tenth time, or more often, is drawn.
            for (id, chance) in allowed(logits, choice, -1e-3) {
                assert!(chance < 0.1 || seen.contains(&id), "{choice:?}: {id} with {chance}, not in {seen:?}");
            }
            (least, most) = (least.min(more.len()), most.max(more.len()));
        }
    }
    assert!(least == 1 && most > 20, "{least} to {most} tokens are allowed");
}

/// Logits of a row as the penalty has them: of a token that the text has, over it, or times it below 0.
fn penalised(logits: &[f64], text: &[u32], penalty: f64) -> Vec<f64> {
    let mut logits = logits.to_vec();
    for id in BTreeSet::from_iter(text) {
        let logit = &mut logits[*id as usize];
        *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
    }
    logits
}

#[test]
fn tokens_that_a_text_has_are_chosen_by_the_penalty() {
    let text: Vec<u32> = (0..16).map(|i| [4, 9, 1, 4, 30][i % 5]).collect();
    for architecture in [random::gpt2(SIZE), random::llama(Dimensions { vocabulary: 9000, layers: 1, ..SIZE })] {
        let model = quantized(architecture);
        let runner = runner(&model, Head::Choice);
        let output = self::runner(&model, Head::Output).run(&tokens(&text).unwrap()).unwrap();
        let digit = (-f64::from(output.ty().exponent())).exp2();
        let logits = logits(&model, &text);
        let mut changed = 0;
        for repetition_penalty in [1.0, 1.3, 8.0, 0.5, 0.125, 3.0] {
            let choice = SamplingParams { repetition_penalty, ..SamplingParams::default() };
            let got = chosen(&runner, &text, choice);
            for (place, (got, logits)) in got.iter().zip(&logits).enumerate() {
                let due = penalised(logits, &text[..=place], repetition_penalty);
                let most = due[ranked(&due)[0]];
                // What 16 bits cannot hold is as much as they can.
                let held = most.min(32767.0 * digit);
                assert!(due[*got] >= held - digit, "{repetition_penalty} at {place}: {} of {most}", due[*got]);
                changed += usize::from(*got != ranked(logits)[0]);
            }
        }
        assert!(changed > 10, "{changed} tokens are others than without a penalty");
    }
}

#[test]
fn the_same_seed_gives_the_same_tokens_in_any_parts() {
    let model = quantized(random::llama(SIZE));
    let runner = runner(&model, Head::Choice);
    let choice =
        |seed| SamplingParams { temperature: 1.0, top_k: 20, top_p: 0.9, min_p: 0.02, repetition_penalty: 1.1, seed };
    let all = chosen(&runner, &TEXT, choice(5));
    assert_eq!(all, chosen(&runner, &TEXT, choice(5)));
    assert_ne!(all, chosen(&runner, &TEXT, choice(6)));
    assert!(all.iter().all(|id| *id < 50));

    let mut stage = CachedRunner::sharing(runner).unwrap();
    for parts in [vec![0..9], vec![0..4, 4..5, 5..9], (0..9).map(|i| i..i + 1).collect()] {
        let mut session = stage.session().unwrap();
        let mut got = vec![];
        for part in parts {
            // Nothing is chosen after the second token.
            let choices: Vec<_> = part.clone().map(|i| (TEXT[i], (i != 1).then_some(choice(5)))).collect();
            let controls = controls(part.start as u32, &choices).unwrap();
            let rows = tokens(&TEXT[part]).unwrap();
            let turn = Turn { session: &mut session, rows: &rows, controls: Some(&controls) };
            got.extend(ids(&stage.advance(&mut [turn]).unwrap()[0]));
        }
        let due: Vec<usize> = (0..9).map(|i| if i == 1 { 0 } else { all[i] }).collect();
        assert_eq!(got, due);
    }
}

#[test]
fn choices_need_logits_and_controls() {
    let encoder = quantized(random::bert(SIZE));
    let refused = encoder.stage_with(0..3, Head::Choice, |_| TensorRoot::default());
    assert!(matches!(refused, Err(PlanError::Unsupported(_))));
    // A prime beyond one operator's reach has no equal parts.
    let prime = quantized(random::llama(Dimensions { vocabulary: 4099, layers: 1, ..SIZE }));
    let refused = prime.stage_with(0..1, Head::Choice, |_| TensorRoot::default());
    assert!(matches!(refused, Err(PlanError::Unsupported(_))));

    let model = quantized(random::llama(SIZE));
    // A stage that is not the last chooses nothing.
    let (first, _) = model.stage_with(0..2, Head::Choice, |_| TensorRoot::default()).unwrap();
    assert_eq!(first.program(3).unwrap().from_next, []);
    let runner = runner(&model, Head::Choice);
    let program = runner.plan().program(3).unwrap();
    assert_eq!(program.from_next[0].dims(), [3, 11]);
    let operands = program.operators.iter().flat_map(|operator| &operator.operands);
    assert!(operands.into_iter().any(|operand| operand.source == Source::FromNext(0)));

    let input = tokens(&TEXT).unwrap();
    let missing = runner.run(&input);
    assert!(matches!(missing, Err(RunError::Execute(ExecuteError::Boundary { neighbour: "next", .. }))));
    let short = controls(0, &[(0, None); 8]).unwrap();
    assert!(matches!(runner.choose(&input, &short), Err(RunError::Execute(ExecuteError::Type { .. }))));
    let mut stage = CachedRunner::sharing(runner).unwrap();
    let mut session = stage.session().unwrap();
    for controls in [None, Some(&short)] {
        let refused = stage.advance(&mut [Turn { session: &mut session, rows: &input, controls }]);
        assert!(matches!(refused, Err(DecodeError::Execute(_))));
        assert_eq!(session.position(), 0);
    }
}
