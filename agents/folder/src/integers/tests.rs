use std::fs;

use tempfile::TempDir;
use tensorlink_model::fixture::{FAMILIES, Folder};
use tensorlink_model::{Family, Setting};
use tensorlink_user::serving::PreparedServing;

use super::super::fixture::{dense, integers, names, written};
use super::*;

/// A folder, its model in integers, and the folder of these: `out` in the second.
fn quantised(family: Family) -> (TempDir, Quantized, TempDir) {
    quantised_of(written(&Folder::new(family)))
}

fn quantised_of(floats: TempDir) -> (TempDir, Quantized, TempDir) {
    fs::write(floats.path().join("generation_config.json"), "{\"eos_token_id\": 2}").unwrap();
    fs::create_dir(floats.path().join("assets")).unwrap();
    let folder = ModelFolder::open(floats.path()).unwrap();
    let exact = integers(&folder, Setting::Standard);
    let parent = tempfile::tempdir().unwrap();
    write(&folder, &exact, None, &parent.path().join("out")).unwrap();
    (floats, exact, parent)
}

/// What opening and reading a quantised folder says.
fn read(folder: &Path) -> Result<Quantized, FolderError> {
    ModelFolder::open(folder)?.integers().unwrap().read()
}

#[test]
fn what_is_read_is_what_was_quantised() {
    let with_dense = (Family::Bert, dense());
    for (family, floats) in
        FAMILIES.map(|family| (family, written(&Folder::new(family)))).into_iter().chain([with_dense])
    {
        let (floats, exact, parent) = quantised_of(floats);
        let out = parent.path().join("out");
        let folder = ModelFolder::open(&out).unwrap();
        let integers = folder.integers().unwrap();
        let read = integers.read().unwrap();
        assert!(read == exact, "{family:?}");
        assert_eq!((integers.bytes(), folder.file_bytes()), (exact.bytes(), exact.bytes()));
        // The roots that a job registers, for another cut than the folder's own.
        let programs = |model: &Quantized| {
            let prepared = PreparedServing::new(model, &[0..1, 1..2], 3).unwrap();
            prepared.stages.into_iter().map(|stage| (stage.plan, stage.programs)).collect::<Vec<_>>()
        };
        assert_eq!(programs(&read), programs(&exact), "{family:?}");
        let head = Head::served(exact.architecture().output);
        let (stage, constants) = exact.stage_with(0..2, head, tensor_root).unwrap();
        let whole = 0..read.architecture().layers;
        assert_eq!(read.stage_with(whole, head, tensor_root).unwrap(), (stage, constants), "{family:?}");
        // Once more from the same floats.
        let source = ModelFolder::open(floats.path()).unwrap();
        let again = write(&source, &exact, None, &parent.path().join("again")).unwrap();
        assert_eq!(again, integers.root());
        assert_eq!(folder.ends().unwrap(), source.ends().unwrap());
        assert!(matches!(folder.weights(), Err(FolderError::Quantised(_))));
    }
}

#[test]
fn a_file_that_is_not_as_it_was_written_is_named() {
    let (_floats, _, parent) = quantised(Family::Llama);
    let out = parent.path().join("out");
    let all = ["config.json", CONSTANTS, "generation_config.json", LOSS, PLAN, MANIFEST, "tokenizer.json"];
    assert_eq!(names(&out), all);
    for name in all {
        let path = out.join(name);
        let bytes = fs::read(&path).unwrap();
        let refused = |changed: &[u8]| {
            fs::write(&path, changed).unwrap();
            let error = read(&out).unwrap_err();
            assert!(error.to_string().contains(name), "{name}: {error}");
        };
        for place in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1;
            refused(&flipped);
        }
        refused(&bytes[..bytes.len() - 1]);
        refused(&[&bytes[..], b"0"].concat());
        refused(b"");
        if name != MANIFEST {
            fs::remove_file(&path).unwrap();
            assert!(format!("{:?}", read(&out).unwrap_err()).contains(name));
        }
        fs::write(&path, &bytes).unwrap();
        read(&out).unwrap();
    }
    fs::write(out.join("chat_template.jinja"), "{{ messages }}").unwrap();
    let added = read(&out).unwrap_err();
    assert!(matches!(&added, FolderError::Changed(file) if file.ends_with("chat_template.jinja")), "{added}");
    fs::remove_file(out.join("chat_template.jinja")).unwrap();
    // Without the file that says so, it is no quantised folder, and none with floats.
    fs::remove_file(out.join(MANIFEST)).unwrap();
    assert!(matches!(ModelFolder::open(&out), Err(FolderError::NoWeights(_))));
}

#[test]
fn a_damaged_constant_is_named() {
    let (_floats, exact, parent) = quantised(Family::Gpt2);
    let out = parent.path().join("out");
    let mut bytes = fs::read(out.join(CONSTANTS)).unwrap();
    let plan = exact.plan(0..2, Head::Choice, tensor_root).unwrap();
    let slot = &plan.constants()[5];
    let before: u64 = plan.constants()[..5].iter().map(|slot| slot.ty.byte_len()).sum();
    bytes[before as usize] ^= 4;
    fs::write(out.join(CONSTANTS), bytes).unwrap();
    let error = read(&out).unwrap_err();
    assert!(matches!(&error, FolderError::Constant { name, .. } if *name == slot.name), "{error}");
}

#[test]
fn other_versions_are_told_to_quantise_again() {
    let (_floats, _, parent) = quantised(Family::Bert);
    let path = parent.path().join("out").join(MANIFEST);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"version\": 3", "\"version\": 2")).unwrap();
    let error = read(&parent.path().join("out")).unwrap_err().to_string();
    assert!(error.contains("version 2, this program reads 3") && error.contains("quantise"), "{error}");
}
