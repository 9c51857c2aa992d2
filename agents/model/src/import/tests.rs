use super::super::config::describe;
use super::super::family::Family;
use super::super::fixture::{FAMILIES, Folder, LAYERS, Stored, Tensor as Given};
use super::super::names;
use super::super::parameters::{Parameter, WeightsError, parameters};
use super::*;

fn architecture(folder: &Folder) -> Architecture {
    describe(&folder.config_json(), None).unwrap().architecture
}

fn import_one(folder: &Folder, stored: Stored) -> Result<Weights, ImportError> {
    let bytes = folder.safetensors(stored);
    import(&architecture(folder), &[File::new("model.safetensors", &bytes)], None)
}

fn import_bytes(bytes: &[u8]) -> Result<Weights, ImportError> {
    import(&architecture(&Folder::new(Family::Llama)), &[File::new("model.safetensors", bytes)], None)
}

/// A folder with one tensor changed.
fn edited(family: Family, tensor: &str, edit: impl FnOnce(&mut Given)) -> Folder {
    let mut folder = Folder::new(family);
    edit(folder.tensor(tensor).unwrap());
    folder
}

#[test]
fn every_family_is_read_from_every_type() {
    for family in FAMILIES {
        let folder = Folder::new(family);
        let exact = import_one(&folder, Stored::F32).unwrap();
        for stored in [Stored::F16, Stored::Bf16] {
            assert_eq!(import_one(&folder, stored).unwrap(), exact, "{family:?} {stored:?}");
        }
    }
}

#[test]
fn values_arrive_where_they_belong() {
    let place = |family, theirs: &str, ours: &str| {
        let mut folder = Folder::new(family);
        let weights = import_one(&folder, Stored::F32).unwrap();
        (folder.tensor(theirs).unwrap().clone(), weights.get(ours).unwrap().clone())
    };
    for (family, theirs, ours) in [
        (Family::Bert, "bert.encoder.layer.1.attention.self.key.weight", "layers.1.attention.key.weight"),
        (Family::Bert, "bert.encoder.layer.0.attention.output.LayerNorm.bias", "layers.0.attention.norm.bias"),
        (Family::Bert, "bert.encoder.layer.0.output.LayerNorm.weight", "layers.0.mlp.norm.gain"),
        (Family::Roberta, "roberta.embeddings.position_embeddings.weight", "embedding.positions"),
        (Family::Gpt2, "transformer.h.1.ln_2.bias", "layers.1.mlp.norm.bias"),
        (Family::Llama, "model.layers.1.mlp.gate_proj.weight", "layers.1.mlp.gate.weight"),
        (Family::Llama, "model.layers.0.post_attention_layernorm.weight", "layers.0.mlp.norm.gain"),
        (Family::Llama, "lm_head.weight", "head.weight"),
        (Family::Qwen2, "model.layers.0.self_attn.v_proj.bias", "layers.0.attention.value.bias"),
        (Family::Qwen3, "model.layers.1.self_attn.k_norm.weight", "layers.1.attention.key_norm.gain"),
        (Family::Gemma3, "model.layers.1.mlp.gate_proj.weight", "layers.1.mlp.gate.weight"),
    ] {
        let (theirs, ours) = place(family, theirs, ours);
        assert_eq!(theirs.values, ours.values());
    }
    // Gains that count from 1.
    for (theirs, ours) in [
        ("input_layernorm", "attention.norm"),
        ("post_attention_layernorm", "attention.output_norm"),
        ("pre_feedforward_layernorm", "mlp.norm"),
        ("post_feedforward_layernorm", "mlp.output_norm"),
        ("self_attn.q_norm", "attention.query_norm"),
    ] {
        let (theirs, ours) =
            place(Family::Gemma3, &format!("model.layers.1.{theirs}.weight"), &format!("layers.1.{ours}.gain"));
        assert!(theirs.values.iter().map(|gain| gain + 1.0).eq(ours.values().iter().copied()));
    }
    // Conv1D: [inputs, outputs], the three projections side by side.
    for (part, name) in ["query", "key", "value"].into_iter().enumerate() {
        let (theirs, ours) =
            place(Family::Gpt2, "transformer.h.1.attn.c_attn.weight", &format!("layers.1.attention.{name}.weight"));
        for (output, input) in (0..8).flat_map(|output| (0..8).map(move |input| (output, input))) {
            assert_eq!(ours.values()[output * 8 + input], theirs.values[input * 24 + part * 8 + output]);
        }
        let (theirs, ours) =
            place(Family::Gpt2, "transformer.h.1.attn.c_attn.bias", &format!("layers.1.attention.{name}.bias"));
        assert_eq!(ours.values(), &theirs.values[part * 8..][..8]);
    }
    let (theirs, ours) = place(Family::Gpt2, "transformer.h.0.mlp.c_fc.weight", "layers.0.mlp.up.weight");
    assert_eq!((ours.rows(), ours.columns()), (12, 8));
    assert!((0..96).all(|n| ours.values()[n] == theirs.values[n % 8 * 12 + n / 8]));
    let (theirs, ours) = place(Family::Bert, "bert.embeddings.token_type_embeddings.weight", "embedding.type");
    assert_eq!(ours.values(), &theirs.values[..8]);
}

