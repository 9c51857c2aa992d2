//! Integration tests, one binary.
#![expect(clippy::single_range_in_vec_init, reason = "stages are ranges of layers, also when there is one")]

mod check;
mod conformance;
mod digits;
mod dither;
mod dropout;
mod encoder;
mod executor;
mod gradient;
mod hostile;
mod language;
mod lora;
mod networks;
mod outliers;
mod recut;
mod support;
