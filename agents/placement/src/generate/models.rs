//! Profiles of seven models of 32 to 88 layers: the sizes of open models, in the widths that workers use.

use crate::model::{Cost, Layer, ModelProfile};
use crate::node::Precision;

/// Tokens of a micro-batch, forward or in training.
const MICRO_BATCH: f64 = 512.0;
/// Tokens whose keys and values a lane keeps.
const CONTEXT: f64 = 4096.0;
/// Bytes of an activation: exact mode hands 16 bits on.
const ACTIVATION_BYTES: f64 = 2.0;
/// What training keeps of a parameter beside its weight: 32 bits of the weight's rest, and two moments of 16 bits.
const TRAINED_BYTES: f64 = 8.0;

/// A model by the few numbers that its layers follow from.
struct Shape {
    name: &'static str,
    precision: Precision,
    layers: usize,
    hidden: f64,
    /// Of one layer, in billions.
    parameters: f64,
    bytes_per_parameter: f64,
    vocabulary: f64,
    /// Query heads for one head of keys and values.
    sharing: f64,
    /// The share of a layer's parameters that a token meets: less than one for mixtures of experts.
    active: f64,
    /// Every fourth layer is heavy, and the front computes twice.
    hybrid: bool,
}

const DENSE: Shape = Shape {
    name: "",
    precision: Precision::Int4,
    layers: 0,
    hidden: 0.0,
    parameters: 0.0,
    bytes_per_parameter: 0.56,
    vocabulary: 128e3,
    sharing: 4.0,
    active: 1.0,
    hybrid: false,
};

const SHAPES: [Shape; 7] = [
    Shape {
        name: "8B int16",
        precision: Precision::Int16,
        layers: 32,
        hidden: 4096.0,
        parameters: 0.218,
        bytes_per_parameter: 2.0,
        ..DENSE
    },
    Shape {
        name: "13B int8",
        precision: Precision::Int8,
        layers: 40,
        hidden: 5120.0,
        parameters: 0.317,
        bytes_per_parameter: 1.0,
        vocabulary: 32e3,
        sharing: 1.0,
        ..DENSE
    },
    Shape { name: "32B int4", layers: 64, hidden: 5120.0, parameters: 0.48, vocabulary: 150e3, ..DENSE },
    Shape { name: "70B int4", layers: 80, hidden: 8192.0, parameters: 0.856, ..DENSE },
    Shape { name: "120B int4", layers: 88, hidden: 12288.0, parameters: 1.37, vocabulary: 32e3, ..DENSE },
    Shape {
        name: "47B experts int4",
        layers: 32,
        hidden: 4096.0,
        parameters: 1.45,
        vocabulary: 32e3,
        active: 0.27,
        ..DENSE
    },
    Shape {
        name: "12B hybrid int8",
        precision: Precision::Int8,
        layers: 40,
        hidden: 4096.0,
        parameters: 0.3,
        bytes_per_parameter: 1.0,
        vocabulary: 64e3,
        hybrid: true,
        ..DENSE
    },
];

/// All seven, by rising size of their shapes' list.
pub fn models() -> Vec<ModelProfile> {
    SHAPES.iter().map(Shape::profile).collect()
}

/// The model of a name that [`models`] has.
pub fn model(name: &str) -> Option<ModelProfile> {
    SHAPES.iter().find(|shape| shape.name == name).map(Shape::profile)
}

impl Shape {
    fn profile(&self) -> ModelProfile {
        ModelProfile {
            name: self.name.into(),
            precision: self.precision,
            micro_batch: MICRO_BATCH,
            layers: (0..self.layers).map(|at| self.layer(at)).collect(),
        }
    }

    fn layer(&self, at: usize) -> Layer {
        let heavy = match (self.hybrid, at % 4) {
            (false, _) => 1.0,
            (true, 0) => 2.2,
            (true, _) => 0.6,
        };
        let parameters = self.parameters * 1e9 * heavy;
        let active = parameters * self.active;
        let macs = if self.hybrid && at < self.layers / 4 { 2.0 * active } else { active };
        let embedding = self.vocabulary * self.hidden;
        let (first, last) = (at == 0, at + 1 == self.layers);
        let head = if last { embedding } else { 0.0 };
        let stored = parameters + head + if first { embedding } else { 0.0 };
        let weights = stored * self.bytes_per_parameter;
        let cached = 2.0 * self.hidden / self.sharing * ACTIVATION_BYTES * CONTEXT;
        let activations = self.hidden * ACTIVATION_BYTES;
        Layer {
            weights,
            decode: Cost {
                macs: macs + head,
                reads: (active + head) * self.bytes_per_parameter,
                state: cached,
                activations,
            },
            // The head computes one row of a prompt: nothing beside the layers.
            prefill: Cost {
                macs: macs * MICRO_BATCH,
                reads: weights,
                state: cached,
                activations: activations * MICRO_BATCH,
            },
            // Gradients of activations and of weights cost as much again, each.
            training: Cost {
                macs: 3.0 * (macs + head) * MICRO_BATCH,
                reads: 3.0 * weights + 2.0 * stored * TRAINED_BYTES,
                state: stored * TRAINED_BYTES + 12.0 * activations * MICRO_BATCH,
                activations: activations * MICRO_BATCH,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    #[test]
    fn every_profile_is_valid_and_as_deep_as_said() {
        let all = models();
        assert!(all.iter().all(|model| model.check().is_ok()));
        let depths = all.iter().map(|model| model.layers.len());
        assert_eq!((depths.clone().min(), depths.max()), (Some(32), Some(88)));
    }

    #[test]
    fn sizes_are_those_of_the_models_they_are_called_after() {
        let gigabytes = |name, kind| model(name).expect("a known name").bytes(kind) / 1e9;
        assert!((15.0..18.0).contains(&gigabytes("8B int16", Kind::Decode)));
        assert!((38.0..45.0).contains(&gigabytes("70B int4", Kind::Decode)));
        assert!(gigabytes("8B int16", Kind::Training) > 4.0 * gigabytes("8B int16", Kind::Decode));
        assert_eq!(model("9B"), None);
    }
}
