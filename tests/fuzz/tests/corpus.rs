//! Every target on its corpus, and on the corpus cut short and with bytes changed: what the fuzzers begin with and what
//! they found.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tensorlink_fuzz::{TARGETS, folders, tokenizers};
use tensorlink_model::{Gguf, Plan, describe, gguf};
use tensorlink_native::wire::Answer;
use tensorlink_native::{Interval, Task};
use tensorlink_node::ports::chain::EventAt;
use tensorlink_node::wire::decode;
use tensorlink_node::wire::gossip::{Progress, WorkerAdvert};
use tensorlink_node::wire::manifest::Manifest;
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_program::CheckedProgram;
use tensorlink_types::Program;
use tensorlink_user::serving::archive::Receipts;

/// Most bytes of all inputs together.
const MAX_CORPUS: usize = 200_000;

fn folders() -> BTreeSet<String> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn every_target_has_a_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(folders(), targets);
    let bytes: usize = TARGETS.iter().flat_map(|(name, _)| inputs(name)).map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes <= MAX_CORPUS, "{bytes} bytes of inputs");
}

/// Whether a seed is what its name says.
fn is_real(target: &str, name: &str, bytes: &[u8]) -> bool {
    fn message<T: DeserializeOwned>(bytes: &[u8]) -> bool {
        decode::<T>("seed", bytes).is_ok()
    }
    match target {
        "rpc" if name.starts_with("request") => message::<Request>(bytes),
        "rpc" => message::<Response>(bytes),
        "gossip" if name == "advert" => message::<WorkerAdvert>(bytes),
        "gossip" => message::<Progress>(bytes),
        "plan" => decode::<Plan>("seed", bytes).is_ok_and(|plan| plan.program(2).is_ok()),
        "program" => decode::<Program>("seed", bytes).is_ok_and(|program| CheckedProgram::new(program).is_ok()),
        "native" if name == "task" => Task::from_bytes(bytes).is_ok(),
        "native" if name == "interval" => message::<Interval>(bytes),
        "native" => message::<Answer>(bytes),
        "gguf" => Gguf::parse(bytes).is_ok_and(|file| gguf::config(&file).is_ok()),
        "folder" => name.starts_with("refused") || folders::opened(bytes).is_ok(),
        "gguf_tokenizer" => name.starts_with("refused") || tokenizers::of_gguf(bytes).is_ok(),
        "sentencepiece" => name.starts_with("refused") || tokenizers::of_sentencepiece(bytes).is_ok(),
        "manifest" => Manifest::parse(bytes).is_ok(),
        "receipts" => serde_json::from_slice::<Receipts>(bytes).is_ok(),
        "events" => bytes.split(|byte| *byte == b'\n').all(|line| serde_json::from_slice::<EventAt>(line).is_ok()),
        "config" => matches!(name, "model" | "index") || describe(bytes, None).is_ok(),
        _ => true,
    }
}

/// After a change of a format `cargo run -p tensorlink-fuzz --example seeds` writes them anew.
#[test]
fn seeds_are_real_encodings() {
    let mut stale = Vec::new();
    for (target, _) in TARGETS {
        for (path, bytes) in inputs(target) {
            let name = path.file_name().unwrap().to_str().unwrap();
            if !is_real(target, name, &bytes) {
                stale.push(format!("{target}/{name}"));
            }
        }
    }
    assert!(stale.is_empty(), "{stale:?} are no encodings any more: write the seeds anew");
}

#[test]
fn no_input_of_the_corpus_breaks_a_rule() {
    for (name, target) in TARGETS {
        for (path, bytes) in inputs(name) {
            println!("{}", path.display());
            target(&bytes);
            for at in 0..bytes.len().min(64) {
                let mut changed = bytes.clone();
                changed[at * bytes.len() / 64.min(bytes.len())] ^= 1 << (at % 8);
                target(&changed);
                target(&bytes[..at]);
            }
        }
    }
}
