//! Hugging Face's own loaders against the folders that are written of trained models: `tests/transformers`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tensorlink::folder::{Adapters, ModelFolder, Trained};
use tensorlink_graph::transformer::lora::{Lora, Target};
use tensorlink_graph::transformer::random::{Dimensions, gpt2, llama, weights};
use tensorlink_graph::transformer::{Architecture, Matrix, Parameter};
use tensorlink_tensor::Device;
use tensorlink_tensor::float::{FloatModel, Precision};

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
    let size = Dimensions { vocabulary, width: 32, layers: 2, heads: 4, groups: 2, hidden: 48, context: 32 };
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
    for test in ["test_llama", "test_gpt2", "test_llama_adapters", "test_gpt2_adapters"] {
        assert!(said.contains(test), "{said}");
    }
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
