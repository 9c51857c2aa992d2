//! Model files with their data: what they become, and why some are refused.

use std::fs;

use tempfile::TempDir;
use tensorlink_folder::fixture::written;
use tensorlink_model::Family;
use tensorlink_model::fixture::{Folder, VOCABULARY, gguf};

use super::*;

/// A folder of a family, and in it a model file that trains it on, with a text.
fn tune(family: Family, context: u32) -> TempDir {
    tune_by(family, context, r#""untie": true"#)
}

/// The same, in some way.
fn tune_by(family: Family, context: u32, way: &str) -> TempDir {
    let dir = written(&Folder::new(family));
    let json = format!(
        r#"{{ "name": "tune", "from": {{ "folder": ".", "context": {context}, {way} }},
            "optimizer": {{ "learning_rate": 0.003, "warmup": 1, "weight_decay": 0.1, "clip": 1.0 }},
            "sequences": 2, "steps": 4, "operand_bits": 8, "seed": 1 }}"#
    );
    fs::write(dir.path().join("tune.json"), json).unwrap();
    fs::write(dir.path().join("text.txt"), "the cat sat on a mat the dog ran on a mat ".repeat(9)).unwrap();
    dir
}

fn drafted(dir: &TempDir) -> Result<Draft> {
    read_draft(&dir.path().join("tune.json"), &dir.path().join("text.txt"))
}

#[test]
fn what_the_data_hold_is_told() {
    let classes = (0..14).map(|n| (format!("kind {n:02}"), n + 1)).collect();
    let shown = show_census(&Census { rows: 105, columns: 4, classes });
    assert!(
        shown.starts_with("105 rows, 4 columns beside the class; rows of each class: kind 00 1, kind 01 2, "),
        "{shown}"
    );
    assert!(shown.ends_with("kind 11 12 and 2 more"), "{shown}");
}

#[test]
fn decoders_of_folders_are_trained_on_in_their_own_tokens() {
    for family in [Family::Gpt2, Family::Llama, Family::Mistral, Family::Qwen2, Family::Qwen3, Family::Gemma3] {
        let draft = drafted(&tune(family, 4)).unwrap();
        let folder = written(&Folder::new(family));
        let weights = ModelFolder::open(folder.path()).unwrap().weights().unwrap();
        let table = weights.get("embedding.tokens").unwrap().values();
        let state = &draft.training.state["embedding.tokens"];
        assert!(state.iter().zip(table).all(|(trained, given)| *trained == f64::from(*given)), "{family:?}");
        assert_eq!(state.len() % VOCABULARY, 0);
        // Words from the fifth on: no token stands around or between them.
        assert_eq!(draft.data.training.features.mantissas().to_vec()[..4], [4, 5, 7, 9]);
        let prepared = compile(&draft, &draft.cut(&[u64::MAX, u64::MAX]).unwrap()).unwrap();
        assert_eq!(prepared.stages.len(), 2, "{family:?}");
    }
}

#[test]
fn decoders_of_gguf_files_are_trained_on_in_their_own_tokens() {
    for family in [Family::Gpt2, Family::Llama, Family::Qwen2, Family::Qwen3, Family::Gemma3] {
        let dir = tune(family, 4);
        fs::write(dir.path().join("tiny.gguf"), gguf::File::of(&Folder::new(family)).bytes()).unwrap();
        let job = fs::read_to_string(dir.path().join("tune.json")).unwrap();
        fs::write(dir.path().join("tune.json"), job.replace("\"folder\": \".\"", "\"folder\": \"tiny.gguf\"")).unwrap();
        fs::write(dir.path().join("text.txt"), "the cat".repeat(40)).unwrap();
        let draft = drafted(&dir).unwrap();
        assert!(draft.base.as_ref().is_some_and(|base| base.folder.ends_with("tiny.gguf")), "{family:?}");
        // "the", " cat".
        assert_eq!(draft.data.training.features.mantissas().to_vec()[..4], [11, 14, 11, 14], "{family:?}");
        assert_eq!(compile(&draft, &draft.cut(&[u64::MAX]).unwrap()).unwrap().stages.len(), 1);
    }
}

