//! Exact operators of transformers against libtorch's counterparts:
//! `cargo bench -p tensorlink-tensor --bench transformer`.
//!
//! Products are of 8-bit activations and weights with a scale for each row and column; attention is of 12-bit queries,
//! keys and values and 16-bit probabilities.

mod common;

use std::time::Duration;

use common::{engine, execute, float, micros, noise, operator, race, ty};
use tch::Kind;
use tensorlink_num::Tensor;
use tensorlink_num::tables::exp2_table;
use tensorlink_program::Engine;
use tensorlink_tensor::{TorchEngine, TorchTensor};
use tensorlink_types::{Opcode, TensorType};

/// Products (M, K, N): one token, a few, and prompts.
const PRODUCTS: [(u32, u32, u32); 7] = [
    (1, 1024, 1024),
    (1, 1024, 2816),
    (1, 1024, 32000),
    (64, 1024, 1024),
    (128, 1024, 2816),
    (512, 1024, 1024),
    (512, 2816, 1024),
];

/// Attention: tokens, heads, elements of a head.
const TOKENS: u32 = 512;
const HEADS: u32 = 16;
const DEPTH: u32 = 64;
/// Elements of a token.
const WIDTH: u32 = HEADS * DEPTH;

fn typed(bits: u8, exponent: i16, dims: &[u32]) -> TensorType {
    TensorType::new(bits, exponent, dims).expect("a valid type")
}

/// Races what the command line's filter names, everything without one.
fn report(name: &str, run: impl FnOnce() -> (Duration, Duration)) {
    let filters: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
        return;
    }
    let (exact, theirs) = run();
    let ratio = theirs.as_secs_f64() / exact.as_secs_f64();
    println!("{name:>44} {:>10.1} {:>10.1} {ratio:>7.2}", micros(exact), micros(theirs));
}

fn main() {
    let engine = engine();
    println!("{}", engine.describe());
    println!("{:>44} {:>10} {:>10} {:>7}", "operator", "exact µs", "theirs µs", "faster");
    for (m, k, n) in PRODUCTS {
        let (a, b) = (noise(&engine, 8, &[m, k], 1), noise(&engine, 8, &[n, k], 2));
        let (r, c) = (noise(&engine, 16, &[m], 3), noise(&engine, 16, &[n], 4));
        let operands = [&a, &b, &r, &c];
        let product = operator(Opcode::ScaledMatMul, &operands, &[0, 38], typed(16, -38, &[m, n]));
        let (x, w) = (float(&[m, k]), float(&[n, k]));
        let linear = |x: &tch::Tensor, w: &tch::Tensor| x.f_linear(w, None::<&tch::Tensor>).expect("a product");
        let exact = || execute(&engine, &product, &operands);
        report(&format!("scaled product {m},{k},{n} | f32"), || race(exact, || linear(&x, &w)));
        let (x, w) = (x.to_kind(Kind::BFloat16), w.to_kind(Kind::BFloat16));
        report(&format!("scaled product {m},{k},{n} | bf16"), || race(exact, || linear(&x, &w)));
    }
    attention(&engine);
    rows(&engine);
}

/// Every operator of a causal attention, then all of them.
fn attention(engine: &TorchEngine) {
    for tokens in [TOKENS, 1] {
        let (q, k) = (noise(engine, 12, &[tokens, WIDTH], 5), noise(engine, 12, &[TOKENS, WIDTH], 6));
        let v = noise(engine, 12, &[WIDTH, TOKENS], 7);
        let attention = Attention::new(engine, tokens);
        let heads = |rows: u32| {
            float(&[rows, HEADS, DEPTH]).transpose(0, 1).reshape([1, HEADS.into(), rows.into(), DEPTH.into()])
        };
        let (fq, fk, fv) = (heads(tokens), heads(TOKENS), heads(TOKENS));
        let name = |what: &str| format!("{what}, {tokens} of {TOKENS} tokens");
        let scores = attention.scores(engine, &q, &k);
        let product = || fq.f_matmul(&fk.transpose(2, 3)).expect("scores");
        report(&name("scores | matmul"), || race(|| attention.scores(engine, &q, &k), product));
        let float_scores = product();
        let softmax = || float_scores.softmax(-1, Kind::Float);
        report(&name("softmax | softmax"), || race(|| attention.softmax(engine, &scores), softmax));
        let probabilities = attention.softmax(engine, &scores);
        let float_probabilities = softmax();
        let mix = || float_probabilities.f_matmul(&fv).expect("a mix");
        report(&name("mix | matmul"), || race(|| attention.mix(engine, &probabilities, &v), mix));
        let ours = || {
            let scores = attention.scores(engine, &q, &k);
            attention.mix(engine, &attention.softmax(engine, &scores), &v)
        };
        let none = None::<&tch::Tensor>;
        let theirs = || tch::Tensor::scaled_dot_product_attention(&fq, &fk, &fv, none, 0.0, tokens > 1, None, false);
        report(&name("attention | sdpa"), || race(ours, theirs));
    }
}

/// Operators of one attention.
struct Attention {
    tokens: u32,
    causal: i64,
    table: TorchTensor,
}

impl Attention {
    fn new(engine: &TorchEngine, tokens: u32) -> Self {
        let table = engine.import(&exp2_table().expect("the table")).expect("room for it");
        Self { tokens, causal: i64::from(tokens > 1), table }
    }

