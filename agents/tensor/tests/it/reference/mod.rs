//! Transformers as loops over doubles, from the definitions.

use std::collections::BTreeMap;
use std::f64::consts::{FRAC_2_SQRT_PI, SQRT_2, TAU};

use tensorlink_model::{
    Activation, Architecture, Curve, Norm, Output, Placement, Pooling, Positions, Rotary, Scaling, Weights,
};

type Rows = Vec<Vec<f64>>;

/// A model that notes the largest magnitude at every site.
pub(crate) struct Reference<'a> {
    a: &'a Architecture,
    weights: &'a Weights,
    pub(crate) sites: BTreeMap<String, f64>,
}

impl<'a> Reference<'a> {
    pub(crate) fn new(a: &'a Architecture, weights: &'a Weights) -> Self {
        Self { a, weights, sites: BTreeMap::new() }
    }

    /// Embedding, the logits of all tokens, or those of the text's classes.
    pub(crate) fn run(&mut self, ids: &[u32]) -> Vec<f64> {
        let words = self.a.vocabulary as usize;
        let mut x: Rows = ids.iter().map(|id| self.row("embedding.tokens", *id as usize % words)).collect();
        let scale = self.a.embedding_scale.unwrap_or(1.0);
        for (t, x) in x.iter_mut().enumerate() {
            x.iter_mut().for_each(|x| *x *= scale);
            if let Positions::Learned { first } = self.a.positions {
                add(x, &self.row("embedding.positions", first as usize + t));
            }
            if self.a.token_types {
                add(x, &self.row("embedding.type", ids[t] as usize / words));
            }
        }
        self.see("embedding", &x);
        if self.a.placement == Placement::After {
            x = self.norm("embedding.norm", &x);
        }
        for layer in 0..self.a.layers {
            for (part, norm) in [("attention", "attention.norm"), ("mlp", "mlp.norm")] {
                let norm = format!("layers.{layer}.{norm}");
                let before = self.a.placement != Placement::After;
                let input = if before { self.norm(&norm, &x) } else { x.clone() };
                let mut output = if part == "mlp" { self.mlp(layer, &input) } else { self.attention(layer, &input) };
                if self.a.placement == Placement::Around {
                    output = self.norm(&format!("layers.{layer}.{part}.output_norm"), &output);
                }
                x.iter_mut().zip(&output).for_each(|(x, y)| add(x, y));
                self.see(&format!("layers.{layer}.{part}.sum"), &x);
                if !before {
                    x = self.norm(&norm, &x);
                }
            }
        }
        if self.a.placement != Placement::After {
            x = self.norm("final.norm", &x);
        }
        match self.a.output {
            Output::Logits { tied } => {
                let logits = self.multiply(if tied { "embedding.tokens" } else { "head.weight" }, &x);
                self.see("logits", &logits);
                logits.concat()
            }
            Output::Classes(_) => {
                let pooled = self.dense("pooler", x[0].clone(), true, Curve::Tanh);
                self.dense("head", pooled, true, Curve::Identity)
            }
            Output::Embedding(pooling) => {
                let mut sum = vec![0.0; x[0].len()];
                match pooling {
                    Pooling::First => sum.clone_from(&x[0]),
                    Pooling::Last => sum.clone_from(&x[x.len() - 1]),
                    Pooling::Mean | Pooling::RootMean => x.iter().for_each(|x| add(&mut sum, x)),
                    Pooling::WeightedMean => {
                        for (place, x) in x.iter().enumerate() {
                            sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += (place + 1) as f64 * x);
                        }
                    }
                    Pooling::Max => {
                        let largest = |column: usize| x.iter().map(|x| x[column]).fold(f64::NEG_INFINITY, f64::max);
                        sum = (0..sum.len()).map(largest).collect();
                    }
                }
                let tokens = x.len() as f64;
                let times = match pooling {
                    Pooling::Mean => tokens,
                    Pooling::RootMean => tokens.sqrt(),
                    Pooling::WeightedMean => tokens * (tokens + 1.0) / 2.0,
                    Pooling::First | Pooling::Last | Pooling::Max => 1.0,
                };
                sum.iter_mut().for_each(|x| *x /= times);
                for (number, layer) in self.a.dense.iter().enumerate() {
                    sum = self.dense(&format!("dense.{number}"), sum, layer.bias, layer.curve);
                }
                let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
                sum.iter().map(|x| x / length).collect()
            }
        }
    }

    fn dense(&mut self, name: &str, x: Vec<f64>, bias: bool, curve: Curve) -> Vec<f64> {
        self.see(&format!("{name}.input"), &vec![x.clone()]);
        let mut y = self.multiply(&format!("{name}.weight"), &vec![x]);
        if bias {
            self.see(&format!("{name}.unbiased"), &y);
            add(&mut y[0], &self.row(&format!("{name}.bias"), 0));
        }
        self.see(name, &y);
        let y = y[0].iter();
        match curve {
            Curve::Identity => y.copied().collect(),
            Curve::Tanh => y.map(|x| x.tanh()).collect(),
            Curve::Sigmoid => y.map(|x| 1.0 / (1.0 + (-x).exp())).collect(),
            Curve::Gate(activation) => {
                let y = vec![y.map(|x| activated(activation, *x)).collect()];
                self.see(&format!("{name}.activated"), &y);
                y.concat()
            }
        }
    }

    fn see(&mut self, site: &str, x: &Rows) {
        let largest = x.iter().flatten().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        self.sites.insert(site.to_owned(), largest);
    }

    fn row(&self, name: &str, row: usize) -> Vec<f64> {
        let matrix = self.weights.get(name).unwrap();
        let columns = matrix.columns() as usize;
        matrix.values()[row * columns..][..columns].iter().map(|x| f64::from(*x)).collect()
    }

    fn multiply(&self, name: &str, x: &Rows) -> Rows {
        let outputs = self.weights.get(name).unwrap().rows() as usize;
        let weight: Rows = (0..outputs).map(|row| self.row(name, row)).collect();
        x.iter().map(|x| weight.iter().map(|w| dot(w, x)).collect()).collect()
    }

    fn project(&mut self, name: &str, x: &Rows, bias: bool) -> Rows {
        let mut y = self.multiply(&format!("{name}.weight"), x);
        if bias {
            self.see(&format!("{name}.unbiased"), &y);
            let bias = self.row(&format!("{name}.bias"), 0);
            y.iter_mut().for_each(|y| add(y, &bias));
        }
        self.see(name, &y);
        y
    }

    fn norm(&mut self, name: &str, x: &Rows) -> Rows {
        let gain = self.row(&format!("{name}.gain"), 0);
        let bias = (self.a.norm == Norm::Layer).then(|| self.row(&format!("{name}.bias"), 0));
        let y = x.iter().map(|x| normalised(x, &gain, bias.as_deref(), self.a.epsilon)).collect();
        self.see(name, &y);
        y
    }

    /// A projection cut into heads: `[token][head · width + element]`, normalised and rotated.
    fn heads(&mut self, layer: u32, part: &str, x: &Rows) -> [Rows; 2] {
        let name = format!("layers.{layer}.attention.{part}");
        let mut y = self.project(&name, x, self.a.attention_bias);
        let width = self.a.head_width as usize;
        if self.a.query_key_norm {
            self.see(&format!("{name}.projected"), &y);
            let gain = self.row(&format!("{name}_norm.gain"), 0);
            for head in y.iter_mut().flat_map(|y| y.chunks_mut(width)) {
                head.copy_from_slice(&normalised(head, &gain, None, self.a.epsilon));
            }
            self.see(&name, &y);
        }
        let mut rotated = y.clone();
        let local = self.a.local.as_ref().filter(|local| !(layer + 1).is_multiple_of(local.period));
        if let Positions::Rotary(rotary) = &self.a.positions {
            let rotary = local.map_or(rotary, |local| &local.rotary);
            for (t, y) in rotated.iter_mut().enumerate() {
                y.chunks_mut(width).for_each(|head| rotate(head, t, rotary));
            }
            self.see(&format!("layers.{layer}.attention.rotated_{part}"), &rotated);
        }
        [y, rotated]
    }

    fn attention(&mut self, layer: u32, x: &Rows) -> Rows {
        let name = |part: &str| format!("layers.{layer}.attention.{part}");
        let (heads, width) = (self.a.heads as usize, self.a.head_width as usize);
        let each = heads / self.a.kv_heads as usize;
        let [_, query] = self.heads(layer, "query", x);
        let [_, key] = self.heads(layer, "key", x);
        let value = self.project(&name("value"), x, self.a.attention_bias);
        let local = self.a.local.as_ref().filter(|local| !(layer + 1).is_multiple_of(local.period));
        let divisor = self.a.score_scale.unwrap_or(width as f64).sqrt();
        let mut mixed = vec![vec![0.0; heads * width]; x.len()];
        let mut all_scores = Rows::new();
        for (t, mixed) in mixed.iter_mut().enumerate() {
            let end = if self.a.causal { t + 1 } else { x.len() };
            let begin = local.map_or(0, |local| end.saturating_sub(local.window as usize));
            let seen = begin..end;
            for h in 0..heads {
                let (own, shared) = (h * width..(h + 1) * width, h / each * width..(h / each + 1) * width);
                let scores: Vec<f64> =
                    key[seen.clone()].iter().map(|k| dot(&query[t][own.clone()], &k[shared.clone()])).collect();
                let powers: Vec<f64> = scores.iter().map(|s| (s / divisor).exp()).collect();
                let sum: f64 = powers.iter().sum();
                for (power, value) in powers.iter().zip(&value[seen.clone()]) {
                    let part: Vec<f64> = value[shared.clone()].iter().map(|v| power / sum * v).collect();
                    add(&mut mixed[own.clone()], &part);
                }
                all_scores.push(scores);
            }
        }
        self.see(&name("scores"), &all_scores);
        self.see(&name("mixed"), &mixed);
        self.project(&name("output"), &mixed, self.a.output_bias)
    }

    fn mlp(&mut self, layer: u32, x: &Rows) -> Rows {
        let name = |part: &str| format!("layers.{layer}.mlp.{part}");
        let up = self.project(&name("up"), x, self.a.mlp_bias);
        let gate = self.a.gated.then(|| self.project(&name("gate"), x, self.a.mlp_bias));
        let before = gate.as_ref().unwrap_or(&up);
        let mut inner: Rows =
            before.iter().map(|x| x.iter().map(|x| activated(self.a.activation, *x)).collect()).collect();
        self.see(&name("activated"), &inner);
        if self.a.gated {
            inner.iter_mut().flatten().zip(up.iter().flatten()).for_each(|(x, up)| *x *= up);
            self.see(&name("product"), &inner);
        }
        self.project(&name("down"), &inner, self.a.mlp_bias)
    }
}

