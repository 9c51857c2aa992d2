//! Every target on its corpus, and on the corpus cut short and with bytes changed: what the fuzzers begin with and what they found.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tensorlink_fuzz::TARGETS;

/// Most bytes of all inputs together.
const MAX_CORPUS: usize = 200_000;

fn names(folder: &str, suffix: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.filter_map(|name| name.strip_suffix(suffix).map(str::to_owned)).collect()
}

fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn every_target_has_a_fuzzer_and_a_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("fuzz_targets", ".rs"), targets);
    assert_eq!(names("corpus", ""), targets);
    let bytes: usize = TARGETS.iter().flat_map(|(name, _)| inputs(name)).map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes <= MAX_CORPUS, "{bytes} bytes of inputs");
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
