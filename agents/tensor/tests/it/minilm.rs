//! The real all-MiniLM-L6-v2, out of the folder that `script/setup` fetches, against doubles computed elsewhere
//! (`tests/it/minilm/reference.py`).

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tensorlink_model::describe;
use tensorlink_model::import::{File, import};
use tensorlink_tensor::float::{FloatModel, Precision};

use crate::device::device;

#[derive(Deserialize)]
struct Case {
    text: String,
    ids: Vec<u32>,
    embedding: Vec<f64>,
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}; run script/setup", path.display()))
}

#[test]
fn embeddings_of_sentences_are_those_of_the_model() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = here.join("../../.toolchain/models/all-MiniLM-L6-v2");
    let config = read(&folder.join("config.json"));
    let pooling = read(&folder.join("1_Pooling/config.json"));
    let bytes = read(&folder.join("model.safetensors"));
    let architecture = describe(&config, Some(&pooling)).unwrap().architecture;
    let file = File::new("model.safetensors", &bytes);
    let weights = import(&architecture, &[file], None).unwrap();
    let cases: Vec<Case> = serde_json::from_slice(&read(&here.join("tests/it/minilm/reference.json"))).unwrap();
    assert_eq!(cases.len(), 3);
    // bfloat16 has 8 significant bits.
    for (precision, least) in [(Precision::F32, 0.999_999), (Precision::Bf16, 0.999)] {
        let model = FloatModel::new(&architecture, &weights, device(), precision).unwrap();
        for Case { text, ids, embedding } in &cases {
            let values = model.forward(ids, None).unwrap().values().unwrap();
            assert_eq!(values.len(), embedding.len());
            let cosine: f64 = values.iter().zip(embedding).map(|(a, b)| f64::from(*a) * b).sum();
            assert!(cosine > least, "{text}: {cosine} in {precision:?}");
        }
    }
}
