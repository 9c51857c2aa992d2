//! Transformers: what a model folder describes, its weights, and the programs that compute it exactly.
//!
//! | module | what lives there |
//! |---|---|
//! | [`architecture`] | dimensions and variants of encoder and decoder transformers |
//! | [`parameters`] | names and shapes of an architecture's weights; the weights themselves |
//!
//! Names of parameters and of activations ("sites") are the same in the float model, in calibrations and in programs:
//! `embedding.tokens`, `layers.3.attention.query.weight`, `layers.3.mlp.up`.

pub mod architecture;
pub mod parameters;

pub use architecture::{
    Activation, Architecture, Family, Norm, Output, Placement, Pooling, Positions, Rotary, Scaling,
};
pub use parameters::{Matrix, Parameter, Weights, WeightsError, parameters};
