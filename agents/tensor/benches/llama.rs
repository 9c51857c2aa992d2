//! A whole decoder, exact against libtorch in 32-bit and bfloat16 floats: `cargo bench -p tensorlink-tensor --bench llama`.
//!
//! Llama-shaped, 207 million untrained weights (12 layers of 1024, MLP 2816, 16 query and 8 key heads, vocabulary 32,000), one thread.
//! libtorch multiplies 32-bit floats by MKL, which is slow on AMD processors; oneDNN is what it has beside it.
//! Each pass takes a text of so many tokens from nothing and gives the logits of every token. `-- N` takes another number of
//! tokens. Then one more token after so many, keys and values being cached on both sides, and eight texts at once
//! against one; `-- decode` does only that. Where the environment variable `LLAMACPP_PYTHON` names a Python that has llama-cpp-python and
//! gguf, llama.cpp is raced as well, its weights in Q8_0; both then give what follows the last token only, ours with the choice of it.

#[path = "common/llamacpp.rs"]
mod llamacpp;
#[path = "common/time.rs"]
mod time;

use std::time::Duration;

use llamacpp::LlamaCpp;
use tensorlink_graph::transformer::choice::{Choice, controls};
use tensorlink_graph::transformer::plan::Head;
use tensorlink_graph::transformer::random::{self, Dimensions};
use tensorlink_graph::transformer::{CachedRunner, Quantized, Session, StageRunner, Turn, tokens};
use tensorlink_num::Tensor;
use tensorlink_tensor::float::{FloatModel, Precision, Products};
use tensorlink_tensor::{Device, TorchEngine, calibrate};
use tensorlink_types::TensorRoot;
use time::{micros, once, race};

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
    if let Some(peer) = LlamaCpp::start(size) {
        against_llamacpp(peer, engine.clone(), &model, if bench { 11 } else { 1 });
    }
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

/// Reading texts, and one more token after them, in turns with llama.cpp.
fn against_llamacpp(mut peer: LlamaCpp, engine: TorchEngine, model: &Quantized, rounds: usize) {
    let size = model.architecture();
    let stage = model.stage_with(0..size.layers, Head::Choice, |_| TensorRoot::default());
    let (plan, constants) = stage.expect("a stage that chooses");
    let mut runner = CachedRunner::<TorchEngine>::new(engine, plan, &constants).expect("a decoder");
    drop(constants);
    println!("{:>14} {:>10} {:>14}   ms, and how much faster exact is", "llama.cpp Q8_0", "exact", "llama.cpp");
    for count in [128, 512].map(|count| count.min(size.context - 2)) {
        let ids = text(count, size.vocabulary);
        let mut session = runner.session().expect("memory for a text");
        let (mut ours, mut theirs) = (vec![], vec![]);
        for _ in 0..=rounds {
            session.cut_back(0).expect("a text");
            ours.push(once(|| choose(&mut runner, &mut session, &ids)));
            theirs.push(peer.micros("prefill", count));
        }
        report("prefill", count, &mut ours, &mut theirs);
        let (mut ours, mut theirs) = (vec![], vec![]);
        // Several at a time: a token of either finds the processor's caches as its own last one left them.
        for _ in 0..=rounds {
            for _ in 0..4 {
                session.cut_back(count).expect("a longer text");
                ours.push(once(|| choose(&mut runner, &mut session, &[7])));
            }
            theirs.extend((0..4).map(|_| peer.micros("decode", count)));
        }
        report("decode", count, &mut ours, &mut theirs);
    }
}

/// The likeliest token after some more.
fn choose(runner: &mut CachedRunner<TorchEngine>, session: &mut Session<TorchEngine>, ids: &[u32]) -> Vec<Tensor> {
    let rows = tokens(ids).expect("tokens");
    let mut choices = vec![None; ids.len()];
    choices[ids.len() - 1] = Some(Choice::default());
    let controls = controls(session.position(), &choices).expect("controls");
    runner.advance(&mut [Turn { session, rows: &rows, controls: Some(&controls) }]).expect("a token")
}

/// Medians, the first round of both left out.
fn report(what: &str, count: u32, ours: &mut [Duration], theirs: &mut [f64]) {
    let (ours, theirs) = (&mut ours[1..], &mut theirs[1..]);
    ours.sort();
    theirs.sort_by(f64::total_cmp);
    let (ours, theirs) = (micros(ours[ours.len() / 2]) / 1e3, theirs[theirs.len() / 2] / 1e3);
    println!("{:>14} {ours:>10.1} {theirs:>8.1} {:>4.2}x", format!("{what} {count}"), theirs / ours);
}