#[test]
fn names_are_read_with_and_without_prefix_and_in_their_oldest_form() {
    for (family, prefix) in [(Family::Bert, "bert."), (Family::Gpt2, "transformer."), (Family::Qwen3, "model.")] {
        let mut folder = Folder::new(family);
        let with = import_one(&folder, Stored::F32).unwrap();
        for tensor in &mut folder.tensors {
            tensor.name = tensor.name.strip_prefix(prefix).unwrap_or(&tensor.name).to_owned();
        }
        assert_eq!(import_one(&folder, Stored::F32).unwrap(), with);
    }
    // The text of a model that takes images as well, whose other tensors play no part.
    for (text, images) in [("language_model.model.", ""), ("model.language_model.", "model.")] {
        let mut folder = Folder::new(Family::Gemma3);
        let alone = import_one(&folder, Stored::F32).unwrap();
        for tensor in &mut folder.tensors {
            tensor.name = tensor.name.replacen("model.", text, 1);
        }
        for part in ["vision_tower.vision_model.embeddings.patch_embedding.weight", "multi_modal_projector.x"] {
            folder.tensors.push(Given { name: format!("{images}{part}"), ..folder.tensors[0].clone() });
        }
        assert_eq!(import_one(&folder, Stored::F32).unwrap(), alone, "{text}");
    }
    let mut folder = Folder::new(Family::Bert);
    let now = import_one(&folder, Stored::F32).unwrap();
    for tensor in &mut folder.tensors {
        tensor.name = tensor.name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("Norm.bias", "Norm.beta");
    }
    assert_eq!(import_one(&folder, Stored::F32).unwrap(), now);
}

#[test]
fn rows_beyond_the_context_are_dropped() {
    let mut folder = Folder::new(Family::Roberta);
    let all = import_one(&folder, Stored::F32).unwrap();
    folder.config.insert("max_position_embeddings".into(), 7.into());
    let fewer = import_one(&folder, Stored::F32).unwrap();
    let positions = |weights: &Weights| weights.get("embedding.positions").unwrap().values().to_vec();
    assert_eq!(positions(&fewer), &positions(&all)[..7 * 8]);
    folder.config.insert("max_position_embeddings".into(), 13.into());
    assert!(matches!(import_one(&folder, Stored::F32), Err(ImportError::Shape { .. })));
}

