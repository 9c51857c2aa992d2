use super::super::architecture::{Norm, Output, Positions, Rotary, Scaling};
use super::super::config::describe;
use super::super::family::Family;
use super::super::fixture::{FAMILIES, Folder, Stored};
use super::super::import::{File, import};
use super::super::random::{Dimensions, bert, gemma3, gpt2, llama, weights};
use super::*;

const SIZE: Dimensions =
    Dimensions { vocabulary: 63, width: 16, layers: 2, heads: 4, kv_heads: 2, hidden: 24, context: 12 };

/// Names, shapes and values of a file's tensors.
fn tensors(file: &[u8]) -> BTreeMap<String, (Vec<usize>, Vec<u8>)> {
    let read = safetensors::SafeTensors::deserialize(file).unwrap();
    read.tensors().into_iter().map(|(name, view)| (name, (view.shape().to_vec(), view.data().to_vec()))).collect()
}

fn read(architecture: &Architecture, file: &[u8]) -> Weights {
    import(architecture, &[File::new("model.safetensors", file)], None).unwrap()
}

#[test]
fn what_is_written_is_what_the_publishers_write() {
    for family in FAMILIES.into_iter().filter(|family| !matches!(family, Family::Bert | Family::Roberta)) {
        let folder = Folder::new(family);
        let architecture = describe(&folder.config_json(), None).unwrap().architecture;
        let published = folder.safetensors(Stored::F32);
        let weights = read(&architecture, &published);
        let written = safetensors(&architecture, &weights).unwrap();
        let mut due = tensors(&published);
        // Buffers that are recomputed.
        due.retain(|name, _| !name.ends_with(".attn.bias"));
        assert!(tensors(&written) == due, "{family:?}");
        assert!(read(&architecture, &written) == weights, "{family:?}");
        let config = config(&architecture).unwrap();
        let described = describe(&config, None).unwrap();
        assert_eq!(described.architecture, architecture, "{family:?}");
        assert_eq!((described.beginning, described.ends), (None, vec![]), "{family:?}");
    }
}

#[test]
fn weights_come_back_bit_for_bit() {
    let all_seen = Architecture { local: None, ..gemma3(SIZE) };
    for architecture in [llama(SIZE), gpt2(SIZE), gemma3(SIZE), all_seen] {
        let weights = weights(&architecture, 5).unwrap();
        assert!(read(&architecture, &safetensors(&architecture, &weights).unwrap()) == weights);
        assert_eq!(describe(&config(&architecture).unwrap(), None).unwrap().architecture, architecture);
    }
}

#[test]
fn an_encoder_comes_back_with_its_classes() {
    let classes = ["law", "story", "song"].map(String::from);
    let architecture = Architecture { output: Output::Classes(3), ..bert(SIZE) };
    let weights = weights(&architecture, 5).unwrap();
    let written = safetensors(&architecture, &weights).unwrap();
    assert!(read(&architecture, &written) == weights);
    let names = tensors(&written);
    assert_eq!(names["classifier.weight"].0, [3, 16]);
    assert_eq!(names["bert.pooler.dense.bias"].0, [16]);
    let config = classifier_config(&architecture, &classes).unwrap();
    let described = describe(&config, None).unwrap();
    assert_eq!((described.architecture, described.classes), (architecture.clone(), classes.to_vec()));
    let unsaid = Err(ExportError::Unsaid("bert".into()));
    assert_eq!(classifier_config(&architecture, &classes[..2]), unsaid);
    assert_eq!(classifier_config(&bert(SIZE), &classes), unsaid);
}

#[test]
fn roberta_keeps_its_pooler_with_its_classes() {
    let architecture = Architecture { family: Family::Roberta, output: Output::Classes(3), ..bert(SIZE) };
    let weights = weights(&architecture, 5).unwrap();
    let written = safetensors(&architecture, &weights).unwrap();
    assert!(read(&architecture, &written) == weights);
    let names = tensors(&written);
    assert!(["classifier.dense.weight", "classifier.out_proj.bias"].iter().all(|name| names.contains_key(*name)));
}

#[test]
fn every_stretching_of_the_context_is_told() {
    for scaling in [
        Scaling::Linear { factor: 2.0 },
        Scaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original_context: 8 },
        Scaling::Yarn { factor: 4.0, fast: 32.0, slow: 1.0, original_context: 8, amplitude: 1.14 },
    ] {
        let positions = Positions::Rotary(Rotary { theta: 1e6, width: 4, scaling });
        let architecture = Architecture { positions, ..llama(SIZE) };
        assert_eq!(describe(&config(&architecture).unwrap(), None).unwrap().architecture, architecture);
    }
}

#[test]
fn what_no_configuration_says_is_refused() {
    let odd = Architecture { norm: Norm::Layer, ..llama(SIZE) };
    assert_eq!(config(&odd), Err(ExportError::Unsaid("llama".into())));
    assert_eq!(config(&bert(SIZE)), Err(ExportError::Unsaid("bert".into())));
    let other = weights(&llama(Dimensions { layers: 1, ..SIZE }), 5).unwrap();
    assert!(matches!(safetensors(&llama(SIZE), &other), Err(ExportError::Weights(WeightsError::Missing(_)))));
}
