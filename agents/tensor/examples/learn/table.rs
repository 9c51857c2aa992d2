//! Models of layers on held-out rows of a table, against libtorch's autograd with momentum as PyTorch's `SGD` has it.

use tch::{Kind, Reduction, Tensor, no_grad};
use tensorlink_num::philox;
use tensorlink_tensor::float::Precision;
use tensorlink_training::calibrate::job_key;
use tensorlink_training::model::{Activation, LayerWeights, Linear};
use tensorlink_training::step::Slot;
use tensorlink_training::{Dataset, Model, Network, Stage, Table, Training, TrainingSet, init};
use tensorlink_types::JobKey;

use crate::progress::Progress;
use crate::{Exact, Outcome, Subject};

/// Steps of calibration, as `job post` takes them.
const CALIBRATION: u32 = 200;

/// A model of layers and its table.
pub(crate) struct Tabular {
    json: serde_json::Value,
    table: Table,
    key: JobKey,
}

/// What is trained in either way.
struct Prepared {
    model: Model,
    network: Network,
    weights: Vec<LayerWeights>,
    data: Dataset,
}

impl Tabular {
    pub(crate) fn new(json: serde_json::Value, table: &[u8]) -> Outcome<Self> {
        Ok(Self { json, table: Table::parse(table)?, key: job_key(9) })
    }

    fn prepare(&self, bits: u8) -> Outcome<Prepared> {
        let mut json = self.json.clone();
        json["operand_bits"] = bits.into();
        let model = Model::parse("the model", json.to_string().as_bytes())?;
        let data = self.table.split(bits, model.seed())?;
        let network = model.network(data.scales.len() as u32, data.classes.len() as u32)?;
        Ok(Prepared { weights: init::gaussian(&network, model.seed()), model, network, data })
    }
}

impl Subject for Tabular {
    fn exact(&self, bits: u8) -> Outcome<Exact> {
        let Prepared { model, network, weights, data } = self.prepare(bits)?;
        let rows = data.training.features.ty().rows() as u32;
        // In floats and of the same features in either way: an exact probability below 2^-24 is nothing, and its
        // logarithm only a bound.
        let (features, labels) = tensors(&self.prepare(16)?.data.held_out)?;
        let tested = network.clone();
        let held_out = move |stage: Stage<'_>| {
            let layers = Layers::new(&tested, &learned(&tested, stage)?, Precision::F32)?;
            Ok(f64::try_from(no_grad(|| layers.loss(&features, &labels))?)?)
        };
        Ok(Exact {
            training: Training::of_network(&network, &weights, rows),
            calibration: CALIBRATION.min(model.steps()),
            data: data.training,
            held_out: Box::new(held_out),
            key: self.key,
            seed: model.seed(),
            steps: model.steps(),
        })
    }

    fn floats(&self, way: &str, precision: Precision) -> Outcome<()> {
        // Features of 16 bits: what floats would read, to a part in 30,000.
        let Prepared { model, network, weights, data } = self.prepare(16)?;
        let mut layers = Layers::new(&network, &weights, precision)?;
        let ((features, labels), held_out) = (tensors(&data.training)?, tensors(&data.held_out)?);
        let rows = data.training.features.ty().rows();
        let mut progress = Progress::new(way, model.steps());
        for step in 0..model.steps() {
            let drawn = (0..network.batch_size).map(|row| philox::draw_below(&self.key, row, step, rows).cast_signed());
            let drawn = Tensor::from_slice(&drawn.collect::<Vec<_>>());
            let loss = layers.step(&features.f_index_select(0, &drawn)?, &labels.f_index_select(0, &drawn)?)?;
            progress.take(step, loss, || {
                let loss = no_grad(|| layers.loss(&held_out.0, &held_out.1))?;
                Ok(f64::try_from(loss)?)
            })?;
        }
        Ok(())
    }
}

