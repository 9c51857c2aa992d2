//! Adapters of low rank (Hu et al., *LoRA*, 2021): a projection computes `W·x + alpha/rank·B·(A·x)`, and only A and B
//! are trained.
//!
//! | module | what lives there |
//! |---|---|
//! | here | which projections have one; their parameters, first values, and the model with them added in |
//! | [`peft`] | their files, as Hugging Face's PEFT has them |

pub mod peft;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::architecture::Architecture;
use super::parameters::{Matrix, Parameter, Weights, WeightsError, parameters};
use super::random;

/// Largest rank.
pub const MAX_RANK: u32 = 256;
/// Largest `alpha`.
pub const MAX_ALPHA: u32 = 4096;
/// What A and B are called, after their projection.
const PARTS: [&str; 2] = ["lora_A", "lora_B"];

/// A projection of every block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names are those of `parameters`")]
pub enum Target {
    Query,
    Key,
    Value,
    Output,
    Up,
    Gate,
    Down,
}

impl Target {
    /// Every projection there may be.
    pub const ALL: [Self; 7] = [Self::Query, Self::Key, Self::Value, Self::Output, Self::Up, Self::Gate, Self::Down];

    /// Its name in a block.
    pub const fn part(self) -> &'static str {
        match self {
            Self::Query => "attention.query",
            Self::Key => "attention.key",
            Self::Value => "attention.value",
            Self::Output => "attention.output",
            Self::Up => "mlp.up",
            Self::Gate => "mlp.gate",
            Self::Down => "mlp.down",
        }
    }
}

/// Why adapters cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum LoraError {
    #[error("`{0}` is no projection of this model: leave it out of the targets")]
    Absent(&'static str),
    #[error(
        "GPT-2 keeps queries, keys and values in one matrix, which gets no adapters: choose output, up or down, not `{0}`"
    )]
    Joint(&'static str),
}

/// Which projections have adapters, and of what rank.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lora {
    /// Rows of A, columns of B.
    pub rank: u32,
    /// What `B·A` is multiplied by, times the rank.
    pub alpha: u32,
    /// The projections of every block; queries and values unless said, as in the paper.
    #[serde(default = "of_the_paper")]
    pub targets: BTreeSet<Target>,
}

fn of_the_paper() -> BTreeSet<Target> {
    BTreeSet::from([Target::Query, Target::Value])
}

/// Names of the two projections that stand beside one.
pub fn beside(projection: &str) -> [String; 2] {
    PARTS.map(|part| format!("{projection}.{part}"))
}

impl Lora {
    /// `alpha/rank`.
    pub fn scale(&self) -> f64 {
        f64::from(self.alpha) / f64::from(self.rank.max(1))
    }