#[test]
fn shards_are_read_through_their_index() {
    let folder = Folder::new(Family::Llama);
    let (index, shards) = folder.sharded(3, Stored::Bf16);
    let files: Vec<File<'_>> = shards.iter().map(|(name, bytes)| File::new(name, bytes)).collect();
    let architecture = architecture(&folder);
    let whole = import_one(&folder, Stored::Bf16).unwrap();
    assert_eq!(import(&architecture, &files, Some(&index)).unwrap(), whole);
    assert!(indexed_files(&index).unwrap().iter().eq(files.iter().map(|file| file.name)));

    let missing = import(&architecture, &files[..2], Some(&index)).unwrap_err();
    assert!(matches!(&missing, ImportError::IndexFile { file, .. } if file == files[2].name), "{missing}");
    let swapped = [files[0], File::new(files[1].name, files[2].bytes), files[2]];
    assert!(matches!(import(&architecture, &swapped, Some(&index)), Err(ImportError::Twice { .. })));
    let swapped = [files[0], File { name: files[1].name, ..files[2] }, File { name: files[2].name, ..files[1] }];
    let moved = import(&architecture, &swapped, Some(&index)).unwrap_err();
    assert!(matches!(&moved, ImportError::IndexTensor { .. }), "{moved}");
}

#[test]
fn an_index_opens_nothing_outside_the_folder() {
    for index in [
        &b"{"[..],
        b"{}",
        b"\xff",
        br#"{ "weight_map": {} }"#,
        br#"{ "weight_map": { "a": 7 } }"#,
        br#"{ "weight_map": { "a": "../secret.safetensors" } }"#,
        br#"{ "weight_map": { "a": "/etc/x.safetensors" } }"#,
        br#"{ "weight_map": { "a": "..\\x.safetensors" } }"#,
        br#"{ "weight_map": { "a": "pytorch_model.bin" } }"#,
    ] {
        assert!(matches!(indexed_files(index), Err(ImportError::Index(_))), "{}", String::from_utf8_lossy(index));
    }
}

#[test]
fn truncated_and_inconsistent_files_are_refused() {
    let bytes = Folder::new(Family::Llama).safetensors(Stored::F32);
    for length in [0, 7, 8, 100, bytes.len() / 2, bytes.len() - 1] {
        let error = import_bytes(&bytes[..length]).unwrap_err();
        assert!(matches!(&error, ImportError::Syntax { file, .. } if file == "model.safetensors"), "{length}: {error}");
    }
    let longer = [bytes.as_slice(), &[0; 4]].concat();
    assert!(matches!(import_bytes(&longer), Err(ImportError::Syntax { .. })));
    let mut huge = bytes.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(import_bytes(&huge), Err(ImportError::Syntax { .. })));
    // A header of the same length whose first shape is another one.
    let text = String::from_utf8_lossy(&bytes).replacen("\"shape\":[16,8]", "\"shape\":[17,8]", 1);
    let header = text.find("[17,8]").unwrap();
    let mut bent = bytes;
    bent[header..header + 6].copy_from_slice(b"[17,8]");
    assert!(matches!(import_bytes(&bent), Err(ImportError::Syntax { .. })));
}

#[test]
fn tensors_that_are_absent_or_too_many_are_named() {
    let without = |family, tensor: &str| {
        let mut folder = Folder::new(family);
        folder.tensors.retain(|given| given.name != tensor);
        import_one(&folder, Stored::F32).unwrap_err()
    };
    for (family, tensor) in [
        (Family::Llama, "model.layers.1.mlp.up_proj.weight"),
        (Family::Llama, "lm_head.weight"),
        (Family::Gpt2, "transformer.h.0.attn.c_attn.bias"),
        (Family::Bert, "bert.embeddings.word_embeddings.weight"),
    ] {
        let error = without(family, tensor);
        assert!(matches!(&error, ImportError::Missing { tensor: t, .. } if t == tensor), "{tensor}: {error}");
    }
    let added = |family, name: &str| {
        let mut folder = Folder::new(family);
        let mut tensor = folder.tensors[0].clone();
        tensor.name = name.into();
        folder.tensors.push(tensor);
        import_one(&folder, Stored::F32)
    };
    for (family, tensor) in [
        (Family::Llama, format!("model.layers.{LAYERS}.mlp.up_proj.weight")),
        (Family::Llama, "model.layers.0.self_attn.q_proj.bias".into()),
        (Family::Llama, "model.layers.0.self_attn.q_proj.lora_A".into()),
        (Family::Bert, "classifier.weight".into()),
    ] {
        let error = added(family, &tensor).unwrap_err();
        assert!(matches!(&error, ImportError::Unknown { tensor: t, .. } if *t == tensor), "{tensor}: {error}");
    }
    for (family, tensor) in [
        (Family::Llama, "model.layers.0.self_attn.rotary_emb.inv_freq"),
        (Family::Bert, "bert.embeddings.position_ids"),
        (Family::Bert, "cls.predictions.bias"),
        (Family::Roberta, "lm_head.dense.weight"),
        (Family::Gpt2, "transformer.h.0.attn.masked_bias"),
    ] {
        assert!(added(family, tensor).is_ok(), "{tensor}");
    }
    let none = import(&architecture(&Folder::new(Family::Llama)), &[], None).unwrap_err();
    assert!(none.to_string().contains("in no file"), "{none}");
}