/// The weights of a stage.
fn learned(network: &Network, stage: Stage<'_>) -> Outcome<Vec<LayerWeights>> {
    let find = |layer: usize, slot: Slot| -> Outcome<Vec<f64>> {
        let name = Linear::site(layer, slot.name());
        let mut slots = stage.program.state.iter().zip(stage.state);
        let (_, tensor) = slots.find(|(slot, _)| slot.name == name).ok_or(name.as_str())?;
        Ok(tensor.to_f64())
    };
    let layer = |layer| Ok(LayerWeights { weight: find(layer, Slot::Weight)?, bias: find(layer, Slot::Bias)? });
    (0..network.layers.len()).map(layer).collect()
}

/// Features `[rows, columns]` and labels `[rows]`.
fn tensors(set: &TrainingSet) -> Outcome<(Tensor, Tensor)> {
    let shape = [set.features.ty().rows() as i64, set.features.ty().row() as i64];
    let features = Tensor::from_slice(&set.features.to_f64()).f_to_kind(Kind::Float)?.f_view(shape)?;
    Ok((features, Tensor::from_slice(&set.labels.mantissas().to_vec())))
}

/// A stack of linear layers in libtorch.
struct Layers {
    network: Network,
    parameters: Vec<Parameter>,
    precision: Precision,
}

struct Parameter {
    value: Tensor,
    velocity: Tensor,
}

impl Layers {
    fn new(network: &Network, weights: &[LayerWeights], precision: Precision) -> Outcome<Self> {
        let parameter = |values: &[f64], shape: &[i64]| -> Outcome<Parameter> {
            let value = Tensor::from_slice(values).f_to_kind(Kind::Float)?.f_view(shape)?.f_set_requires_grad(true)?;
            Ok(Parameter { velocity: value.f_zeros_like()?, value })
        };
        let mut parameters = Vec::new();
        for (linear, weights) in network.layers.iter().zip(weights) {
            let (out, input) = (i64::from(linear.output), i64::from(linear.input));
            parameters.push(parameter(&weights.weight, &[out, input])?);
            parameters.push(parameter(&weights.bias, &[out])?);
        }
        Ok(Self { network: network.clone(), parameters, precision })
    }

    /// Mean cross entropy in nats.
    fn loss(&self, features: &Tensor, labels: &Tensor) -> Outcome<Tensor> {
        let mut x = features.shallow_clone();
        for (linear, pair) in self.network.layers.iter().zip(self.parameters.chunks_exact(2)) {
            let [weight, bias] = pair else { continue };
            x = self.product(&x, &weight.value)?.f_add(&bias.value)?;
            x = activated(linear, x)?;
        }
        Ok(x.f_log_softmax(-1, Kind::Float)?.f_nll_loss(labels, None::<&Tensor>, Reduction::Mean, -100)?)
    }

    /// As autocast multiplies.
    fn product(&self, x: &Tensor, weight: &Tensor) -> Outcome<Tensor> {
        let kind = match self.precision {
            Precision::F32 => Kind::Float,
            Precision::Bf16 => Kind::BFloat16,
        };
        Ok(x.f_to_kind(kind)?.f_matmul(&weight.f_to_kind(kind)?.f_tr()?)?.f_to_kind(Kind::Float)?)
    }

    /// Loss before the step `v ← momentum·v + g`, `w ← w − rate·v`.
    fn step(&mut self, features: &Tensor, labels: &Tensor) -> Outcome<f64> {
        let loss = self.loss(features, labels)?;
        let values: Vec<&Tensor> = self.parameters.iter().map(|parameter| &parameter.value).collect();
        let gradients = Tensor::f_run_backward(&[&loss], &values, false, false)?;
        let optimizer = self.network.optimizer;
        no_grad(|| -> Outcome<()> {
            for (parameter, gradient) in self.parameters.iter_mut().zip(gradients) {
                parameter.velocity = parameter.velocity.f_mul_scalar(optimizer.momentum)?.f_add(&gradient)?;
                let moved = parameter.velocity.f_mul_scalar(optimizer.learning_rate)?;
                drop(parameter.value.f_sub_(&moved)?);
            }
            Ok(())
        })?;
        Ok(f64::try_from(loss)?)
    }
}

fn activated(linear: &Linear, x: Tensor) -> Outcome<Tensor> {
    Ok(match linear.activation {
        Some(Activation::Relu) => x.f_relu()?,
        Some(Activation::Gelu) => x.f_gelu("none")?,
        None => x,
    })
}