    /// What is out of range: field, value, and what is allowed.
    pub fn problem(&self) -> Option<(&'static str, u32, &'static str)> {
        let checks = [
            ((1..=MAX_RANK).contains(&self.rank), ("lora.rank", self.rank, "1 to 256")),
            ((1..=MAX_ALPHA).contains(&self.alpha), ("lora.alpha", self.alpha, "1 to 4096")),
            (!self.targets.is_empty(), ("lora.targets", 0, "at least one projection, e.g. [\"query\", \"value\"]")),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map(|(_, problem)| problem)
    }

    /// Whether a model has these projections.
    ///
    /// # Errors
    /// [`LoraError`].
    pub fn check(&self, architecture: &Architecture) -> Result<(), LoraError> {
        for target in &self.targets {
            if *target == Target::Gate && !architecture.gated {
                return Err(LoraError::Absent(target.part()));
            }
            let joint = matches!(target, Target::Query | Target::Key | Target::Value);
            if architecture.family.manner().conv1d && joint {
                return Err(LoraError::Joint(target.part()));
            }
        }
        Ok(())
    }

    /// Whether a projection, by its name, has an adapter.
    pub fn adapts(&self, projection: &str) -> bool {
        let part = projection.strip_prefix("layers.").and_then(|rest| Some(rest.split_once('.')?.1));
        part.is_some_and(|part| self.targets.iter().any(|target| target.part() == part))
    }

    /// The adapted projections of an architecture, in the order of use.
    pub fn projections(&self, architecture: &Architecture) -> impl Iterator<Item = Parameter> {
        parameters(architecture).into_iter().filter_map(|parameter| {
            let name = parameter.name.strip_suffix(".weight")?.to_owned();
            self.adapts(&name).then_some(Parameter { name, ..parameter })
        })
    }

    /// A `rank × inputs` and B `outputs × rank` of every adapted projection.
    pub fn parameters(&self, architecture: &Architecture) -> Vec<Parameter> {
        let pair = |Parameter { name, rows, columns }: Parameter| {
            let [a, b] = beside(&name).map(|name| format!("{name}.weight"));
            [Parameter { name: a, rows: self.rank, columns }, Parameter { name: b, rows, columns: self.rank }]
        };
        self.projections(architecture).flat_map(pair).collect()
    }

    /// First values: A drawn evenly from `±1/√inputs`, as PEFT does, and B zero, so that the model begins as it was.
    pub fn begin(&self, architecture: &Architecture, seed: u64) -> BTreeMap<String, Vec<f32>> {
        self.drawn(architecture, seed, is_first)
    }

    /// As [`begin`](Self::begin), but with B as large as A: how large gradients get once B has grown shows from there.
    pub fn grown(&self, architecture: &Architecture, seed: u64) -> BTreeMap<String, Vec<f32>> {
        self.drawn(architecture, seed, |_| true)
    }

    fn drawn(
        &self,
        architecture: &Architecture,
        seed: u64,
        draws: impl Fn(&Parameter) -> bool,
    ) -> BTreeMap<String, Vec<f32>> {
        let one = |(parameter, number): (Parameter, u64)| {
            let count = u64::from(parameter.rows).saturating_mul(parameter.columns.into());
            let inputs = if is_first(&parameter) { parameter.columns } else { parameter.rows };
            let bound = libm::sqrtf(inputs.max(1) as f32).recip();
            let values = match draws(&parameter) {
                true => random::uniform(seed, number, count).map(|draw| draw * bound).collect(),
                false => vec![0.0; count as usize],
            };
            (parameter.name, values)
        };
        self.parameters(architecture).into_iter().zip(0..).map(one).collect()
    }

    /// The model with its adapters added in: `W + alpha/rank·B·A`.
    ///
    /// # Errors
    /// [`WeightsError`] for weights or adapters of another architecture.
    pub fn merge(
        &self,
        architecture: &Architecture,
        base: &Weights,
        adapters: &BTreeMap<String, Matrix>,
    ) -> Result<Weights, WeightsError> {
        let mut merged: BTreeMap<String, Matrix> =
            base.iter().map(|(name, matrix)| (name.to_owned(), matrix.clone())).collect();
        for Parameter { name, rows, columns } in self.projections(architecture) {
            let mut taken = Vec::new();
            for (part, shape) in beside(&name).into_iter().zip([[self.rank, columns], [rows, self.rank]]) {
                let name = format!("{part}.weight");
                let Some(matrix) = adapters.get(&name) else { return Err(WeightsError::Missing(name)) };
                let actual = [matrix.rows(), matrix.columns()];
                if actual != shape {
                    return Err(WeightsError::Shape { name, actual, expected: shape });
                }
                taken.push(matrix.values());
            }
            let [a, b] = taken[..] else { continue };
            let name = format!("{name}.weight");
            let weight = base.get(&name)?;
            let values = added(weight.values(), [a, b], self.rank as usize, self.scale());
            if let Some(matrix) = Matrix::new(rows, columns, values) {
                merged.insert(name, matrix);
            }
        }
        Weights::new(architecture, merged)
    }
}

/// Whether a parameter is A.
fn is_first(parameter: &Parameter) -> bool {
    let [a, _] = PARTS;
    parameter.name.strip_suffix(".weight").is_some_and(|name| name.ends_with(a))
}

fn added(weight: &[f32], [a, b]: [&[f32]; 2], rank: usize, scale: f64) -> Vec<f32> {
    let columns = a.len().checked_div(rank).unwrap_or(1).max(1);
    let row = |(row, b): (&[f32], &[f32])| -> Vec<f32> {
        let mut sum: Vec<f64> = row.iter().map(|w| f64::from(*w)).collect();
        for (a, b) in a.chunks_exact(columns).zip(b) {
            let factor = scale * f64::from(*b);
            sum.iter_mut().zip(a).for_each(|(sum, a)| *sum += factor * f64::from(*a));
        }
        sum.into_iter().map(|value| value as f32).collect()
    };
    weight.chunks_exact(columns).zip(b.chunks_exact(rank.max(1))).flat_map(row).collect()
}