#[test]
fn a_tied_output_must_be_the_embedding() {
    let mut folder = Folder::new(Family::Gpt2);
    let mut head = folder.tensor("transformer.wte.weight").unwrap().clone();
    head.name = "lm_head.weight".into();
    folder.tensors.push(head);
    assert!(import_one(&folder, Stored::F16).is_ok());
    folder.tensor("lm_head.weight").unwrap().values[77] += 0.5;
    assert!(matches!(import_one(&folder, Stored::F16), Err(ImportError::Untied { .. })));
    folder.config.insert("tie_word_embeddings".into(), false.into());
    assert!(import_one(&folder, Stored::F16).unwrap().get("head.weight").is_ok());
    // Within a model that takes images as well.
    let mut folder = Folder::new(Family::Gemma3);
    let mut head = folder.tensor("model.embed_tokens.weight").unwrap().clone();
    head.name = "language_model.lm_head.weight".into();
    folder.tensors.push(head);
    assert!(import_one(&folder, Stored::F16).is_ok());
    folder.tensor("language_model.lm_head.weight").unwrap().values[77] += 0.5;
    assert!(matches!(import_one(&folder, Stored::F16), Err(ImportError::Untied { .. })));
}

#[test]
fn shapes_against_the_configuration_are_refused() {
    for (family, tensor) in [
        (Family::Llama, "model.layers.1.self_attn.k_proj.weight"),
        (Family::Llama, "model.embed_tokens.weight"),
        (Family::Gpt2, "transformer.h.0.mlp.c_fc.weight"),
        (Family::Gpt2, "transformer.h.0.attn.c_attn.weight"),
    ] {
        let error = import_one(&edited(family, tensor, |t| t.shape.reverse()), Stored::F32).unwrap_err();
        assert!(matches!(&error, ImportError::Shape { tensor: t, .. } if t == tensor), "{tensor}: {error}");
    }
    for (family, tensor) in
        [(Family::Bert, "bert.embeddings.LayerNorm.weight"), (Family::Gpt2, "transformer.h.0.attn.c_attn.bias")]
    {
        let error = import_one(&edited(family, tensor, |t| t.shape.insert(0, 1)), Stored::F32).unwrap_err();
        assert!(matches!(error, ImportError::Shape { .. }), "{error}");
    }
}

#[test]
fn numbers_of_other_types_are_refused() {
    let bytes = Folder::new(Family::Llama).safetensors(Stored::F32);
    for dtype in ["I32", "U32"] {
        // As long as "F32", so that offsets and header stay.
        let mut other = bytes.clone();
        while let Some(at) = other.windows(5).position(|five| five == b"\"F32\"") {
            other[at + 1..at + 4].copy_from_slice(dtype.as_bytes());
        }
        let error = import_bytes(&other).unwrap_err();
        assert!(matches!(&error, ImportError::Dtype { dtype: d, .. } if d == dtype), "{error}");
    }
}

