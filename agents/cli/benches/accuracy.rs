//! How far transformers in integers are from the same in floats: `cargo bench -p tensorlink --bench accuracy`.
//!
//! all-MiniLM-L6-v2 with its trained weights over 200 sentences; a GPT-2 and a Llama with untrained weights over 2,000 positions.
//! Untrained logits lie close together, so that the largest changes more easily than a trained model's.

use std::path::Path;

use anyhow::Result;
use tensorlink::folder::ModelFolder;
use tensorlink::quantized::{CALIBRATION, Distance, Prepared, SENTENCES, distance, encode, prepare};
use tensorlink_graph::transformer::random::{self, Dimensions};
use tensorlink_graph::transformer::{Architecture, Quantized};
use tensorlink_tensor::float::{FloatModel, Precision};
use tensorlink_tensor::{Device, TorchEngine, calibrate};

const MINILM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.toolchain/models/all-MiniLM-L6-v2");
const SIZE: Dimensions =
    Dimensions { vocabulary: 4000, width: 256, layers: 4, heads: 4, groups: 2, hidden: 768, context: 128 };

/// Texts of made-up tokens.
fn texts(count: u32, tokens: u32, seed: u32) -> Vec<Vec<u32>> {
    let token = |i: u32| i.wrapping_mul(2_654_435_761).rotate_left(9).wrapping_mul(2_246_822_519) % SIZE.vocabulary;
    (0..count).map(|text| (0..tokens).map(|i| token(seed + text * 1000 + i)).collect()).collect()
}

fn untrained(architecture: Architecture) -> Result<Prepared> {
    let weights = random::weights(&architecture, 1)?;
    let float = FloatModel::new(&architecture, &weights, Device::Cpu, Precision::F32)?;
    let known = texts(8, 100, 7);
    let seen = calibrate(&float, known.iter().map(Vec::as_slice))?;
    let exact = Quantized::new(architecture, &weights, &seen)?;
    Ok(Prepared { exact, float })
}

fn print(name: &str, d: &Distance) {
    println!(
        "{name:<28} {:>7} {:>12.5} {:>12.5} {:>12.1} % {:>10.5} %",
        d.vectors,
        d.cosine_mean,
        d.cosine_min,
        100.0 * d.same_choice,
        100.0 * d.saturated
    );
}

fn main() -> Result<()> {
    // `cargo bench` passes --bench; anything else is a test of the bench itself.
    let bench = std::env::args().any(|argument| argument == "--bench");
    let engine = TorchEngine::new(Device::Cpu)?;
    println!(
        "{:<28} {:>7} {:>12} {:>12} {:>14} {:>12}",
        "model", "vectors", "cosine mean", "least", "same choice", "saturated"
    );
    let folder = ModelFolder::open(Path::new(MINILM))?;
    let mut sentences = encode(&folder, SENTENCES)?;
    let mut made_up = texts(20, 100, 99);
    if !bench {
        sentences.truncate(4);
        made_up.truncate(1);
    }
    let minilm = prepare(&folder, CALIBRATION, Device::Cpu)?;
    print("all-MiniLM-L6-v2, trained", &distance(&minilm, engine.clone(), &sentences)?);
    for (name, architecture) in [("GPT-2, untrained", random::gpt2(SIZE)), ("Llama, untrained", random::llama(SIZE))] {
        print(name, &distance(&untrained(architecture)?, engine.clone(), &made_up)?);
    }
    Ok(())
}
