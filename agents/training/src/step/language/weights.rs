//! What products read of parameters. Those that are trained are state, and quantised anew in every step; those that are
//! not are constants, quantised here.

use tensorlink_model::{Matrix, Parameter, parameters};

use super::linear::fraction;
use super::{
    Adapters, Builder, Quantised, WIDE_BITS, Weight, clipped_squared, is_tied, master, narrow, place_of, wide,
};
use crate::step::build::{MASTER_BITS, ceil_log2};
use crate::step::{Class, NodeId, Op, Phase, Precision};

/// Bits of frozen vectors and of embeddings.
const FROZEN_BITS: u8 = 16;

impl Builder<'_> {
    /// Every parameter, and what products read of it.
    pub(super) fn prepare(&mut self) {
        match &self.recipe.adapters {
            None => {
                for parameter in parameters(self.architecture) {
                    let cast = if parameter.rows == 1 { narrow(Class::Operand) } else { wide(Class::Operand) };
                    self.trained(&parameter, [master(Class::Weight), cast]);
                }
            }
            Some(Adapters { lora, base }) => {
                for (name, matrix) in base.iter() {
                    self.frozen(name, matrix);
                }
                let range = self.range();
                let at = |bits: u8| Precision::Fixed {
                    bits,
                    exponent: i16::from(bits).saturating_sub(1).saturating_sub(range),
                };
                for parameter in lora.parameters(self.architecture) {
                    self.trained(&parameter, [at(MASTER_BITS), at(WIDE_BITS)]);
                }
            }
        }
    }

    /// Places before the point that adapters need. They begin at most at 1, and Adam takes them no further in a step
    /// than its rate, up to single ones: what calibration sees of the first steps says little of matrices that begin
    /// at nothing.
    fn range(&self) -> i16 {
        let way: f64 = self.recipe.optimizer.rates.iter().sum();
        // SAFETY of the cast: a job has at most a million steps of a rate of at most 1.
        i16::from(ceil_log2(libm::ceil(1.0 + way) as u32))
    }

    fn trained(&mut self, parameter: &Parameter, [precision, cast]: [Precision; 2]) {
        let name = parameter.name.as_str();
        let layer = self.settle(name);
        let dims = parameter.dims();
        let value = self.leaf(name, Op::State, dims.clone(), precision);
        let first = self.leaf(&format!("{name}.first"), Op::State, dims.clone(), master(Class::Velocity));
        let second = self.leaf(&format!("{name}.second"), Op::State, dims, clipped_squared(name));
        let table = name.starts_with("embedding.") && name != self.weight_of("head");
        let quantised = (parameter.rows == 1 || !table).then(|| {
            let cast = self.like(&format!("{name}.cast"), Op::Cast, &[value], cast);
            match parameter.rows {
                1 => Quantised { mantissas: cast, scale: cast },
                _ => self.quantise(name, cast),
            }
        });
        let weight = Weight { layer, value, moments: Some([first, second]), quantised };
        self.weights.insert(name.to_owned(), weight);
    }

    /// Goes to where a parameter lives, to be prepared there.
    fn settle(&mut self, parameter: &str) -> usize {
        self.at(Phase::Prepare, place_of(self.architecture, parameter));
        self.recipe.layer_of(self.architecture, parameter)
    }

    fn frozen(&mut self, name: &str, matrix: &Matrix) {
        let layer = self.settle(name);
        let is_head = name == self.weight_of("head");
        let (value, quantised) = match matrix.rows() {
            1 => {
                let vector = self.floats(name, &[matrix.columns()], matrix);
                (vector, Some(Quantised { mantissas: vector, scale: vector }))
            }
            rows if name.starts_with("embedding.") => {
                let table = self.floats(name, &[rows, matrix.columns()], matrix);
                (table, is_head.then(|| self.rows_of(name, matrix)))
            }
            _ => {
                let quantised = self.rows_of(name, matrix);
                (quantised.mantissas, Some(quantised))
            }
        };
        self.weights.insert(name.to_owned(), Weight { layer, value, moments: None, quantised });
    }

    /// A constant as fine as its largest value leaves room for.
    fn floats(&mut self, name: &str, dims: &[u32], matrix: &Matrix) -> NodeId {
        let precision = Precision::Fixed { bits: FROZEN_BITS, exponent: finest(largest(matrix.values()), FROZEN_BITS) };
        self.constant(name, dims, precision, || matrix.values().iter().map(|value| f64::from(*value)).collect())
    }

    /// A matrix as fractions of its rows' largest values.
    fn rows_of(&mut self, name: &str, matrix: &Matrix) -> Quantised {
        let bits = self.recipe.operand_bits;
        let scale_bits = WIDE_BITS.saturating_sub(bits.saturating_sub(1));
        // So that the largest of a row is the largest mantissa.
        let all = f64::from((1u32 << bits.saturating_sub(1)).saturating_sub(1)) / libm::exp2(f64::from(bits) - 1.0);
        let columns = matrix.columns().max(1) as usize;
        let rows = || matrix.values().chunks_exact(columns);
        let exponent = finest(largest(matrix.values()) / all, scale_bits);
        let unit = libm::exp2(f64::from(exponent));
        let most = libm::exp2(f64::from(scale_bits) - 1.0) - 1.0;
        let scale = |row: &[f32]| libm::ceil(largest(row) / all * unit).min(most) / unit;
        let scales: Vec<f64> = rows().map(scale).collect();
        let fractions = || {
            let row = |(row, scale): (&[f32], &f64)| {
                let scale = *scale;
                row.iter()
                    .map(move |value| if scale > 0.0 { f64::from(*value) / scale } else { 0.0 })
                    .collect::<Vec<_>>()
            };
            rows().zip(&scales).flat_map(row).collect()
        };
        let dims = [matrix.rows(), matrix.columns()];
        let mantissas = self.constant(&format!("{name}.quantised"), &dims, fraction(bits), fractions);
        let precision = Precision::Fixed { bits: scale_bits, exponent };
        let scale = self.constant(&format!("{name}.scale"), &[matrix.rows()], precision, || scales.clone());
        Quantised { mantissas, scale }
    }

    /// Whether a parameter is there, and is trained.
    pub(super) fn is_trained(&self, parameter: &str) -> bool {
        self.weights.get(parameter).is_some_and(|weight| weight.moments.is_some())
    }

    /// A vector of weights, where there is one of this name.
    pub(super) fn vector_of(&self, parameter: &str) -> Option<NodeId> {
        Some(self.weights.get(parameter)?.quantised?.mantissas)
    }

    /// Name of a projection's weights; those of a tied head are the embedding.
    pub(super) fn weight_of(&self, projection: &str) -> String {
        if projection == "head" && is_tied(self.architecture) {
            return "embedding.tokens".to_owned();
        }
        format!("{projection}.weight")
    }

    /// What products read of a projection's weights.
    pub(super) fn operand(&self, projection: &str) -> Option<Quantised> {
        self.weights.get(&self.weight_of(projection)).and_then(|weight| weight.quantised)
    }
}

fn largest(values: &[f32]) -> f64 {
    values.iter().fold(0.0, |max: f64, value| max.max(f64::from(value.abs())))
}

/// Largest exponent at which so large a value has at most so many bits.
fn finest(largest: f64, bits: u8) -> i16 {
    let most = libm::exp2(f64::from(bits) - 1.0) - 1.0;
    if largest > 0.0 { libm::floor(libm::log2(most / largest)) as i16 } else { 0 }
}