#[test]
fn numbers_that_are_none_are_refused() {
    for (value, stored) in
        [(f32::NAN, Stored::F32), (f32::INFINITY, Stored::F16), (f32::NEG_INFINITY, Stored::Bf16), (1e5, Stored::F16)]
    {
        let name = "transformer.h.1.attn.c_attn.weight";
        // Row 2 of the inputs, output 3 of the values.
        let error = import_one(&edited(Family::Gpt2, name, |t| t.values[2 * 24 + 19] = value), stored).unwrap_err();
        let placed = matches!(&error, ImportError::NotFinite { tensor, element: 67, .. } if tensor == name);
        assert!(placed, "{error}");
    }
}

#[test]
fn every_parameter_has_a_place_in_every_family() {
    for family in FAMILIES {
        for parameter in parameters(&architecture(&Folder::new(family))) {
            assert!(names::source(family, &parameter).is_some(), "{family:?} {}", parameter.name);
        }
        let other = Parameter { name: "layers.0.attention.extra.weight".into(), rows: 1, columns: 1 };
        assert_eq!(names::source(family, &other), None);
    }
    let error = ImportError::from(WeightsError::Missing("x".into()));
    assert!(error.to_string().starts_with("x is missing"));
}

#[test]
fn ranges_that_overlap_or_leave_the_file_are_refused() {
    let bytes = Folder::new(Family::Llama).safetensors(Stored::F32);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let at = text.find("\"data_offsets\":[0,512]").unwrap() + "\"data_offsets\":[".len();
    // As long as before, so that the header's length stays: over the next tensor, behind the file, the wrong way round.
    for range in ["0,516", "4,516", "9,521", "512,0"] {
        let mut bent = bytes.clone();
        bent[at..at + 5].copy_from_slice(range.as_bytes());
        let error = import_bytes(&bent).unwrap_err();
        assert!(matches!(&error, ImportError::Syntax { file, .. } if file == "model.safetensors"), "{range}: {error}");
    }
    // A header that is longer than the file, by one byte and by the most that a length can say.
    for length in [bytes.len() as u64 - 7, u64::MAX] {
        let mut bent = bytes.clone();
        bent[..8].copy_from_slice(&length.to_le_bytes());
        assert!(matches!(import_bytes(&bent), Err(ImportError::Syntax { .. })), "{length}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let mut folder = Folder::new(Family::Gpt2);
    folder.tensors.retain(|given| given.name != "transformer.h.0.attn.c_attn.bias");
    folder.tensor("transformer.h.1.mlp.c_fc.weight").unwrap().shape.reverse();
    let mut unknown = folder.tensors[0].clone();
    unknown.name = "transformer.h.0.extra.weight".into();
    folder.tensors.push(unknown);
    folder.tensor("transformer.ln_f.bias").unwrap().values[2] = f32::NAN;
    folder.tensor("transformer.wpe.weight").unwrap().values[5] = f32::INFINITY;
    let bytes = folder.safetensors(Stored::F32);
    let files = [File::new("model.safetensors", &bytes)];
    let (checkpoint, problems) = Checkpoint::examine(&architecture(&folder), &files, None).unwrap();
    let named: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(named.len(), 3, "{named:?}");
    for (problem, tensor) in named.iter().zip(["c_attn.bias", "h.1.mlp.c_fc.weight", "h.0.extra.weight"]) {
        assert!(problem.contains(tensor), "{problem}");
    }
    let faults = checkpoint.faults();
    assert!(
        matches!(faults.as_slice(), [
            ImportError::NotFinite { tensor: first, element: 5, .. },
            ImportError::NotFinite { tensor: second, element: 2, .. },
        ] if first == "transformer.wpe.weight" && second == "transformer.ln_f.bias"),
        "{faults:?}"
    );
    let whole = Folder::new(Family::Gpt2).safetensors(Stored::F32);
    let files = [File::new("model.safetensors", &whole)];
    assert_eq!(Checkpoint::open(&architecture(&folder), &files, None).unwrap().faults(), []);
}
