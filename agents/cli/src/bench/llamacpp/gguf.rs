//! A decoder in Llama's shape as a GGUF file with weights in Q8_0, for llama.cpp: blocks of 32 weights with a 16-bit
//! scale (ggml's `quantize_row_q8_0_ref`). It is asked by the numbers of tokens: their words are made up.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use half::f16;
use tensorlink_graph::transformer::{
    Activation, Architecture, Matrix, Norm, Output, Placement, Positions, Rotary, Scaling, Weights,
};

/// Weights of a block.
const BLOCK: usize = 32;
/// Tensors begin at multiples of so many bytes.
const ALIGNMENT: usize = 32;
/// Types of values and of tensors, and the kind of file, as the format numbers them.
const U32: u32 = 4;
const F32: u32 = 6;
const I32: u32 = 5;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
const TENSOR_F32: u32 = 0;
const TENSOR_Q8_0: u32 = 8;
const MOSTLY_Q8_0: u32 = 7;

/// A tensor as the file has it.
struct Tensor {
    name: String,
    /// Innermost first.
    dims: Vec<u32>,
    kind: u32,
    bytes: Vec<u8>,
}

/// Writes the file.
///
/// # Errors
/// Another shape than Llama's; rows that are no whole blocks; the disk's.
pub(super) fn write(out: &mut impl Write, a: &Architecture, weights: &Weights) -> Result<()> {
    let rotary = llama(a)?;
    let tensors = tensors(a, weights)?;
    let mut head = Vec::new();
    head.extend(b"GGUF");
    head.extend(3u32.to_le_bytes());
    head.extend((tensors.len() as u64).to_le_bytes());
    let numbers = [
        ("general.file_type", MOSTLY_Q8_0),
        ("llama.context_length", a.context),
        ("llama.embedding_length", a.width),
        ("llama.block_count", a.layers),
        ("llama.feed_forward_length", a.hidden),
        ("llama.attention.head_count", a.heads),
        ("llama.attention.head_count_kv", a.kv_heads),
        ("llama.rope.dimension_count", rotary.width),
        ("llama.vocab_size", a.vocabulary),
    ];
    let reals = [("llama.rope.freq_base", rotary.theta), ("llama.attention.layer_norm_rms_epsilon", a.epsilon)];
    let texts = [("general.architecture", "llama"), ("tokenizer.ggml.model", "llama")];
    head.extend(((numbers.len() + reals.len() + texts.len() + VOCABULARY_FIELDS) as u64).to_le_bytes());
    for (key, value) in texts {
        field(&mut head, key, TEXT);
        text(&mut head, value);
    }
    for (key, value) in numbers {
        field(&mut head, key, U32);
        head.extend(value.to_le_bytes());
    }
    for (key, value) in reals {
        field(&mut head, key, F32);
        head.extend((value as f32).to_le_bytes());
    }
    vocabulary(&mut head, a.vocabulary)?;
    let mut offset = 0usize;
    for tensor in &tensors {
        text(&mut head, &tensor.name);
        head.extend((tensor.dims.len() as u32).to_le_bytes());
        tensor.dims.iter().for_each(|dim| head.extend(u64::from(*dim).to_le_bytes()));
        head.extend(tensor.kind.to_le_bytes());
        head.extend((offset as u64).to_le_bytes());
        offset += tensor.bytes.len().next_multiple_of(ALIGNMENT);
    }
    padded(out, &head)?;
    tensors.iter().try_for_each(|tensor| padded(out, &tensor.bytes))
}

/// Fields that [`vocabulary`] adds.
const VOCABULARY_FIELDS: usize = 3;

/// A vocabulary of bytes and made-up words, without which llama.cpp opens no file.
fn vocabulary(head: &mut Vec<u8>, size: u32) -> Result<()> {
    // Kinds of tokens: one that stands for unknown words, controls, bytes, words.
    let special = [("<unk>", 2), ("<s>", 3), ("</s>", 3)].map(|(token, kind)| (token.to_owned(), kind));
    let bytes = (0..=255u8).map(|byte| (format!("<0x{byte:02X}>"), 6));
    let words = (0..).map(|word| (format!("w{word}"), 1));
    let tokens: Vec<(String, i32)> = special.into_iter().chain(bytes).chain(words).take(size as usize).collect();
    ensure!(tokens.len() > 259, "a vocabulary of {size} has no room for bytes");
    let array = |head: &mut Vec<u8>, key: &str, kind: u32| {
        field(head, key, ARRAY);
        head.extend(kind.to_le_bytes());
        head.extend(u64::from(size).to_le_bytes());
    };
    array(head, "tokenizer.ggml.tokens", TEXT);
    tokens.iter().for_each(|(token, _)| text(head, token));
    array(head, "tokenizer.ggml.scores", F32);
    tokens.iter().for_each(|_| head.extend(0f32.to_le_bytes()));
    array(head, "tokenizer.ggml.token_type", I32);
    tokens.iter().for_each(|(_, kind)| head.extend(kind.to_le_bytes()));
    Ok(())
}

