use std::fs;

use serde_json::{Value, json};
use tensorlink_model::Family;
use tensorlink_model::fixture::{Folder, Stored, tokenizer_json};

use super::super::WEIGHTS;
use super::super::fixture::{names, written};
use super::*;

#[test]
fn what_is_used_is_copied_and_what_is_not_is_named() {
    let dir = written(&Folder::new(Family::Bert));
    for (name, content) in [
        ("pytorch_model.bin", "a pickle"),
        ("modeling.py", "a script"),
        ("README.md", "a text"),
        ("generation_config.json", "{}"),
        ("tokenizer_config.json", "{}"),
        ("modules.json", "[]"),
    ] {
        fs::write(dir.path().join(name), content).unwrap();
    }
    fs::create_dir(dir.path().join("1_Pooling")).unwrap();
    fs::write(dir.path().join("1_Pooling/config.json"), "{\"pooling_mode_cls_token\": true}").unwrap();
    fs::create_dir(dir.path().join("onnx")).unwrap();

    let Survey { folder, refused, ignored } = Survey::of(dir.path()).unwrap();
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(ignored, ["README.md", "modeling.py", "onnx", "pytorch_model.bin"]);
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("copy");
    let folder = folder.unwrap();
    folder.copy(&out).unwrap();
    let used = ["1_Pooling", "config.json", "generation_config.json", "model.safetensors", "modules.json"];
    assert_eq!(names(&out), [&used[..], &["tokenizer.json", "tokenizer_config.json"]].concat());
    let copy = ModelFolder::open(&out).unwrap();
    assert_eq!(copy.description(), folder.description());
    assert_eq!(copy.weights().unwrap(), folder.weights().unwrap());
    assert!(matches!(folder.copy(&out), Err(FolderError::Exists(_))));
}

#[test]
fn shards_are_copied_with_their_index() {
    let model = Folder::new(Family::Qwen2);
    let dir = written(&model);
    let (index, shards) = model.sharded(2, Stored::F16);
    fs::remove_file(dir.path().join(WEIGHTS)).unwrap();
    fs::write(dir.path().join(INDEX), index).unwrap();
    for (name, bytes) in &shards {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("copy");
    let survey = Survey::of(dir.path()).unwrap();
    assert_eq!(survey.ignored, [""; 0]);
    let folder = survey.folder.unwrap();
    folder.copy(&out).unwrap();
    assert_eq!(ModelFolder::open(&out).unwrap().weights().unwrap(), folder.weights().unwrap());
    // A shard that disappears meanwhile leaves nothing behind.
    fs::remove_file(dir.path().join(&shards[1].0)).unwrap();
    let error = folder.copy(&parent.path().join("other")).unwrap_err();
    assert!(matches!(&error, FolderError::Read { file, .. } if file.ends_with(&shards[1].0)), "{error}");
    assert_eq!(names(parent.path()), ["copy"]);
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let mut model = Folder::new(Family::Llama);
    model.tensors.retain(|tensor| tensor.name != "model.layers.1.mlp.up_proj.weight");
    model.tensor("model.layers.0.mlp.down_proj.weight").unwrap().shape.reverse();
    model.tensor("model.norm.weight").unwrap().values[3] = f32::NAN;
    model.tensor("lm_head.weight").unwrap().values[7] = f32::INFINITY;
    let dir = written(&model);
    let mut tokenizer: Value = serde_json::from_slice(&tokenizer_json()).unwrap();
    tokenizer["model"]["vocab"]["zebra"] = 16.into();
    fs::write(dir.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(dir.path().join("generation_config.json"), "{\"eos_token_id\": 99}").unwrap();
    fs::write(dir.path().join("tokenizer_config.json"), json!({"chat_template": "{% if %}"}).to_string()).unwrap();
    let Survey { folder, refused, .. } = Survey::of(dir.path()).unwrap();
    assert!(folder.is_none());
    let said: Vec<String> = refused.iter().map(ToString::to_string).collect();
    for part in [
        "token 16",
        "eos_token_id 99",
        "tokenizer_config.json",
        "model.layers.1.mlp.up_proj.weight",
        "model.layers.0.mlp.down_proj.weight",
        "`model.norm.weight`[3] is NaN",
        "`lm_head.weight`[7] is inf",
    ] {
        assert!(said.iter().any(|said| said.contains(part)), "{part}: {said:#?}");
    }
    assert_eq!(said.len(), 7, "{said:#?}");
}

#[test]
fn what_cannot_be_understood_hides_nothing_else() {
    let dir = written(&Folder::new(Family::Llama));
    fs::write(dir.path().join("config.json"), "{\"model_type\": \"t5\"}").unwrap();
    fs::write(dir.path().join("chat_template.jinja"), b"{{ \xff }}").unwrap();
    fs::remove_file(dir.path().join(WEIGHTS)).unwrap();
    let refused = Survey::of(dir.path()).unwrap().refused;
    assert!(
        matches!(refused.as_slice(), [FolderError::Config(_), FolderError::Template(_), FolderError::NoWeights(_)]),
        "{refused:?}"
    );
}

#[test]
fn a_template_is_tried() {
    let dir = written(&Folder::new(Family::Llama));
    fs::write(dir.path().join("chat_template.jinja"), "{{ unheard_of() }}").unwrap();
    let refused = Survey::of(dir.path()).unwrap().refused;
    assert!(matches!(refused.as_slice(), [FolderError::Template(_)]), "{refused:?}");
    fs::write(dir.path().join("chat_template.jinja"), "{{ messages[0].content }}").unwrap();
    assert!(Survey::of(dir.path()).unwrap().refused.is_empty());
}

#[test]
fn neither_files_nor_integers_are_surveyed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("quantized.json"), "{}").unwrap();
    assert!(matches!(Survey::of(dir.path()), Err(FolderError::Quantised(_))));
    assert!(matches!(Survey::of(&dir.path().join("none")), Err(FolderError::Nothing(_))));
}
