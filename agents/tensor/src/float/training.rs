//! The training step of a language model in libtorch's floats, by its own autograd: what exact training is
//! measured against.
//!
//! The same weights, sequences, schedule, clipping and AdamW as `tensorlink_training::step::language`, of adapters
//! where the recipe has some: then the model's own weights stay as they are. With bfloat16 the products with weights
//! and those of attention take and give bfloat16, as libtorch's autocast has it; everything else is in 32 bits.

use std::collections::BTreeMap;

use tch::{Kind, Reduction, TchError, Tensor, no_grad};
use tensorlink_model::lora::beside;
use tensorlink_model::{Architecture, Lora, Norm, Output, Parameter, Placement, Positions, parameters};
use tensorlink_training::step::float::FloatState;
use tensorlink_training::step::language::{AdamW, Adapters, EPSILON, Recipe};

use super::layer::activate;
use super::rotary::Rotations;
use super::{FloatError, Precision};
use crate::Device;

/// A language model in training.
#[derive(Debug)]
pub struct FloatTraining {
    architecture: Architecture,
    optimizer: AdamW,
    products: Kind,
    device: tch::Device,
    rotations: Rotations,
    lora: Option<Lora>,
    weights: BTreeMap<String, Weight>,
}

#[derive(Debug)]
struct Weight {
    value: Tensor,
    /// First and second moment of one that is trained.
    moments: Option<[Tensor; 2]>,
}

impl FloatTraining {
    /// From the floats that exact training starts from, by their names.
    ///
    /// # Errors
    /// [`FloatError::Device`] if the device fails, or a weight is missing.
    pub fn new(
        architecture: &Architecture,
        recipe: &Recipe,
        state: &FloatState,
        (device, precision): (Device, Precision),
    ) -> Result<Self, FloatError> {
        let device: tch::Device = device.into();
        let tensor = |parameter: &Parameter, values: Tensor| {
            let dims: Vec<i64> = parameter.dims().into_iter().map(i64::from).collect();
            values.f_reshape(&dims)?.f_to_kind(Kind::Float)?.f_to_device(device)
        };
        let mut weights = BTreeMap::new();
        if let Some(Adapters { base, .. }) = &recipe.adapters {
            for parameter in parameters(architecture) {
                let value = tensor(&parameter, Tensor::f_from_slice(base.get(&parameter.name)?.values())?)?;
                weights.insert(parameter.name, Weight { value, moments: None });
            }
        }
        for parameter in recipe.parameters(architecture) {
            let missing = || FloatError::Device(format!("{} has no values", parameter.name));
            let values = state.get(&parameter.name).ok_or_else(missing)?;
            let value = tensor(&parameter, Tensor::f_from_slice(values)?)?;
            let moments = Some([value.f_zeros_like()?, value.f_zeros_like()?]);
            let value = value.f_set_requires_grad(true)?;
            weights.insert(parameter.name, Weight { value, moments });
        }
        Ok(Self {
            architecture: architecture.clone(),
            optimizer: recipe.optimizer.clone(),
            products: precision.kind(),
            device,
            rotations: Rotations::new(architecture, recipe.tokens as usize, (Kind::Float, device))?,
            lora: recipe.adapters.as_ref().map(|adapters| adapters.lora.clone()),
            weights,
        })
    }

    /// Mean cross entropy of sequences of so many tokens, each with what follows it, in nats.
    ///
    /// # Errors
    /// [`FloatError::Device`].
    pub fn loss(&self, ids: &[i64], following: &[i64], tokens: usize) -> Result<f64, FloatError> {
        let loss = no_grad(|| self.cross_entropy(ids, following, tokens))?;
        Ok(f64::try_from(&loss)?)
    }

    /// A step of training; gives the loss before it.
    ///
    /// # Errors
    /// [`FloatError::Device`].
    pub fn step(&mut self, ids: &[i64], following: &[i64], tokens: usize, step: u32) -> Result<f64, FloatError> {
        let loss = self.cross_entropy(ids, following, tokens)?;
        loss.f_backward()?;
        no_grad(|| self.update(step))?;
        Ok(f64::try_from(&loss)?)
    }

