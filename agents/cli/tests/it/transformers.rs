//! Hugging Face's own loaders against the folders that are written of trained models: `tests/transformers`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tensorlink_folder::{Adapters, Classifier, ModelFolder, Trained, Tuned};
use tensorlink_model::lora::{Lora, Target};
use tensorlink_model::random::{Dimensions, bert, gpt2, llama, weights};
use tensorlink_model::{Architecture, Family, Matrix, Output, Parameter, Pooling, Positions, Weights, export};
use tensorlink_tensor::Device;
use tensorlink_tensor::float::{FloatModel, Precision};
use tensorlink_training::data::labelled::SPECIAL;

const TEXT: &str = "In the\n beginning, 日!";

#[test]
fn the_official_loaders_read_what_is_trained_here() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages = root.join(".toolchain/python-transformers");
    assert!(packages.join("transformers").is_dir(), "{} lacks transformers: run script/setup", packages.display());
    let mut characters: Vec<char> = TEXT.chars().collect();
    characters.sort_unstable();
    characters.dedup();
    let characters: Vec<String> = characters.into_iter().map(String::from).collect();
    let vocabulary = u32::try_from(characters.len()).unwrap();
    let size = Dimensions { vocabulary, width: 32, layers: 2, heads: 4, kv_heads: 2, hidden: 48, context: 32 };
    let folders = tempfile::tempdir().unwrap();
    let targets: BTreeMap<&str, &[Target]> =
        BTreeMap::from([("llama", &Target::ALL[..]), ("gpt2", &[Target::Output, Target::Up, Target::Down])]);
    for (name, architecture) in [("llama", llama(size)), ("gpt2", gpt2(size))] {
        let folder = folders.path().join(name);
        let weights = weights(&architecture, 11).unwrap();
        let trained =
            Trained { architecture: &architecture, weights: &weights, characters: &characters, texts: &[TEXT.into()] };
        trained.write(&folder).unwrap();
        let ids = ModelFolder::open(&folder).unwrap().tokenizer().encode(TEXT).unwrap();
        let float = FloatModel::new(&architecture, &weights, Device::Cpu, Precision::F32).unwrap();
        let logits = float.forward(&ids, None).unwrap().values().unwrap();
        let adapters = adapters(&architecture, targets[name]);
        adapters.write(&architecture, &folder, &folders.path().join(format!("{name}-adapters"))).unwrap();
        let merged = adapters.lora.merge(&architecture, &weights, &adapters.matrices).unwrap();
        let float = FloatModel::new(&architecture, &merged, Device::Cpu, Precision::F32).unwrap();
        let adapted = float.forward(&ids, None).unwrap().values().unwrap();
        let due = json!({ "text": TEXT, "ids": ids, "logits": logits, "adapted": adapted });
        std::fs::write(folder.join("due.json"), due.to_string()).unwrap();
    }
    encoders(&characters, folders.path());
    reranker(&root, folders.path());

    let mut command = Command::new("python3");
    command
        .args(["-B", "-m", "unittest", "-v", "test_export"])
        .current_dir(root.join("tests/transformers"))
        .env("PYTHONPATH", &packages)
        .env("HF_HUB_OFFLINE", "1")
        .env("JAX_PLATFORMS", "cpu")
        .env("FOLDERS", folders.path());
    let output = command.output().expect("python3 cannot be started: install it, then run script/setup");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // An empty suite succeeds too.
    for test in [
        "test_llama",
        "test_gpt2",
        "test_llama_adapters",
        "test_gpt2_adapters",
        "test_bert",
        "test_roberta",
        "test_reranker",
    ] {
        assert!(said.contains(test), "{said}");
    }
}

