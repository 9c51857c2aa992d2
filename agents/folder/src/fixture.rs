//! Tiny folders on disk, for tests.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use tensorlink_model::fixture::integers::quantized;
use tensorlink_model::fixture::{Folder, Stored, Tensor, tokenizer_json};
use tensorlink_model::random::{Dimensions, llama, weights};
use tensorlink_model::{Family, Matrix, Quantized, Setting, Weights};

use super::distance::Choice;
use super::{Distance, ModelFolder, POOLING, Trained, WEIGHTS};

/// Of a model of characters.
const SIZE: Dimensions =
    Dimensions { vocabulary: 4, width: 16, layers: 1, heads: 2, kv_heads: 1, hidden: 24, context: 16 };

/// A folder on disk with one file of weights.
pub fn written(folder: &Folder) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("config.json"), folder.config_json()).unwrap();
    fs::write(dir.path().join("model.safetensors"), folder.safetensors(Stored::Bf16)).unwrap();
    fs::write(dir.path().join("tokenizer.json"), tokenizer_json()).unwrap();
    dir
}

/// A folder like those of models that are trained here, with these texts of its own; the second value is where it lies
/// in the first.
pub fn trained(texts: &[&str]) -> (TempDir, PathBuf) {
    scaled(texts, 1.0)
}

/// The same with weights of another size.
pub fn scaled(texts: &[&str], by: f32) -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("model");
    let architecture = llama(SIZE);
    let matrices = weights(&architecture, 3).unwrap().into_matrices().into_iter().map(|(name, matrix)| {
        let values = matrix.values().iter().map(|value| value * by).collect();
        (name, Matrix::new(matrix.rows(), matrix.columns(), values).unwrap())
    });
    let weights = Weights::new(&architecture, matrices.collect()).unwrap();
    let characters = ["\n", " ", "a", "b"].map(String::from);
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    Trained { architecture: &architecture, weights: &weights, characters: &characters, texts: &texts }
        .write(&out)
        .unwrap();
    (parent, out)
}

/// A folder of an encoder that scores pairs of texts.
pub fn reranker(family: Family) -> TempDir {
    written(&Folder::reranker(family))
}

/// A sentence-transformers folder with two dense layers after pooling.
pub fn dense() -> TempDir {
    let dir = written(&Folder::new(Family::Bert));
    let part =
        |class: &str, path: &str| json!({ "type": format!("sentence_transformers.models.{class}"), "path": path });
    let modules = json!([
        part("Transformer", ""),
        part("Pooling", "1_Pooling"),
        part("Dense", "2_Dense"),
        part("Dense", "3_Dense_4"),
        part("Normalize", "4_Normalize")
    ]);
    fs::write(dir.path().join("modules.json"), modules.to_string()).unwrap();
    fs::create_dir(dir.path().join("1_Pooling")).unwrap();
    fs::write(dir.path().join(POOLING), r#"{"pooling_mode_mean_tokens": true}"#).unwrap();
    let class = |name: &str| format!("torch.nn.modules.activation.{name}");
    for (path, inputs, outputs, bias) in [("2_Dense", 8, 6, true), ("3_Dense_4", 6, 4, false)] {
        let config = json!({ "in_features": inputs, "out_features": outputs, "bias": bias,
            "activation_function": class("Tanh") });
        let folder = dir.path().join(path);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("config.json"), config.to_string()).unwrap();
        let tensor = |name: &str, shape: Vec<usize>| {
            let values = (1..=shape.iter().product()).map(|n: usize| (n * 37 % 101) as f32 / 128.0 - 0.4).collect();
            Tensor { name: name.into(), shape, values }
        };
        let mut tensors = vec![tensor("linear.weight", vec![outputs, inputs])];
        if bias {
            tensors.push(tensor("linear.bias", vec![outputs]));
        }
        fs::write(folder.join(WEIGHTS), Folder { tensors, ..Folder::new(Family::Bert) }.safetensors(Stored::F32))
            .unwrap();
    }
    dir
}

/// The model of a folder of floats in integers, not calibrated.
pub fn integers(folder: &ModelFolder, setting: Setting) -> Quantized {
    quantized(folder.architecture(), setting, &folder.weights().unwrap()).unwrap()
}

/// What lies in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// How far a decoder is from its floats, of this perplexity for their 20.
pub fn decoder_lost(perplexity: f64, same_choice: f64) -> Distance {
    let (perplexity, divergence) = (Some([20.0, perplexity]), Some(0.01));
    Distance { perplexity, divergence, choice: Choice::Token, ..encoder_lost(0.5, same_choice) }
}

/// How far an encoder is from its floats.
pub fn encoder_lost(cosine_mean: f64, same_choice: f64) -> Distance {
    Distance {
        texts: 9,
        tokens: 100,
        vectors: 100,
        cosine_mean,
        cosine_min: 0.0,
        largest_difference: 0.0,
        mean_difference: 0.0,
        same_choice,
        perplexity: None,
        divergence: None,
        choice: Choice::Neighbour,
        saturated: 0.0,
    }
}
