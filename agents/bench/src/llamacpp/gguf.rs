//! A decoder in Llama's shape as a GGUF file with weights in Q8_0, for llama.cpp: blocks of 32 weights with a 16-bit
//! scale (ggml's `quantize_row_q8_0_ref`). It is asked by the numbers of tokens: their words are made up.

use anyhow::{Context, Result, ensure};
use half::f16;
use tensorlink_model::gguf::file::{File, Tensor, Value};
use tensorlink_model::{
    Activation, Architecture, Matrix, Norm, Output, Placement, Positions, Rotary, Scaling, Weights,
};

/// Weights of a block.
const BLOCK: usize = 32;
/// Types of tensors, and the kind of file, as the format numbers them.
const TENSOR_Q8_0: u32 = 8;
const MOSTLY_Q8_0: u32 = 7;

/// The file.
///
/// # Errors
/// Another shape than Llama's; rows that are no whole blocks.
pub(super) fn file(a: &Architecture, weights: &Weights) -> Result<File> {
    let rotary = llama(a)?;
    let mut file = File { version: 3, values: Vec::new(), tensors: tensors(a, weights)? };
    for (key, value) in [
        ("general.architecture", Value::from("llama")),
        ("general.file_type", Value::U32(MOSTLY_Q8_0)),
        ("llama.context_length", Value::U32(a.context)),
        ("llama.embedding_length", Value::U32(a.width)),
        ("llama.block_count", Value::U32(a.layers)),
        ("llama.feed_forward_length", Value::U32(a.hidden)),
        ("llama.attention.head_count", Value::U32(a.heads)),
        ("llama.attention.head_count_kv", Value::U32(a.kv_heads)),
        ("llama.rope.dimension_count", Value::U32(rotary.width)),
        ("llama.vocab_size", Value::U32(a.vocabulary)),
        ("llama.rope.freq_base", Value::F32(rotary.theta as f32)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(a.epsilon as f32)),
        ("tokenizer.ggml.model", Value::from("llama")),
    ] {
        file.set(key, value);
    }
    vocabulary(&mut file, a.vocabulary)?;
    Ok(file)
}

/// A vocabulary of bytes and made-up words, without which llama.cpp opens no file.
fn vocabulary(file: &mut File, size: u32) -> Result<()> {
    // Kinds of tokens: one that stands for unknown words, controls, bytes, words.
    let special = [("<unk>", 2), ("<s>", 3), ("</s>", 3)].map(|(token, kind)| (token.to_owned(), kind));
    let bytes = (0..=255u8).map(|byte| (format!("<0x{byte:02X}>"), 6));
    let words = (0..).map(|word| (format!("w{word}"), 1));
    let (tokens, kinds): (Vec<_>, Vec<_>) = special.into_iter().chain(bytes).chain(words).take(size as usize).unzip();
    ensure!(tokens.len() > 259, "a vocabulary of {size} has no room for bytes");
    file.set("tokenizer.ggml.scores", Value::F32s(vec![0.0; tokens.len()]));
    file.set("tokenizer.ggml.tokens", Value::Texts(tokens));
    file.set("tokenizer.ggml.token_type", Value::I32s(kinds));
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
    Tensor::floats(&format!("{name}.weight"), &[gain.columns() as usize], gain.values())
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
    let shape = vec![matrix.rows().into(), matrix.columns().into()];
    Ok(Tensor { name: format!("{name}.weight"), shape, kind: TENSOR_Q8_0, bytes })
}

fn q8_0(out: &mut Vec<u8>, block: &[f32]) {
    let scale = block.iter().fold(0.0f32, |most, value| most.max(value.abs())) / 127.0;
    let by = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    out.extend(f16::from_f32(scale).to_le_bytes());
    // SAFETY of the cast: within ±127.
    out.extend(block.iter().map(|value| (value * by).round() as i8 as u8));
}

#[cfg(test)]
mod tests {
    use tensorlink_model::Checkpoint;
    use tensorlink_model::import;
    use tensorlink_model::random::{self, Dimensions};

    use super::*;

    const SIZE: Dimensions =
        Dimensions { vocabulary: 300, width: 64, layers: 2, heads: 4, kv_heads: 2, hidden: 96, context: 32 };

    #[test]
    fn what_is_written_is_read_again_but_for_the_rounding() {
        let architecture = random::llama(SIZE);
        let weights = random::weights(&architecture, 1).unwrap();
        let file = file(&architecture, &weights).unwrap().bytes();
        let files = [import::File::new("model.gguf", &file)];
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
