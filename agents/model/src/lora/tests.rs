use serde_json::{Value, json};

use super::peft::{self, PeftError};
use super::*;
use crate::random::{Dimensions, gpt2, llama};

const SIZE: Dimensions =
    Dimensions { vocabulary: 11, width: 8, layers: 2, heads: 2, kv_heads: 1, hidden: 12, context: 6 };

fn lora(targets: &[Target]) -> Lora {
    Lora { rank: 2, alpha: 4, targets: targets.iter().copied().collect() }
}

fn matrices(lora: &Lora, architecture: &Architecture) -> BTreeMap<String, Matrix> {
    let mut values = lora.grown(architecture, 1);
    let mut matrix = |Parameter { name, rows, columns }: Parameter| {
        let values = values.remove(&name).unwrap();
        (name, Matrix::new(rows, columns, values).unwrap())
    };
    lora.parameters(architecture).into_iter().map(&mut matrix).collect()
}

#[test]
fn a_model_begins_as_it_was() {
    let (architecture, lora) = (llama(SIZE), lora(&[Target::Query, Target::Down]));
    let begun = lora.begin(&architecture, 7);
    assert_eq!(begun.len(), 8);
    assert_eq!(begun, lora.begin(&architecture, 7));
    for Parameter { name, rows, columns } in lora.parameters(&architecture) {
        let values = &begun[&name];
        assert_eq!(values.len() as u32, rows * columns, "{name}");
        assert_eq!(values.iter().all(|value| *value == 0.0), name.ends_with("lora_B.weight"), "{name}");
        assert!(values.iter().all(|value| value.abs() <= (columns as f32).sqrt().recip()), "{name}");
    }
    let query = "layers.0.attention.query.lora_A.weight";
    assert_ne!(begun[query], begun["layers.1.attention.query.lora_A.weight"]);
    assert_ne!(begun[query], lora.begin(&architecture, 8)[query]);
}

#[test]
fn names_and_shapes_are_pefts() {
    let names = |architecture: &Architecture, targets: &[Target]| {
        let lora = lora(targets);
        let file = peft::safetensors(&lora, architecture, &matrices(&lora, architecture)).unwrap();
        let file = safetensors::SafeTensors::deserialize(&file).unwrap();
        let mut tensors: Vec<(String, Vec<usize>)> =
            file.tensors().into_iter().map(|(name, view)| (name, view.shape().to_vec())).collect();
        tensors.sort();
        let config: Value = serde_json::from_slice(&peft::config(&lora, architecture, "base").unwrap()).unwrap();
        (tensors[..2].to_vec(), config)
    };
    let tensor = |name: &str, shape: [usize; 2]| (name.to_owned(), shape.to_vec());
    let (tensors, config) = names(&llama(SIZE), &[Target::Value]);
    assert_eq!(
        tensors,
        [
            tensor("base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight", [2, 8]),
            tensor("base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight", [4, 2]),
        ]
    );
    assert_eq!((&config["target_modules"], &config["fan_in_fan_out"]), (&json!(["v_proj"]), &json!(false)));
    assert_eq!((&config["r"], &config["lora_alpha"], &config["peft_type"]), (&json!(2), &json!(4), &json!("LORA")));
    let (tensors, config) = names(&gpt2(SIZE), &[Target::Up, Target::Down]);
    assert_eq!(tensors[0], tensor("base_model.model.transformer.h.0.mlp.c_fc.lora_A.weight", [2, 8]));
    assert_eq!((&config["target_modules"], &config["fan_in_fan_out"]), (&json!(["c_fc", "mlp.c_proj"]), &json!(true)));
}

#[test]
fn what_is_not_plain_lora_is_refused() {
    let (architecture, lora) = (llama(SIZE), lora(&[Target::Query, Target::Gate]));
    let adapters = matrices(&lora, &architecture);
    let model = peft::safetensors(&lora, &architecture, &adapters).unwrap();
    let config: Value = serde_json::from_slice(&peft::config(&lora, &architecture, "base").unwrap()).unwrap();
    let read = |config: &Value| peft::read(&architecture, config.to_string().as_bytes(), &model);
    assert_eq!(read(&config).unwrap(), (lora, adapters));
    for (field, value, what) in [
        ("peft_type", json!("IA3"), "only LORA is read"),
        ("use_dora", json!(true), "use_dora is set"),
        ("use_rslora", json!(true), "use_rslora is set"),
        ("bias", json!("all"), "bias is set"),
        ("rank_pattern", json!({ "q_proj": 4 }), "rank_pattern is set"),
        ("modules_to_save", json!(["lm_head"]), "modules_to_save is set"),
        ("target_modules", json!(["c_attn"]), "`c_attn` is no projection"),
        ("target_modules", json!(["k_proj"]), "self_attn.k_proj.lora_A.weight is missing"),
        ("r", json!(0), "lora.rank is 0"),
        ("r", json!(4), "the configuration needs [4, 8]"),
        ("r", json!("two"), "invalid type"),
    ] {
        let mut other = config.clone();
        other[field] = value;
        let refused = read(&other).unwrap_err().to_string();
        assert!(refused.contains(what), "{field}: {refused}");
    }
    let text = config.to_string();
    assert!(matches!(peft::read(&architecture, text.as_bytes(), &model[..99]), Err(PeftError::File(_))));
    let joint = peft::read(
        &gpt2(SIZE),
        text.replace("\"q_proj\"", "\"c_attn\"").replace("\"gate_proj\",", "").replace(",\"gate_proj\"", "").as_bytes(),
        &model,
    );
    assert!(matches!(joint, Err(PeftError::Lora(LoraError::Joint(_)))), "{joint:?}");
}

#[test]
fn adapters_of_another_model_are_not_merged() {
    let (architecture, lora) = (llama(SIZE), lora(&[Target::Up]));
    let base = random::weights(&architecture, 1).unwrap();
    let mut adapters = matrices(&lora, &architecture);
    let merged = lora.merge(&architecture, &base, &adapters).unwrap();
    let changed = base.iter().filter(|(name, matrix)| merged.get(name).unwrap() != *matrix).count();
    assert_eq!(changed, 2);
    // W + s·B·A by hand.
    let name = "layers.1.mlp.up";
    let of = |part: &str| adapters[&format!("{name}.{part}.weight")].values().to_vec();
    let (a, b, at) = (of("lora_A"), of("lora_B"), (3, 5));
    let w = base.get(&format!("{name}.weight")).unwrap().values()[at.0 * 8 + at.1];
    let due = w + 2.0 * (b[at.0 * 2] * a[at.1] + b[at.0 * 2 + 1] * a[8 + at.1]);
    let got = merged.get(&format!("{name}.weight")).unwrap().values()[at.0 * 8 + at.1];
    assert!((got - due).abs() < 1e-6, "{got} {due}");

    let narrow = Lora { rank: 1, ..lora.clone() };
    assert!(matches!(narrow.merge(&architecture, &base, &adapters), Err(WeightsError::Shape { .. })));
    adapters.remove(&format!("{name}.lora_B.weight"));
    assert!(matches!(lora.merge(&architecture, &base, &adapters), Err(WeightsError::Missing(_))));
}
