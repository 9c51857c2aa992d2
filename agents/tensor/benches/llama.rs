//! A whole decoder, exact against libtorch in 32-bit and bfloat16 floats: `cargo bench -p tensorlink-tensor --bench llama`.
//!
//! Llama-shaped, 207 million untrained weights (12 layers of 1024, MLP 2816, 16 query and 8 key heads, vocabulary 32,000), one thread.
//! libtorch multiplies 32-bit floats by MKL, which is slow on AMD processors; oneDNN is what it has beside it.
//! Each pass takes a text of so many tokens from nothing and gives the logits of every token. `-- N` takes another number of
//! tokens. Then one more token after so many, keys and values being cached on both sides, and eight texts at once
//! against one; `-- decode` does only that.

#[path = "common/time.rs"]
mod time;

use tensorlink_graph::transformer::random::{self, Dimensions};
use tensorlink_graph::transformer::{CachedRunner, Quantized, Session, StageRunner, Turn, tokens};
use tensorlink_num::Tensor;
use tensorlink_tensor::float::{FloatModel, Precision, Products};
use tensorlink_tensor::{Device, TorchEngine, calibrate};
use tensorlink_types::TensorRoot;
use time::{micros, race};

const SIZE: Dimensions =
    Dimensions { vocabulary: 32_000, width: 1024, layers: 12, heads: 16, groups: 8, hidden: 2816, context: 1024 };
/// `cargo test --benches` runs this once, on a few tokens.
const SMALL: Dimensions =
    Dimensions { vocabulary: 300, width: 64, layers: 2, heads: 4, groups: 2, hidden: 96, context: 64 };

fn text(count: u32, vocabulary: u32) -> Vec<u32> {
    (0..count).map(|i| i.wrapping_mul(2_654_435_761).rotate_left(7) % vocabulary).collect()
}

fn main() {
    let bench = std::env::args().any(|argument| argument == "--bench");
    tch::set_num_threads(1);
    let engine = TorchEngine::new(Device::Cpu).expect("an engine on the host");
    let size = if bench { SIZE } else { SMALL };
    let architecture = random::llama(size);
    let weights = random::weights(&architecture, 1).expect("weights");
    let float = FloatModel::new(&architecture, &weights, Device::Cpu, Precision::F32).expect("a model");
    let known = text(48, size.vocabulary);
    let seen = calibrate(&float, [known.as_slice()]).expect("calibration");
    let one_dnn = FloatModel::new(&architecture, &weights, Device::Cpu, Precision::F32).expect("a model");
    let one_dnn = one_dnn.with_products(Products::OneDnn);
    let bf16 = FloatModel::new(&architecture, &weights, Device::Cpu, Precision::Bf16).expect("a model");
    let model = Quantized::new(architecture, &weights, &seen).expect("integers");
    println!("{} weights, {} MB in integers", weights.count(), model.bytes() / 1_000_000);
    drop(weights);
    let (plan, constants) = model.stage(0..size.layers, |_| TensorRoot::default()).expect("a stage");
    drop(model);
    let runner = StageRunner::<TorchEngine>::new(engine, plan, &constants).expect("a runner");
    drop(constants);
    let counts = std::env::args().filter_map(|argument| argument.parse().ok()).collect::<Vec<u32>>();
    let decode = std::env::args().any(|argument| argument == "decode");
    let counts = match (counts.is_empty(), bench) {
        (false, _) => counts,
        (true, _) if decode => vec![],
        (true, true) => vec![1, 16, 128, 512],
        (true, false) => vec![5],
    };
    println!(
        "{:>8} {:>10} {:>14} {:>14} {:>14}   ms, and how much faster exact is",
        "tokens", "exact", "f32", "f32 oneDNN", "bf16"
    );
    for count in counts {
        let ids = text(count, size.vocabulary);
        let input = tokens(&ids).expect("a text");
        let rounds = if bench { (2000 / (count as usize + 20)).clamp(5, 31) } else { 1 };
        let mut ours = 0.0;
        let peers = [&float, &one_dnn, &bf16].map(|peer| {
            let exact = || runner.run(&input).expect("logits");
            let (exact, theirs) = race(rounds, exact, || peer.forward(&ids, None).expect("logits"));
            ours = micros(exact) / 1e3;
            let theirs = micros(theirs) / 1e3;
            format!("{theirs:>8.1} {:>4.2}x", theirs / ours)
        });
        println!("{count:>8} {ours:>10.1} {}", peers.join(" "));
    }
    let mut runner = CachedRunner::sharing(runner).expect("a decoder");
    println!("{} bytes of keys and values for a token", runner.bytes_per_token());
    println!(
        "{:>8} {:>10} {:>14} {:>14} {:>14} {:>14}   ms for the next token, and how much faster exact is; 8 texts at once",
        "after", "exact", "f32", "f32 oneDNN", "bf16", "batch 8"
    );
    for past in if bench { vec![128, 512] } else { vec![5] } {
        let ids = text(past, size.vocabulary);
        let rounds = if bench { 15 } else { 1 };
        let mut sessions = texts(&mut runner, &ids);
        let mut ours = 0.0;
        let peers = [&float, &one_dnn, &bf16].map(|peer| {
            let mut cache = peer.cache(past as usize + 1).expect("a cache");
            peer.prefill(&ids, &mut cache).expect("a prompt");
            let theirs = || {
                cache.truncate(past as usize);
                peer.decode(7, &mut cache).expect("logits")
            };
            let (exact, theirs) = race(rounds, || next(&mut runner, &mut sessions[..1], past), theirs);
            ours = micros(exact) / 1e3;
            let theirs = micros(theirs) / 1e3;
            format!("{theirs:>8.1} {:>4.2}x", theirs / ours)
        });
        let mut alone = texts(&mut runner, &ids);
        let runner = std::cell::RefCell::new(&mut runner);
        let (all, one) = race(
            rounds,
            || next(&mut runner.borrow_mut(), &mut sessions, past),
            || next(&mut runner.borrow_mut(), &mut alone[..1], past),
        );
        let (all, one) = (micros(all) / 1e3, micros(one) / 1e3);
        println!("{past:>8} {ours:>10.1} {} {all:>8.1} {:>4.2}x", peers.join(" "), 8.0 * one / all);
    }
}

/// Eight texts that begin alike.
fn texts(runner: &mut CachedRunner<TorchEngine>, ids: &[u32]) -> Vec<Session<TorchEngine>> {
    let rows = tokens(ids).expect("a text");
    let text = |_| {
        let mut session = runner.session().expect("memory for a text");
        runner.advance(&mut [Turn { session: &mut session, rows: &rows, controls: None }]).expect("a prompt");
        session
    };
    (0..8).map(text).collect()
}

/// One more token of each text, after so many.
fn next(runner: &mut CachedRunner<TorchEngine>, sessions: &mut [Session<TorchEngine>], past: u32) -> Vec<Tensor> {
    let rows = tokens(&[7]).expect("a token");
    let turn = |session| Turn { session, rows: &rows, controls: None };
    sessions.iter_mut().for_each(|session| session.cut_back(past).expect("a longer text"));
    runner.advance(&mut sessions.iter_mut().map(turn).collect::<Vec<_>>()).expect("logits")
}
