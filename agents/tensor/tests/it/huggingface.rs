//! Import and float model against Hugging Face's own classes: the same configuration and tensors, the same output.

use serde_json::Value;
use tensorlink_model::describe;
use tensorlink_model::fixture::{FAMILIES, Folder, Stored};
use tensorlink_model::import::{File, import};
use tensorlink_tensor::float::{FloatModel, Precision};

use crate::device::device;

/// Most that an output may be off: that of a float's arithmetic.
const TOLERANCE: f64 = 2e-5;

#[test]
fn every_family_computes_what_hugging_face_computes() {
    let reference: Value = serde_json::from_str(include_str!("huggingface/reference.json")).unwrap();
    let tokens: Vec<u32> = serde_json::from_value(reference["tokens"].clone()).unwrap();
    let cases = reference["cases"].as_array().unwrap();
    let folders: Vec<Folder> = FAMILIES.into_iter().map(Folder::new).chain([Folder::deep_gemma3()]).collect();
    assert_eq!(cases.len(), folders.len());
    for (folder, case) in folders.iter().zip(cases) {
        let config = &folder.config;
        let family = config["model_type"].clone();
        assert_eq!(case["config"].as_object(), Some(config), "{family}: run reference.py with this configuration");
        let architecture = describe(&folder.config_json(), None).unwrap().architecture;
        let bytes = folder.safetensors(Stored::Bf16);
        let weights = import(&architecture, &[File::new("model.safetensors", &bytes)], None).unwrap();
        let model = FloatModel::new(&architecture, &weights, device(), Precision::F32).unwrap();
        let actual = model.forward(&tokens, None).unwrap().values().unwrap();
        let rows: Vec<Vec<f64>> = serde_json::from_value(case["output"].clone()).unwrap();
        let expected = rows.concat();
        assert_eq!(actual.len(), expected.len(), "{family}");
        for (n, (actual, expected)) in actual.iter().zip(expected).enumerate() {
            assert!((f64::from(*actual) - expected).abs() <= TOLERANCE, "{family}: {n} is {actual}, not {expected}");
        }
    }
}