    fn cross_entropy(&self, ids: &[i64], following: &[i64], tokens: usize) -> Result<Tensor, TchError> {
        let shape = [-1, tokens as i64];
        let tensor = |ids: &[i64]| Tensor::f_from_slice(ids)?.f_to_device(self.device)?.f_reshape(shape);
        let logits = self.logits(&tensor(ids)?)?;
        let logits = logits.f_reshape([-1, i64::from(self.architecture.vocabulary)])?;
        let following = tensor(following)?.f_reshape([-1])?;
        logits.f_cross_entropy_loss::<Tensor>(&following, None, Reduction::Mean, -100, 0.0)
    }

    fn logits(&self, ids: &Tensor) -> Result<Tensor, TchError> {
        let mut x = Tensor::f_embedding(self.weight("embedding.tokens")?, ids, -1, false, false)?;
        if let Some(scale) = self.architecture.embedding_scale {
            x = x.f_mul_scalar(scale)?;
        }
        if let Positions::Learned { first } = self.architecture.positions {
            let (_, tokens) = ids.size2()?;
            x = x.f_add(&self.weight("embedding.positions")?.f_narrow(0, first.into(), tokens)?)?;
        }
        for layer in 0..self.architecture.layers {
            x = x.f_add(&self.attention(layer, &x)?)?;
            x = x.f_add(&self.mlp(layer, &x)?)?;
        }
        self.linear("head", &self.norm("final.norm", &x)?)
    }

    fn attention(&self, layer: u32, x: &Tensor) -> Result<Tensor, TchError> {
        let name = |part: &str| format!("layers.{layer}.attention.{part}");
        let a = &self.architecture;
        let (batch, tokens, _) = x.size3()?;
        let y = self.norm(&name("norm"), x)?;
        let heads = |part: &str, heads: u32| {
            let y = self.linear(&name(part), &y)?;
            y.f_reshape([batch, tokens, heads.into(), a.head_width.into()])
        };
        let rotations = self.rotations.narrow(0, tokens as usize)?;
        let local = a.local(layer);
        let turned = |x: Tensor| match rotations.of(local.is_some()) {
            Some(rotation) => rotation.apply(&x),
            None => Ok(x),
        };
        let looked_up = |part: &str, count: u32| {
            let x = heads(part, count)?;
            if !a.query_key_norm {
                return turned(x);
            }
            let gain = self.weight(&name(&format!("{part}_norm.gain")))?;
            turned(x.f_rms_norm(gain.size(), Some(gain), a.epsilon)?)
        };
        let (query, key) = (looked_up("query", a.heads)?, looked_up("key", a.kv_heads)?);
        let value = heads("value", a.kv_heads)?;
        let first = |x: &Tensor| x.f_transpose(1, 2)?.f_to_kind(self.products);
        let shared = |x: &Tensor| first(x)?.f_repeat_interleave_self_int(i64::from(a.heads / a.kv_heads), 1, None);
        let visible = match local {
            Some(local) => {
                let all = Tensor::f_ones([tokens, tokens], (Kind::Bool, self.device))?;
                Some(all.f_tril(0)?.f_triu(1 - i64::from(local.window))?)
            }
            None => None,
        };
        let mixed = Tensor::f_scaled_dot_product_attention::<Tensor>(
            &first(&query)?,
            &shared(&key)?,
            &shared(&value)?,
            visible,
            0.0,
            local.is_none(),
            Some(1.0 / a.score_divisor()),
            false,
        )?;
        let mixed = mixed.f_transpose(1, 2)?.f_reshape([batch, tokens, -1])?.f_to_kind(Kind::Float)?;
        self.output_norm(&name("output_norm"), self.linear(&name("output"), &mixed)?)
    }

    fn mlp(&self, layer: u32, x: &Tensor) -> Result<Tensor, TchError> {
        let name = |part: &str| format!("layers.{layer}.mlp.{part}");
        let y = self.norm(&name("norm"), x)?;
        let Architecture { gated, activation, .. } = self.architecture;
        let mut first = self.linear(&name(if gated { "gate" } else { "up" }), &y)?;
        let mut inner = activate(activation, &mut first)?;
        if gated {
            inner = inner.f_mul(&self.linear(&name("up"), &y)?)?;
        }
        self.output_norm(&name("output_norm"), self.linear(&name("down"), &inner)?)
    }

