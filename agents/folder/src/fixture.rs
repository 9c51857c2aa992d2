//! Tiny folders on disk, for tests.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use tensorlink_model::fixture::integers::quantized;
use tensorlink_model::fixture::{Folder, Stored, Tensor, tokenizer_json};
use tensorlink_model::{Family, Quantized, Setting};

use super::{ModelFolder, POOLING, WEIGHTS};

/// A folder on disk with one file of weights.
pub fn written(folder: &Folder) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("config.json"), folder.config_json()).unwrap();
    fs::write(dir.path().join("model.safetensors"), folder.safetensors(Stored::Bf16)).unwrap();
    fs::write(dir.path().join("tokenizer.json"), tokenizer_json()).unwrap();
    dir
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
