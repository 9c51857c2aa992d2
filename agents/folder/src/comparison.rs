//! How far a model in integers is from its floats, over texts.

use std::error::Error as StdError;

use tensorlink_model::compare::Comparison;
use tensorlink_model::{Output, PlanError, Quantized, RunError, StageRunner, tokens};
use tensorlink_num::Tensor;
use tensorlink_program::Engine;
use tensorlink_program::executor::ExecuteError;
use tensorlink_types::{Opcode, Operator, TensorRoot};
use thiserror::Error;

use super::Distance;
use super::distance::Choice;

/// Texts whose every intermediate result is looked at for saturation.
const TRACED: usize = 4;

/// Why a model could not be compared with its floats.
#[derive(Debug, Error)]
pub enum ComparisonError {
    /// Its integers cannot be computed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The device does not take its constants.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// A text beyond the context, or a device that fails.
    #[error(transparent)]
    Run(#[from] RunError),
    /// What whoever computes the floats says.
    #[error(transparent)]
    Floats(Box<dyn StdError + Send + Sync>),
    /// The floats are of another model.
    #[error("{exact} exact values against {float} in floats")]
    Values {
        /// Values of a text by integers.
        exact: usize,
        /// The same by floats.
        float: usize,
    },
    /// The floats overflow.
    #[error("the model's floats are infinite or no numbers on some text: its weights are damaged")]
    NoNumbers,
}

/// Whether it is one: floats that overflow give no numbers to compare with.
fn is_number(distance: &Distance) -> bool {
    let all = [distance.cosine_mean, distance.mean_difference, distance.largest_difference];
    let all = all.iter().chain(&distance.divergence).chain(distance.perplexity.iter().flatten());
    all.into_iter().all(|number| number.is_finite())
}

/// Compares a model with its floats over texts in token numbers. `floats` are what the same gives for a text in
/// floats, row-major.
///
/// # Errors
/// [`ComparisonError`].
pub fn compare<E: Engine, F: Into<Box<dyn StdError + Send + Sync>>>(
    exact: &Quantized,
    floats: impl Fn(&[u32]) -> Result<Vec<f32>, F>,
    engine: E,
    texts: &[Vec<u32>],
) -> Result<Distance, ComparisonError> {
    let a = exact.architecture();
    // Nothing is claimed here.
    let (plan, constants) = exact.stage(0..a.layers, |_| TensorRoot::default())?;
    let runner = StageRunner::new(engine, plan, &constants)?;
    drop(constants);
    let row = match a.output {
        Output::Embedding(_) => a.vector_width(),
        Output::Logits { .. } => a.vocabulary,
        Output::Classes(classes) => classes,
    } as usize;
    let mut rows = Comparison::default();
    let mut pairs: Vec<[Vec<f64>; 2]> = Vec::new();
    for text in texts {
        let due = floats(text).map_err(|error| ComparisonError::Floats(error.into()))?;
        let got = runner.run(&tokens(text)?)?.to_f64();
        if got.len() != due.len() {
            return Err(ComparisonError::Values { exact: got.len(), float: due.len() });
        }
        for (place, (got, due)) in got.chunks(row).zip(due.chunks(row)).enumerate() {
            match a.output {
                Output::Logits { .. } => rows.logits(got, due, text.get(place + 1).copied()),
                Output::Classes(_) => rows.logits(got, due, None),
                Output::Embedding(_) => rows.vector(got, due),
            }
        }
        if !matches!(a.output, Output::Logits { .. }) {
            pairs.push([got, due.into_iter().map(f64::from).collect()]);
        }
    }
    let of_rows = |same: u64| same as f64 / rows.rows().max(1) as f64;
    let (choice, same_choice) = match a.output {
        Output::Embedding(_) => (Choice::Neighbour, of_rows(same_neighbours(&pairs) as u64)),
        Output::Logits { .. } => (Choice::Token, of_rows(rows.same_choices())),
        Output::Classes(1) => {
            rows = of_scores(&pairs);
            (Choice::Order, same_order(&pairs))
        }
        Output::Classes(_) => (Choice::Class, of_rows(rows.same_choices())),
    };
    let ([cosine_mean, cosine_min], [mean_difference, largest_difference]) = (rows.cosine(), rows.difference());
    let distance = Distance {
        texts: texts.len(),
        tokens: texts.iter().map(Vec::len).sum(),
        vectors: rows.rows() as usize,
        cosine_mean,
        cosine_min,
        largest_difference,
        mean_difference,
        same_choice,
        perplexity: rows.perplexity(),
        divergence: rows.divergence().filter(|_| choice == Choice::Token),
        choice,
        saturated: saturated(&runner, texts)?,
    };
    if is_number(&distance) { Ok(distance) } else { Err(ComparisonError::NoNumbers) }
}

/// Texts whose nearest other text is the same by integers as by floats.
fn same_neighbours(pairs: &[[Vec<f64>; 2]]) -> usize {
    let nearest = |of: usize, side: usize| {
        let own = &pairs[of][side];
        let others = pairs.iter().enumerate().filter(|(other, _)| *other != of);
        let better = |best: (Option<usize>, f64), (other, pair): (usize, &[Vec<f64>; 2])| {
            let near = dot(own, &pair[side]);
            if near > best.1 { (Some(other), near) } else { best }
        };
        others.fold((None, f64::NEG_INFINITY), better).0
    };
    (0..pairs.len()).filter(|of| nearest(*of, 0) == nearest(*of, 1)).count()
}

/// All scores as one vector, less their mean in floats.
fn of_scores(pairs: &[[Vec<f64>; 2]]) -> Comparison {
    let of = |side: usize| pairs.iter().flat_map(move |pair| pair[side].iter().copied());
    let mean = of(1).sum::<f64>() / pairs.len().max(1) as f64;
    let got: Vec<f64> = of(0).map(|score| score - mean).collect();
    let due: Vec<f32> = of(1).map(|score| (score - mean) as f32).collect();
    let mut rows = Comparison::default();
    rows.vector(&got, &due);
    rows
}

/// Share of pairs of texts of which the same one has the higher score, or of which both are equal by one side.
fn same_order(pairs: &[[Vec<f64>; 2]]) -> f64 {
    let (mut same, mut all) = (0u64, 0u64);
    for (at, [got, due]) in pairs.iter().enumerate() {
        for [other_got, other_due] in pairs.iter().skip(at + 1) {
            let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).sum::<f64>();
            same += u64::from(apart(got, other_got) * apart(due, other_due) >= 0.0);
            all += 1;
        }
    }
    same as f64 / all.max(1) as f64
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Share of activations that stand at the limit of their type, and so may have been cut.
fn saturated<E: Engine>(runner: &StageRunner<E>, texts: &[Vec<u32>]) -> Result<f64, RunError> {
    let (mut at_limit, mut all) = (0u64, 0u64);
    for text in texts.iter().take(TRACED) {
        let input = tokens(text)?;
        let length = u32::try_from(text.len()).map_err(|_| RunError::Tokens(text.len()))?;
        let program = runner.plan().program(length)?;
        for (operator, output) in program.operators.iter().zip(runner.trace(&input)?) {
            if rescales(operator) {
                at_limit += count_at_limit(&output);
                all += output.ty().elements();
            }
        }
    }
    Ok(at_limit as f64 / all.max(1) as f64)
}

/// Whether an operator puts results on a calibrated scale.
const fn rescales(operator: &Operator) -> bool {
    use Opcode::{Combine, Gather, HeadMix, HeadScores, Lookup, Mul, Norm, Rope, ShiftedMatMul};
    matches!(operator.opcode, Combine | Gather | HeadMix | HeadScores | Lookup | Mul | Norm | Rope | ShiftedMatMul)
}

fn count_at_limit(tensor: &Tensor) -> u64 {
    let limit = tensor.ty().limit().unsigned_abs();
    tensor.mantissas().to_vec().iter().filter(|m| m.unsigned_abs() == limit).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(pairs: &[(f64, f64)]) -> Vec<[Vec<f64>; 2]> {
        pairs.iter().map(|(got, due)| [vec![*got], vec![*due]]).collect()
    }

    #[test]
    fn orders_of_two_texts_are_counted() {
        let alike = scores(&[(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]);
        assert!((same_order(&alike) - 1.0).abs() < 1e-12 && (same_order(&[]) - 0.0).abs() < 1e-12);
        // Of three pairs of texts one has changed places.
        let turned = scores(&[(1.0, 10.0), (3.0, 20.0), (2.0, 30.0)]);
        assert!((same_order(&turned) - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn scores_are_compared_around_their_mean() {
        // All of them 100 and more: their own cosine would be 1 whatever they were.
        let near = of_scores(&scores(&[(101.0, 101.0), (102.0, 102.0), (103.0, 103.0)]));
        assert!((near.cosine()[0] - 1.0).abs() < 1e-9);
        let turned = of_scores(&scores(&[(103.0, 101.0), (102.0, 102.0), (101.0, 103.0)]));
        assert!((turned.cosine()[0] + 1.0).abs() < 1e-9);
        assert!((turned.difference()[1] - 2.0).abs() < 1e-6);
    }
}