    fn scores(&self, engine: &TorchEngine, q: &TorchTensor, k: &TorchTensor) -> TorchTensor {
        let output = typed(16, 8, &[HEADS, self.tokens, TOKENS]);
        // The operands' exponents are 0, the scores are taken to have 8 places.
        let output = output.with_precision(16, -10).expect("a valid type");
        execute(engine, &operator(Opcode::HeadScores, &[q, k], &[HEADS.into(), 10], output), &[q, k])
    }

    fn softmax(&self, engine: &TorchEngine, scores: &TorchTensor) -> TorchTensor {
        let (dims, rows) = ([HEADS, self.tokens, TOKENS], [HEADS, self.tokens]);
        let max = operator(Opcode::RowMax, &[scores], &[self.causal], typed(16, -10, &rows));
        let max = execute(engine, &max, &[scores]);
        let operands = [scores, &max, &self.table];
        let exp = execute(
            engine,
            &operator(Opcode::ExpNeg, &operands, &[23637, 6, self.causal], typed(26, 24, &dims)),
            &operands,
        );
        let sum = execute(engine, &operator(Opcode::RowSum, &[&exp], &[8], typed(32, 16, &rows)), &[&exp]);
        let normal = operator(Opcode::Normalize, &[&exp, &sum], &[7], typed(16, 15, &dims));
        execute(engine, &normal, &[&exp, &sum])
    }

    fn mix(&self, engine: &TorchEngine, p: &TorchTensor, v: &TorchTensor) -> TorchTensor {
        let output = typed(16, 0, &[self.tokens, WIDTH]);
        execute(engine, &operator(Opcode::HeadMix, &[p, v], &[HEADS.into(), 15], output), &[p, v])
    }
}

/// Operators on rows of activations.
fn rows(engine: &TorchEngine) {
    for tokens in [TOKENS, 1] {
        let dims = [tokens, WIDTH];
        let name = |what: &str| format!("{what}, {tokens} tokens");
        let (x, y, f) = (noise(engine, 16, &dims, 8), noise(engine, 16, &dims, 9), float(&dims));
        let (gain, bias) = (noise(engine, 16, &[WIDTH], 10), noise(engine, 16, &[WIDTH], 11));
        let (ones, zeros) = (float(&[WIDTH]), float(&[WIDTH]));
        let norm = operator(Opcode::Norm, &[&x, &gain, &bias], &[1, 1 << 20, 20, 20], ty(16, &dims));
        let layer_norm = || f.layer_norm([i64::from(WIDTH)], Some(&ones), Some(&zeros), 1e-5, false);
        report(&name("norm | layer_norm"), || race(|| execute(engine, &norm, &[&x, &gain, &bias]), layer_norm));
        let table = angles(engine, tokens);
        let rope = operator(Opcode::Rope, &[&x, &table], &[HEADS.into(), 14], ty(16, &dims));
        report(&name("rope | mul"), || race(|| execute(engine, &rope, &[&x, &table]), || f.f_mul(&f)));
        let quantize = || {
            let max = operator(Opcode::RowAbsMax, &[&x], &[], ty(16, &[tokens]));
            let max = execute(engine, &max, &[&x]);
            let normal = operator(Opcode::Normalize, &[&x, &max], &[7], typed(8, 7, &dims));
            execute(engine, &normal, &[&x, &max])
        };
        report(&name("quantise 16 to 8 | mul"), || race(quantize, || f.f_mul(&f)));
        let combine = operator(Opcode::Combine, &[&x, &y], &[64, 13, 6], ty(16, &dims));
        report(&name("combine 16, 16 | add"), || race(|| execute(engine, &combine, &[&x, &y]), || f.f_add(&f)));
        let mul = operator(Opcode::Mul, &[&x, &y], &[14], typed(16, -14, &dims));
        report(&name("mul 16, 16 | mul"), || race(|| execute(engine, &mul, &[&x, &y]), || f.f_mul(&f)));
        let wide = [tokens, 2816];
        let turn = operator(Opcode::Transpose, &[&x], &[], ty(16, &[WIDTH, tokens]));
        let copy = || f.tr().contiguous();
        report(&name("transpose 16 | contiguous"), || race(|| execute(engine, &turn, &[&x]), copy));
        let (x, f) = (noise(engine, 16, &wide, 12), float(&wide));
        let table = noise(engine, 16, &[4097], 13);
        let lookup = operator(Opcode::Lookup, &[&x, &table], &[0, -(1 << 15), 4, 4], ty(16, &wide));
        report(&name("lookup 16 of 2816 | silu"), || race(|| execute(engine, &lookup, &[&x, &table]), || f.silu()));
    }
}

/// A table of cosines and sines of 14 places.
fn angles(engine: &TorchEngine, tokens: u32) -> TorchTensor {
    let ty = typed(16, 14, &[tokens, DEPTH]);
    let half = DEPTH / 2;
    let angle = |t: u32, i: u32| f64::from(t) * 10000f64.powf(-2.0 * f64::from(i % half) / f64::from(DEPTH));
    let entry = |t: u32, i: u32| if i < half { angle(t, i).cos() } else { angle(t, i).sin() };
    let values = (0..tokens).flat_map(|t| (0..DEPTH).map(move |i| (entry(t, i) * 16384.0).round() as i64));
    let values: Vec<i64> = values.collect();
    engine.import(&Tensor::from_wide(ty, &values).expect("mantissas in range")).expect("room for it")
}