/// Encoders with classes: one made from scratch, and the same as a RoBERTa, trained on from its folder.
fn encoders(characters: &[String], folders: &Path) {
    let tokens: Vec<String> = SPECIAL.map(String::from).into_iter().chain(characters.iter().cloned()).collect();
    let vocabulary = u32::try_from(tokens.len()).unwrap();
    let size = Dimensions { vocabulary, width: 32, layers: 2, heads: 4, kv_heads: 4, hidden: 48, context: 32 };
    let classes = ["law", "story", "song"].map(String::from);
    let architecture = Architecture { output: Output::Classes(3), ..bert(size) };
    let drawn = weights(&architecture, 11).unwrap();
    let folder = folders.join("bert");
    let scratch =
        Classifier { architecture: &architecture, weights: &drawn, tokens: &tokens, classes: &classes, texts: &[] };
    scratch.write(&folder).unwrap();
    due(&folder, &architecture, &drawn);

    // The folder as it was before it had classes: RoBERTa's first position is the one after its padding.
    let base = folders.join("roberta-base");
    std::fs::create_dir(&base).unwrap();
    let config = json!({ "model_type": "roberta", "architectures": ["RobertaModel"], "vocab_size": vocabulary, "hidden_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "max_position_embeddings": 33,
        "type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 0, "bos_token_id": null, "eos_token_id": null });
    std::fs::write(base.join("config.json"), config.to_string()).unwrap();
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(folder.join(name), base.join(name)).unwrap();
    }
    let (family, positions) = (Family::Roberta, Positions::Learned { first: 1 });
    let architecture = Architecture { family, positions, epsilon: 1e-5, ..architecture };
    let drawn = weights(&architecture, 12).unwrap();
    let without = Architecture { output: Output::Embedding(Pooling::Mean), ..architecture.clone() };
    let stored = Weights::new(&without, drawn.clone().into_matrices()).unwrap();
    let stored = export::safetensors(&without, &stored).unwrap();
    std::fs::write(base.join("model.safetensors"), stored).unwrap();
    let out = folders.join("roberta");
    let base = ModelFolder::open(&base).unwrap();
    Tuned { folder: &base, architecture: &architecture, weights: &drawn, classes: &classes }.write(&out).unwrap();
    due(&out, &architecture, &drawn);
}

/// An encoder that scores pairs of texts, which it reads by a published tokenizer, up to 40 tokens.
fn reranker(root: &Path, folders: &Path) {
    let tokenizer = root.join(".toolchain/models/all-MiniLM-L6-v2/tokenizer.json");
    let folder = folders.join("reranker");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(&tokenizer, folder.join("tokenizer.json")).expect("run script/setup, which fetches the model");
    let vocabulary = 30_522;
    let size = Dimensions { vocabulary, width: 32, layers: 2, heads: 4, kv_heads: 4, hidden: 48, context: 64 };
    let architecture = Architecture { output: Output::Classes(1), pairs: true, ..bert(size) };
    let drawn = weights(&architecture, 13).unwrap();
    let config = json!({ "model_type": "bert", "architectures": ["BertForSequenceClassification"],
        "vocab_size": vocabulary, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "max_position_embeddings": 64, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        "hidden_act": "gelu", "pad_token_id": 0, "id2label": { "0": "LABEL_0" }, "label2id": { "LABEL_0": 0 } });
    let read = json!({ "tokenizer_class": "BertTokenizer", "model_max_length": 40 });
    let files = [
        ("config.json", config.to_string().into_bytes()),
        ("tokenizer_config.json", read.to_string().into_bytes()),
        ("model.safetensors", export::safetensors(&architecture, &drawn).unwrap()),
    ];
    files.iter().for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes).unwrap());
    let opened = ModelFolder::open(&folder).unwrap();
    assert_eq!(opened.architecture(), &architecture);
    let (pairs, float) =
        (opened.pairs().unwrap().unwrap(), FloatModel::new(&architecture, &drawn, Device::Cpu, Precision::F32));
    let (float, long) = (float.unwrap(), "A naïve photographer, who saw [SEP] rings. ".repeat(6));
    let texts = [
        ["Which planet has rings?", "Saturn's rings are of ice."],
        ["Saturn's rings are of ice.", "Which planet has rings?"],
        ["Which planet has rings?", &long],
        [&long, "Saturn"],
        [&long, &long],
        ["Which?", ""],
    ];
    let ids = texts.map(|[query, document]| pairs.encode(query, document).unwrap());
    let score = |ids: &Vec<u32>| float.forward(ids, None).unwrap().values().unwrap()[0];
    let part =
        |of: fn(u32) -> u32| ids.iter().map(|ids| ids.iter().map(|id| of(*id)).collect()).collect::<Vec<Vec<u32>>>();
    let due = json!({ "pairs": texts, "ids": part(|id| id % 30_522), "types": part(|id| id / 30_522),
        "scores": ids.iter().map(score).collect::<Vec<f32>>() });
    std::fs::write(folder.join("due.json"), due.to_string()).unwrap();
}

/// What the float reference makes of the text, beside the folder's own names of classes.
fn due(folder: &Path, architecture: &Architecture, weights: &Weights) {
    let opened = ModelFolder::open(folder).unwrap();
    assert_eq!(opened.architecture(), architecture);
    let ids = opened.tokenizer().encode(TEXT).unwrap();
    let float = FloatModel::new(architecture, weights, Device::Cpu, Precision::F32).unwrap();
    let logits = float.forward(&ids, None).unwrap().values().unwrap();
    let due = json!({ "text": TEXT, "ids": ids, "logits": logits, "classes": opened.description().classes });
    std::fs::write(folder.join("due.json"), due.to_string()).unwrap();
}

/// Adapters beside these projections, none of them zero.
fn adapters(architecture: &Architecture, targets: &[Target]) -> Adapters {
    let lora = Lora { rank: 3, alpha: 6, targets: targets.iter().copied().collect() };
    let mut grown = lora.grown(architecture, 2);
    let mut matrix = |p: Parameter| {
        let values = grown.remove(&p.name).unwrap();
        (p.name, Matrix::new(p.rows, p.columns, values).unwrap())
    };
    let matrices = lora.parameters(architecture).into_iter().map(&mut matrix).collect();
    Adapters { lora, matrices }
}