#[test]
fn adapters_are_trained_in_place_of_weights() {
    for (family, targets) in [
        (Family::Gpt2, r#""targets": ["output", "up", "down"]"#),
        (Family::Llama, r#""targets": ["query", "key", "value", "output", "up", "gate", "down"]"#),
        (Family::Qwen3, r#""targets": ["query", "value"]"#),
        (Family::Gemma3, r#""targets": ["query", "output", "down"]"#),
    ] {
        let dir = tune_by(family, 4, &format!(r#""lora": {{ "rank": 2, "alpha": 4, {targets} }}"#));
        let draft = drafted(&dir).unwrap();
        assert!(draft.training.state.keys().all(|name| name.contains(".lora_")), "{family:?}");
        assert!(draft.base.as_ref().is_some_and(|base| base.lora.is_some() && base.folder.is_absolute()));
        let prepared = compile(&draft, &draft.cut(&[u64::MAX, u64::MAX]).unwrap()).unwrap();
        assert_eq!(prepared.stages.len(), 2, "{family:?}");
    }
}

/// Workers that just hold a cut hold the stages that come of it, with what is beside them.
fn fits(draft: &Draft, stages: usize) {
    let least = least_even(stages, |memories| draft.cut(memories).is_ok());
    let prepared = compile(draft, &draft.cut(&vec![least; stages]).unwrap()).unwrap();
    for (stage, compiled) in prepared.stages.iter().enumerate() {
        let needs = Footprint::training(&compiled.program, 1).alone();
        assert!(
            needs <= least,
            "{}: stage {stage} of {stages} needs {needs} bytes, {least} were asked for",
            draft.name
        );
    }
}

#[test]
fn what_a_cut_is_made_for_is_enough_for_its_stages() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let digits = read_draft(&examples.join("digits.json"), &examples.join("digits.csv.gz")).unwrap();
    let lora = r#""lora": { "rank": 2, "alpha": 4, "targets": ["query", "value"] }"#;
    let language = [drafted(&tune(Family::Llama, 4)).unwrap(), drafted(&tune_by(Family::Qwen3, 4, lora)).unwrap()];
    let texts = tell(&Folder::new(Family::Bert), 5, "", TEXTS).unwrap();
    for draft in [digits, texts].iter().chain(&language) {
        (1..=2).for_each(|stages| fits(draft, stages));
    }
}

#[test]
fn adapters_that_cannot_be_say_why() {
    for (family, lora, what) in [
        (Family::Gpt2, r#""rank": 2, "alpha": 4"#, "GPT-2 keeps queries, keys and values in one matrix"),
        (Family::Gpt2, r#""rank": 2, "alpha": 4, "targets": ["gate"]"#, "`mlp.gate` is no projection"),
        (Family::Llama, r#""rank": 0, "alpha": 4"#, "lora.rank is 0; choose 1 to 256"),
        (Family::Llama, r#""rank": 2, "alpha": 0"#, "lora.alpha is 0; choose 1 to 4096"),
        (Family::Llama, r#""rank": 2, "alpha": 4, "targets": []"#, "at least one projection"),
        (Family::Llama, r#""rank": 2, "alpha": 4, "targets": ["all"]"#, "unknown variant `all`"),
    ] {
        let refused = drafted(&tune_by(family, 4, &format!(r#""lora": {{ {lora} }}"#))).unwrap_err();
        assert!(format!("{refused:#}").contains(what), "{refused:#}");
    }
}

#[test]
fn folders_that_cannot_be_trained_on_say_why() {
    let refused = |dir: &TempDir| format!("{:#}", drafted(dir).unwrap_err());
    let message = refused(&tune(Family::Llama, 11));
    assert!(message.contains("the model takes at most 10"), "{message}");
    let dir = tune(Family::Llama, 4);
    fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    assert!(refused(&dir).contains("has no tokenizer.json"), "{}", refused(&dir));
}

/// A folder of an encoder, and a table of texts for it.
fn tell(folder: &Folder, context: u32, way: &str, csv: &str) -> Result<Draft> {
    let dir = written(folder);
    let json = format!(
        r#"{{ "name": "tell", "from": {{ "folder": ".", "context": {context}{way} }},
            "optimizer": {{ "learning_rate": 0.003, "warmup": 1, "weight_decay": 0.1, "clip": 1.0 }},
            "sequences": 2, "steps": 4, "operand_bits": 8, "seed": 1 }}"#
    );
    fs::write(dir.path().join("tell.json"), json).unwrap();
    fs::write(dir.path().join("texts.csv"), csv).unwrap();
    read_draft(&dir.path().join("tell.json"), &dir.path().join("texts.csv"))
}

const TEXTS: &str = "text,label\nthe cat sat on a mat,glad\nthe dog,sad\na dog ran,sad\nthe cat sat,glad\na cat,glad\n";

#[test]
fn encoders_of_folders_learn_classes_of_texts_in_their_own_tokens() {
    for family in [Family::Bert, Family::Roberta] {
        let folder = Folder::new(family);
        let draft = tell(&folder, 5, "", TEXTS).unwrap();
        let table = folder.tensors.iter().find(|tensor| tensor.name.ends_with("word_embeddings.weight")).unwrap();
        let state = &draft.training.state["embedding.tokens"];
        assert!(state.iter().zip(&table.values).all(|(begun, given)| *begun == f64::from(*given)), "{family:?}");
        assert_eq!(draft.data.classes, ["glad", "sad"]);
        // Between `<s>` and `</s>`, cut before the latter; the rest is padding.
        let ids = |set: &TrainingSet| set.features.mantissas().to_vec();
        let all = [ids(&draft.data.training), ids(&draft.data.held_out)].concat();
        for due in [[0, 4, 5, 7, 2], [0, 4, 6, 2, 1], [0, 10, 6, 8, 2]] {
            assert!(all.chunks(5).any(|row| row == due), "{family:?}: {all:?}");
        }
        let prepared = compile(&draft, &draft.cut(&[u64::MAX, u64::MAX]).unwrap()).unwrap();
        assert_eq!(prepared.stages.len(), 2, "{family:?}");

        // With a head of its own, it begins as it was, and keeps its numbers.
        let mut folder = Folder::classifier(family, &["sad", "dull", "glad"]);
        let head = folder.tensors.iter_mut().filter(|tensor| tensor.name.starts_with("classifier."));
        head.for_each(|tensor| tensor.values.fill(0.25));
        let draft = tell(&folder, 5, "", TEXTS).unwrap();
        assert_eq!(draft.data.classes, ["sad", "dull", "glad"]);
        assert_eq!(draft.training.state["head.weight"], vec![0.25; 3 * 8]);
        let unknown = format!("{:#}", tell(&folder, 5, "", &TEXTS.replace(",sad", ",mad")).unwrap_err());
        assert!(unknown.contains("class `mad` is none of those"), "{unknown}");
    }
}

#[test]
fn encoders_that_cannot_learn_say_why() {
    let folder = Folder::new(Family::Bert);
    for (context, way, csv, what) in [
        (11, "", TEXTS, "the model takes at most 10"),
        (5, r#", "lora": { "rank": 2, "alpha": 4 }"#, TEXTS, "an adapter to an encoder is not trained yet"),
        (5, "", "the cat,glad\nthe dog,glad\n", "every row is of class `glad`"),
        (5, "", "the cat sat on a mat", "row 1 has 1 columns"),
        (5, "", "", "0 rows"),
    ] {
        let refused = format!("{:#}", tell(&folder, context, way, csv).unwrap_err());
        assert!(refused.contains(what) && refused.contains("tell.json"), "{refused}");
    }
    let scores = format!("{:#}", tell(&Folder::reranker(Family::Bert), 5, "", TEXTS).unwrap_err());
    assert!(scores.contains("scores pairs of texts") && scores.contains("tell.json"), "{scores}");
}

#[test]
fn steps_must_divide_into_intervals() {
    assert_eq!(intervals(400, 50).unwrap(), 8);
    let error = intervals(400, 60).unwrap_err().to_string();
    assert!(error.contains("200") && error.contains("400"), "{error}");
    assert!(intervals(400, 0).is_err());
}
