//! Programs read every constant of a model, whatever its file says: what none reads would be left out silently.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::config::describe;
use super::super::family::Family;
use super::super::fixture::{FAMILIES, Folder, Stored, Tensor as Given, integers};
use super::super::import::{Checkpoint, File};
use super::super::parameters::parameters;
use super::*;

/// Fields that families' files may have, and what they then have besides: biases of projections, or weights of these
/// shapes; or lack.
enum Adds {
    Biases(&'static [&'static str]),
    Head,
    NoHead,
    NoTypes,
    Nothing,
}

const ATTENTION: Adds = Adds::Biases(&["q_proj", "k_proj", "v_proj", "o_proj"]);
const MLP: Adds = Adds::Biases(&["gate_proj", "up_proj", "down_proj"]);
/// How sentence-transformers pools otherwise than by the mean.
const POOLINGS: [&str; 3] = ["cls", "max", "lasttoken"];

fn flags() -> Vec<(Family, &'static str, Value, Adds)> {
    let plain = FAMILIES.map(|family| (family, "use_cache", Value::Bool(true), Adds::Nothing));
    let mut all = Vec::from(plain);
    for family in [Family::Llama, Family::Qwen3] {
        all.push((family, "attention_bias", true.into(), ATTENTION));
    }
    all.push((Family::Llama, "mlp_bias", true.into(), MLP));
    for family in [Family::Gpt2, Family::Qwen2, Family::Gemma3] {
        all.push((family, "tie_word_embeddings", false.into(), Adds::Head));
    }
    for family in [Family::Llama, Family::Mistral, Family::Qwen3] {
        all.push((family, "tie_word_embeddings", true.into(), Adds::NoHead));
    }
    for family in [Family::Bert, Family::Roberta] {
        all.push((family, "type_vocab_size", 0.into(), Adds::NoTypes));
    }
    all
}

fn apply(folder: &mut Folder, adds: &Adds) {
    match adds {
        Adds::Biases(projections) => {
            let biases: Vec<Given> = folder.tensors.iter().filter_map(|tensor| bias(tensor, projections)).collect();
            folder.tensors.extend(biases);
        }
        Adds::Head => {
            let rows = folder.tensors.iter().find(|tensor| tensor.name.ends_with("wte.weight"));
            let rows = rows.or_else(|| folder.tensors.iter().find(|tensor| tensor.name.contains("embed_tokens")));
            let mut head = rows.unwrap().clone();
            head.name = "lm_head.weight".into();
            head.values.reverse();
            folder.tensors.push(head);
        }
        Adds::NoHead => folder.tensors.retain(|tensor| tensor.name != "lm_head.weight"),
        Adds::NoTypes => folder.tensors.retain(|tensor| !tensor.name.contains("token_type")),
        Adds::Nothing => {}
    }
}

fn bias(weight: &Given, projections: &[&str]) -> Option<Given> {
    let module = weight.name.strip_suffix(".weight")?;
    let outputs = *weight.shape.first()?;
    projections.contains(&module.rsplit('.').next()?).then(|| Given {
        name: format!("{module}.bias"),
        shape: vec![outputs],
        values: vec![0.25; outputs],
    })
}

/// The model in integers: the sites that are calibrated are those that its programs ask for.
fn quantized(folder: &Folder, pooling: Option<&[u8]>) -> Quantized {
    let architecture = describe(&folder.config_json(), pooling).unwrap().architecture;
    let bytes = folder.safetensors(Stored::F32);
    let files = [File::new("model.safetensors", &bytes)];
    let weights = Checkpoint::open(&architecture, &files, None).unwrap().weights().unwrap();
    integers::quantized(&architecture, Setting::default(), &weights).unwrap()
}

fn plan(model: &Quantized) -> Result<Plan, PlanError> {
    let a = model.architecture();
    model.plan(0..a.layers, Head::served(a.output), |_| TensorRoot::default())
}

#[test]
fn every_constant_is_read_and_every_parameter_is_in_one() {
    for (family, field, value, adds) in flags() {
        let encoder = matches!(family, Family::Bert | Family::Roberta);
        for mode in [None].into_iter().chain(POOLINGS.map(Some).into_iter().filter(|_| encoder)) {
            let told = format!("{family:?} {field} {value} {mode:?}");
            let mut folder = Folder::new(family);
            folder.config.insert(field.into(), value.clone());
            apply(&mut folder, &adds);
            let pooling = mode.map(|mode| format!("{{\"pooling_mode\": \"{mode}\"}}").into_bytes());
            let model = quantized(&folder, pooling.as_deref());
            let plan = plan(&model).unwrap();
            let read: BTreeSet<&str> = plan.constants().iter().map(|slot| slot.name.as_str()).collect();
            let has: BTreeSet<&str> = model.constants.keys().map(String::as_str).collect();
            assert_eq!(has, read, "{told}");
            // The vector of a text's number in its pair is added to those of positions.
            let left: Vec<String> = parameters(model.architecture())
                .into_iter()
                .map(|parameter| parameter.name)
                .filter(|name| !has.contains(name.as_str()) && name != "embedding.type")
                .collect();
            assert!(left.is_empty(), "{told}: {left:?}");
        }
    }
}