/// Its rotary positions, if it is in the shape that llama.cpp calls `llama`.
fn llama(a: &Architecture) -> Result<&Rotary> {
    let Positions::Rotary(rotary) = &a.positions else { anyhow::bail!("its positions are learned") };
    let biases = a.attention_bias || a.output_bias || a.mlp_bias || a.query_key_norm;
    let same = a.norm == Norm::Rms && a.placement == Placement::Before && a.activation == Activation::Silu && a.gated;
    ensure!(
        same && !biases && rotary.scaling == Scaling::None,
        "it is not in plain Llama's shape: choose another --model"
    );
    Ok(rotary)
}

fn tensors(a: &Architecture, weights: &Weights) -> Result<Vec<Tensor>> {
    let mut tensors = vec![
        matrix(weights.get("embedding.tokens")?, "token_embd", None)?,
        vector(weights.get("final.norm.gain")?, "output_norm"),
    ];
    if a.output == (Output::Logits { tied: false }) {
        tensors.push(matrix(weights.get("head.weight")?, "output", None)?);
    }
    for layer in 0..a.layers {
        let norms = [("attention.norm", "attn_norm"), ("mlp.norm", "ffn_norm")];
        for (ours, theirs) in norms {
            let gain = weights.get(&format!("layers.{layer}.{ours}.gain"))?;
            tensors.push(vector(gain, &format!("blk.{layer}.{theirs}")));
        }
        let projections = [
            ("attention.query", "attn_q", Some(a.heads)),
            ("attention.key", "attn_k", Some(a.kv_heads)),
            ("attention.value", "attn_v", None),
            ("attention.output", "attn_output", None),
            ("mlp.gate", "ffn_gate", None),
            ("mlp.up", "ffn_up", None),
            ("mlp.down", "ffn_down", None),
        ];
        for (ours, theirs, heads) in projections {
            let weights = weights.get(&format!("layers.{layer}.{ours}.weight"))?;
            tensors.push(matrix(weights, &format!("blk.{layer}.{theirs}"), heads)?);
        }
    }
    Ok(tensors)
}

fn vector(gain: &Matrix, name: &str) -> Tensor {
    let bytes = gain.values().iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor { name: format!("{name}.weight"), dims: vec![gain.columns()], kind: TENSOR_F32, bytes }
}

/// A matrix in Q8_0. Of rotated `heads` the two halves are interleaved, as llama.cpp rotates neighbours.
fn matrix(matrix: &Matrix, name: &str, heads: Option<u32>) -> Result<Tensor> {
    let (rows, columns) = (matrix.rows() as usize, matrix.columns() as usize);
    ensure!(columns.is_multiple_of(BLOCK), "rows of {columns} are no whole blocks of {BLOCK}");
    let half = heads.map_or(0, |heads| rows / heads as usize / 2);
    let place = |row: usize| {
        if half == 0 {
            return row;
        }
        let (head, within) = (row / (2 * half), row % (2 * half));
        head * 2 * half + (within % 2) * half + within / 2
    };
    let mut bytes = Vec::with_capacity(rows * columns / BLOCK * (BLOCK + 2));
    for row in (0..rows).map(place) {
        let values = matrix.values().get(row * columns..(row + 1) * columns).context("a matrix without its rows")?;
        values.chunks(BLOCK).for_each(|block| q8_0(&mut bytes, block));
    }
    let dims = vec![matrix.columns(), matrix.rows()];
    Ok(Tensor { name: format!("{name}.weight"), dims, kind: TENSOR_Q8_0, bytes })
}

fn q8_0(out: &mut Vec<u8>, block: &[f32]) {
    let scale = block.iter().fold(0.0f32, |most, value| most.max(value.abs())) / 127.0;
    let by = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    out.extend(f16::from_f32(scale).to_le_bytes());
    // SAFETY of the cast: within ±127.
    out.extend(block.iter().map(|value| (value * by).round() as i8 as u8));
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn field(out: &mut Vec<u8>, key: &str, kind: u32) {
    text(out, key);
    out.extend(kind.to_le_bytes());
}

fn padded(out: &mut impl Write, bytes: &[u8]) -> Result<()> {
    out.write_all(bytes)?;
    Ok(out.write_all(&vec![0; bytes.len().next_multiple_of(ALIGNMENT) - bytes.len()])?)
}

#[cfg(test)]
mod tests {
    use tensorlink_graph::transformer::Checkpoint;
    use tensorlink_graph::transformer::import::File;
    use tensorlink_graph::transformer::random::{self, Dimensions};

    use super::*;

    const SIZE: Dimensions =
        Dimensions { vocabulary: 300, width: 64, layers: 2, heads: 4, kv_heads: 2, hidden: 96, context: 32 };

    #[test]
    fn what_is_written_is_read_again_but_for_the_rounding() {
        let architecture = random::llama(SIZE);
        let weights = random::weights(&architecture, 1).unwrap();
        let mut file = Vec::new();
        write(&mut file, &architecture, &weights).unwrap();
        let files = [File { name: "model.gguf", bytes: &file }];
        let read = Checkpoint::open(&architecture, &files, None).unwrap().weights().unwrap();
        for (name, matrix) in weights.iter() {
            let other = read.get(name).unwrap();
            assert_eq!((matrix.rows(), matrix.columns()), (other.rows(), other.columns()), "{name}");
            let most = matrix.values().iter().fold(0.0f32, |most, value| most.max(value.abs()));
            let far = |(a, b): (&f32, &f32)| (a - b).abs() > most / 100.0;
            assert!(!matrix.values().iter().zip(other.values()).any(far), "{name}");
        }
    }
}
