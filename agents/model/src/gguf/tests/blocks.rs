use serde_json::Value;

use super::super::super::import::decode::{Dtype, floats};
use super::super::super::layout::Window;
use super::super::Blocks;

const ALL: [Blocks; 8] =
    [Blocks::Q4_0, Blocks::Q4_1, Blocks::Q5_0, Blocks::Q5_1, Blocks::Q8_0, Blocks::Q4K, Blocks::Q5K, Blocks::Q6K];

fn bytes(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().unwrap();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// A block, and what ggml's own Python package makes of it.
fn reference(blocks: Blocks) -> (Vec<u8>, Vec<f32>) {
    let all: Value = serde_json::from_str(include_str!("blocks.json")).unwrap();
    let one = &all[blocks.name()];
    let floats = bytes(&one["floats"]).as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
    (bytes(&one["block"]), floats)
}

#[test]
fn blocks_become_the_floats_that_ggml_makes_of_them() {
    for blocks in ALL {
        let (block, expected) = reference(blocks);
        assert_eq!((block.len(), expected.len()), (blocks.bytes(), blocks.elements()), "{blocks:?}");
        let mut unpacked = Vec::new();
        blocks.unpack(&block, &mut unpacked);
        let bits = |floats: &[f32]| floats.iter().map(|float| float.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&unpacked), bits(&expected), "{blocks:?}");
        blocks.unpack(&block[1..], &mut unpacked);
        assert_eq!(unpacked.len(), expected.len(), "no whole block is left alone");
    }
}

#[test]
fn rows_may_begin_within_a_block() {
    for blocks in ALL {
        let (block, one) = reference(blocks);
        let data = [&block[..], &block, &block].concat();
        let all = [&one[..], &one, &one].concat();
        let n = blocks.elements();
        for (start, row, column, rows, columns) in
            [(0, n, 1, 3, n), (3, n, 1, 2, n), (n / 2, 7, 1, 5, n + 2), (1, n, 3, 2, 9), (n, 1, 1, n, 1)]
        {
            let window = Window { start, row, column, rows, columns, head: 0 };
            let expected: Vec<f32> = (0..rows * columns).map(|index| all[window.flat(index)]).collect();
            assert_eq!(floats(Dtype::Blocks(blocks), &data, &window), expected, "{blocks:?} {window:?}");
        }
        let beyond = Window { start: 2 * n, row: n, column: 1, rows: 2, columns: n, head: 0 };
        assert_eq!(floats(Dtype::Blocks(blocks), &data, &beyond), one, "what is not there is left out");
    }
}