    /// What attention or an MLP adds, normalised where the architecture does.
    fn output_norm(&self, name: &str, x: Tensor) -> Result<Tensor, TchError> {
        if self.architecture.placement == Placement::Around { self.norm(name, &x) } else { Ok(x) }
    }

    fn norm(&self, name: &str, x: &Tensor) -> Result<Tensor, TchError> {
        let (gain, epsilon) = (self.weight(&format!("{name}.gain"))?, self.architecture.epsilon);
        match self.architecture.norm {
            Norm::Layer => x.f_layer_norm(gain.size(), Some(gain), self.bias(name), epsilon, true),
            Norm::Rms => x.f_rms_norm(gain.size(), Some(gain), epsilon),
        }
    }

    fn linear(&self, name: &str, x: &Tensor) -> Result<Tensor, TchError> {
        let tied = name == "head" && self.architecture.output == Output::Logits { tied: true };
        let mut y =
            if tied { self.product("embedding.tokens", x) } else { self.product(&format!("{name}.weight"), x) }?;
        if let Some(lora) = self.lora.as_ref().filter(|lora| lora.adapts(name)) {
            let [down, up] = beside(name).map(|part| format!("{part}.weight"));
            let change = self.product(&up, &self.product(&down, x)?)?;
            y = y.f_add(&change.f_mul_scalar(lora.scale())?)?;
        }
        match self.bias(name) {
            Some(bias) => y.f_add(bias),
            None => Ok(y),
        }
    }

    fn product(&self, weight: &str, x: &Tensor) -> Result<Tensor, TchError> {
        let weight = self.weight(weight)?.f_to_kind(self.products)?;
        x.f_to_kind(self.products)?.f_linear::<Tensor>(&weight, None)?.f_to_kind(Kind::Float)
    }

    fn bias(&self, name: &str) -> Option<&Tensor> {
        self.weights.get(&format!("{name}.bias")).map(|weight| &weight.value)
    }

    fn weight(&self, name: &str) -> Result<&Tensor, TchError> {
        let missing = || TchError::Torch(format!("{name} is not one of the weights"));
        self.weights.get(name).map(|weight| &weight.value).ok_or_else(missing)
    }

    /// Clips the gradients by their norm, and takes a step of AdamW.
    fn update(&mut self, step: u32) -> Result<(), TchError> {
        let AdamW { rates, beta1, beta2, weight_decay, clip } = &self.optimizer;
        let rate = rates.get(step as usize).or(rates.last()).copied().unwrap_or_default();
        let mut squares = 0.0;
        for weight in self.weights.values().filter(|weight| weight.moments.is_some()) {
            let gradient = weight.value.f_grad()?;
            let sum = gradient.f_mul(&gradient)?.f_sum(Kind::Double)?;
            squares += f64::try_from(&sum)?;
        }
        let norm = squares.sqrt();
        let share = if norm > *clip { clip / norm } else { 1.0 };
        let time = f64::from(step) + 1.0;
        let corrected = rate * (1.0 - beta2.powf(time)).sqrt() / (1.0 - beta1.powf(time));
        for weight in self.weights.values_mut() {
            let Some([first, second]) = &mut weight.moments else { continue };
            let mut gradient = weight.value.f_grad()?;
            let clipped = gradient.f_mul_scalar(share)?;
            *first = first.f_mul_scalar(*beta1)?.f_add(&clipped.f_mul_scalar(1.0 - beta1)?)?;
            let square = clipped.f_mul(&clipped)?.f_mul_scalar(1.0 - beta2)?;
            *second = second.f_mul_scalar(*beta2)?.f_add(&square)?;
            let direction = first.f_div(&second.f_sqrt()?.f_add_scalar(EPSILON)?)?;
            let decay = if weight.value.dim() > 1 { rate * weight_decay } else { 0.0 };
            let kept = weight.value.f_mul_scalar(1.0 - decay)?;
            let next = kept.f_sub(&direction.f_mul_scalar(corrected)?)?;
            weight.value.f_copy_(&next)?;
            let _ = gradient.f_zero_()?;
        }
        Ok(())
    }
}
