//! Gradients that are rounded by draws: which are, by what draws, and that these do not depend on the cut.

use std::collections::BTreeSet;

use tensorlink_types::Opcode;

use crate::language::cuts::check_two_stages;
use crate::language::{LLAMA, compile, trained_by};

const BITS_8: &str = r#""operand_bits": 8"#;
const BITS_16: &str = r#""operand_bits": 16"#;

/// Streams of the draws that a step of a decoder of two blocks and four sequences rounds by.
fn streams(bits: &str) -> Vec<i64> {
    let (_, training, data) = trained_by(0.003, LLAMA, bits, (64, 0));
    let calibration = training.calibrate(&data.training, 3, 2).unwrap();
    let (program, ..) = compile(&training, &calibration, &data, &[0..training.layers.len()]).remove(0);
    let dithers = program.operators.iter().filter(|operator| operator.opcode == Opcode::Dither);
    dithers.map(|operator| operator.attributes[1]).collect()
}

#[test]
fn every_gradient_that_8_bits_multiply_has_draws_of_its_own() {
    let drawn = streams(BITS_8);
    // Of each sequence: seven projections of two blocks and the head, for the weights and for what they were
    // multiplied with.
    assert_eq!(drawn.len(), 4 * 2 * (7 * 2 + 1));
    assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), drawn.len());
    assert!(streams(BITS_16).is_empty());
}

#[test]
fn draws_do_not_depend_on_the_cut() {
    let (_, training, data) = trained_by(0.003, LLAMA, BITS_8, (64, 0));
    check_two_stages(training, &data, 2);
}
