//! Integration tests, one binary.
#![expect(clippy::single_range_in_vec_init, reason = "stages are ranges of layers, also when there is one")]

mod choice;
mod decode;
mod transformer;