fn add(x: &mut [f64], y: &[f64]) {
    assert_eq!(x.len(), y.len());
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// LayerNorm with a bias, RMSNorm without.
fn normalised(x: &[f64], gain: &[f64], bias: Option<&[f64]>, epsilon: f64) -> Vec<f64> {
    let count = x.len() as f64;
    let mean = if bias.is_some() { x.iter().sum::<f64>() / count } else { 0.0 };
    let deviation = (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count + epsilon).sqrt();
    let mut y: Vec<f64> = x.iter().zip(gain).map(|(x, gain)| (x - mean) / deviation * gain).collect();
    if let Some(bias) = bias {
        add(&mut y, bias);
    }
    y
}

fn rotate(head: &mut [f64], t: usize, rotary: &Rotary) {
    let half = rotary.width as usize / 2;
    for i in 0..half {
        let plain = rotary.theta.powf(-(i as f64) / half as f64);
        let frequency = match rotary.scaling {
            Scaling::None => plain,
            Scaling::Linear { factor } => plain / factor,
            Scaling::Llama3 { factor, low, high, original_context } => {
                let wavelength = TAU / plain;
                let context = f64::from(original_context);
                if wavelength < context / high {
                    plain
                } else if wavelength > context / low {
                    plain / factor
                } else {
                    let smooth = (context / wavelength - low) / (high - low);
                    (1.0 - smooth) * plain / factor + smooth * plain
                }
            }
            Scaling::Yarn { factor, fast, slow, original_context, .. } => {
                let (dim, context) = (f64::from(rotary.width), f64::from(original_context));
                let correction = |turns: f64| dim * (context / (turns * TAU)).ln() / (2.0 * rotary.theta.ln());
                let low = correction(fast).floor().max(0.0);
                let high = correction(slow).ceil().min(dim - 1.0);
                let ramp = ((i as f64 - low) / (high - low)).clamp(0.0, 1.0);
                plain / factor * ramp + plain * (1.0 - ramp)
            }
        };
        let (sine, cosine) = (t as f64 * frequency).sin_cos();
        let (sine, cosine) = match rotary.scaling {
            Scaling::Yarn { amplitude, .. } => (amplitude * sine, amplitude * cosine),
            _ => (sine, cosine),
        };
        let (x, y) = (head[i], head[i + half]);
        (head[i], head[i + half]) = (x * cosine - y * sine, y * cosine + x * sine);
    }
}

fn activated(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Gelu => x / 2.0 * (1.0 + libm::erf(x / SQRT_2)),
        Activation::GeluTanh => x / 2.0 * (1.0 + (FRAC_2_SQRT_PI / SQRT_2 * (x + 0.044_715 * x.powi(3))).tanh()),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Relu => x.max(0.0),
    }
}
