//! Initial weights and state.
//!
//! Without imported weights, they are Gaussian with the variance of He et al., *Delving deep into rectifiers* (2015):
//! `2 / inputs` before an activation, `1 / inputs` before the softmax; biases are zero. The draws are integers, made
//! from Philox (rule N-4) and the seed alone, so every machine gets the same.

use tensorlink_num::{Tensor, TensorError, fixed, philox};
use tensorlink_types::{Program, StateSlot};
use thiserror::Error;

use crate::model::{LayerWeights, Linear, Network};
use crate::step::float::FloatState;

/// Exponent of freshly drawn weights.
const EXPONENT: i16 = 29;
/// Fraction bits of the multiplier that gives draws their variance.
const FRACTION: u32 = 16;
/// Fourth counter word: keeps these draws apart from those of rule N-24.
const STREAM: u32 = 0x696e_6974;

/// Why a stage's state could not be formed.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum InitError {
    /// The weights are not those of the stage's layers.
    #[error("state {slot} of the stage has no matching weights; import or draw weights for the whole network")]
    Mismatch {
        /// Name of the state tensor.
        slot: String,
    },
    /// A weight lies beyond the range that calibration gave its tensor.
    #[error("{slot}: {source}; calibrate with these weights")]
    Range {
        /// Name of the state tensor.
        slot: String,
        /// The value.
        source: TensorError,
    },
}

/// Draws weights for every layer of a network.
pub fn gaussian(network: &Network, seed: u64) -> Vec<LayerWeights> {
    network.layers.iter().zip(0u32..).map(|(linear, layer)| gaussian_layer(linear, layer, seed)).collect()
}

fn gaussian_layer(linear: &Linear, layer: u32, seed: u64) -> LayerWeights {
    // SAFETY of the casts: the two halves of the seed.
    let key = [seed as u32, (seed >> 32) as u32];
    let gain: u64 = if linear.activation.is_some() { 2 } else { 1 };
    // A draw below has variance 16/3 · 2^32; this multiplier has FRACTION more bits than the exponent asks for.
    let multiplier = (gain * (3 << 54) / u64::from(linear.input.max(1))).isqrt();
    let count = linear.output.saturating_mul(linear.input);
    let weight = (0..count).map(|element| {
        let m = i128::from(bell(key, element, layer)).saturating_mul(i128::from(multiplier));
        // Exact: at most 32 bits.
        fixed::rescale(m, FRACTION.into(), 32) as f64 * libm::exp2(-f64::from(EXPONENT))
    });
    LayerWeights { weight: weight.collect(), bias: vec![0.0; linear.output as usize] }
}

/// Sum of sixteen uniform half-words, centred: close to normal, within ±6.9 standard deviations.
fn bell(key: [u32; 2], element: u32, layer: u32) -> i64 {
    let words = [0, 1].into_iter().flat_map(|block| philox::philox4x32(key, [element, layer, block, STREAM]));
    let sum: u32 = words.map(|word| (word & 0xffff) + (word >> 16)).sum();
    2 * i64::from(sum) - 16 * 0xffff
}

/// Initial state of a stage, in its registered order, from floats by its names.
///
/// # Errors
/// [`InitError::Mismatch`] for floats of another network, [`InitError::Range`] for a weight out of range.
pub fn state(program: &Program, floats: &FloatState) -> Result<Vec<Tensor>, InitError> {
    let one = |registered: &StateSlot| {
        let mismatch = || InitError::Mismatch { slot: registered.name.clone() };
        let values = floats.get(&registered.name).ok_or_else(mismatch)?;
        if values.len() as u64 != registered.ty.elements() {
            return Err(mismatch());
        }
        let unit = libm::exp2(f64::from(registered.ty.exponent()));
        let mantissas: Vec<i64> = values.iter().map(|w| (w * unit).round_ties_even() as i64).collect();
        Tensor::from_wide(registered.ty.clone(), &mantissas)
            .map_err(|source| InitError::Range { slot: registered.name.clone(), source })
    };
    program.state.iter().map(one).collect()
}
