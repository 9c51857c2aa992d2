use serde_json::Value as Json;

use super::super::super::architecture::{Activation, Output, Pooling, Positions, Rotary, Scaling};
use super::super::super::config::{ConfigError, ContextLimit, Description, describe};
use super::super::super::family::Family;
use super::super::super::fixture::gguf::{FAMILIES, File, Tensor, Value};
use super::super::super::fixture::{self, Folder, Stored};
use super::super::super::import::{self, Checkpoint, ImportError, import};
use super::super::super::parameters::Weights;
use super::super::{Gguf, GgufError, config, pooling};

pub(super) fn described(file: &File) -> Result<Description, GgufError> {
    let bytes = file.bytes();
    let file = Gguf::parse(&bytes)?;
    let pooling = pooling(&file)?.map(|pooling| pooling.to_string().into_bytes());
    let config = Json::Object(config(&file)?).to_string();
    Ok(describe(config.as_bytes(), pooling.as_deref()).unwrap())
}

fn read(file: &File) -> Result<Weights, ImportError> {
    let (description, bytes) = (described(file).unwrap(), file.bytes());
    import(&description.architecture, &[import::File::new("x.gguf", &bytes)], None)
}

pub(super) fn of(family: Family) -> File {
    File::of(&Folder::new(family))
}

/// What reading the configuration says once a key has this value.
pub(super) fn refused(family: Family, key: &str, value: Value) -> GgufError {
    let mut file = of(family);
    file.set(key, value);
    described(&file).unwrap_err()
}

#[test]
fn a_file_is_the_model_of_its_folder() {
    for family in FAMILIES {
        let folder = Folder::new(family);
        let theirs = describe(&folder.config_json(), None).unwrap();
        let safetensors = folder.safetensors(Stored::F32);
        let files = [import::File::new("model.safetensors", &safetensors)];
        let weights = import(&theirs.architecture, &files, None).unwrap();
        let file = File::of(&folder);
        let ours = described(&file).unwrap();
        assert_eq!(ours, Description { beginning: ours.beginning, padding: ours.padding, ..theirs }, "{family:?}");
        assert!(read(&file).unwrap() == weights, "{family:?}");
        let bytes = file.bytes();
        let files = [import::File::new("x.gguf", &bytes)];
        let checkpoint = Checkpoint::open(&ours.architecture, &files, None).unwrap();
        assert_eq!(checkpoint.faults(), []);
        let idle = checkpoint.idle().to_vec();
        assert_eq!(idle, if family == Family::Llama { vec!["rope_freqs.weight"] } else { vec![] });
        assert!(checkpoint.dtypes().into_iter().eq(["F32"]));
    }
}

#[test]
fn biases_of_queries_and_keys_lie_as_their_rows() {
    let mut folder = Folder::new(Family::Llama);
    folder.config.insert("attention_bias".into(), true.into());
    for layer in 0..2 {
        for (part, size) in [("q", 8), ("k", 4), ("v", 4), ("o", 8)] {
            let name = format!("model.layers.{layer}.self_attn.{part}_proj.bias");
            let values = (0..size).map(|value| (value * 3 + layer) as f32).collect();
            folder.tensors.push(fixture::Tensor { name, shape: vec![size], values });
        }
    }
    let architecture = describe(&folder.config_json(), None).unwrap().architecture;
    let safetensors = folder.safetensors(Stored::F32);
    let files = [import::File::new("model.safetensors", &safetensors)];
    let file = File::of(&folder);
    assert_eq!(described(&file).unwrap().architecture, architecture);
    assert!(read(&file).unwrap() == import(&architecture, &files, None).unwrap());
}

#[test]
fn a_tensor_that_is_missing_or_unknown_is_named() {
    for family in FAMILIES {
        let mut file = of(family);
        let gone = file.tensors.iter().position(|tensor| tensor.name == "blk.1.ffn_down.weight").unwrap();
        file.tensors[gone].name = "blk.1.ffn_gate_inp.weight".into();
        let bytes = file.bytes();
        let architecture = described(&file).unwrap().architecture;
        let files = [import::File::new("x.gguf", &bytes)];
        let (_, problems) = Checkpoint::examine(&architecture, &files, None).unwrap();
        let [ImportError::Missing { tensor: missing, .. }, ImportError::Unknown { tensor: unknown, .. }] =
            problems.as_slice()
        else {
            panic!("{problems:?}")
        };
        assert_eq!((missing.as_str(), unknown.as_str()), ("blk.1.ffn_down.weight", "blk.1.ffn_gate_inp.weight"));
    }
    let mut file = of(Family::Qwen3);
    file.tensor("blk.0.ffn_up.weight").unwrap().shape.reverse();
    assert!(matches!(read(&file), Err(ImportError::Shape { .. })));
    let mut file = of(Family::Qwen3);
    file.tensor("blk.0.ffn_up.weight").unwrap().bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(matches!(read(&file), Err(ImportError::NotFinite { element: 0, .. })));
    let bytes = b"GGUF\x01\0\0\0";
    let architecture = described(&of(Family::Llama)).unwrap().architecture;
    let error = import(&architecture, &[import::File::new("x.gguf", bytes)], None).unwrap_err();
    assert!(matches!(&error, ImportError::Gguf { file, source: GgufError::Version(1) } if file == "x.gguf"));
}

#[test]
fn weights_in_blocks_are_read() {
    // Rows of 32 inputs: a matrix of a wider model.
    let mut folder = Folder::new(Family::Qwen3);
    let config = [("intermediate_size", 32)];
    folder.config.extend(config.map(|(key, value)| (key.to_owned(), value.into())));
    for tensor in &mut folder.tensors {
        let shape = match tensor.name.rsplit('.').nth(1) {
            Some("gate_proj" | "up_proj") => vec![32, 8],
            Some("down_proj") => vec![8, 32],
            _ => continue,
        };
        tensor.shape = shape;
        tensor.values = (0..256).map(|index| (index % 16) as f32 * 0.5 - 4.0).collect();
    }
    let floats = read(&File::of(&folder)).unwrap();
    let mut file = File::of(&folder);
    for layer in 0..2 {
        let down = file.tensor(&format!("blk.{layer}.ffn_down.weight")).unwrap();
        // d = 1/2, then 16 bytes with q in both halves: -4, -3.5 … in the lower 16 of a row and again in the upper.
        let block: Vec<u8> = [0x00, 0x38].into_iter().chain((0..16).map(|q| q << 4 | q)).collect();
        (down.kind, down.bytes) = (2, block.repeat(8));
    }
    assert!(read(&file).unwrap() == floats, "all values are those that the blocks can hold");
    let bytes = file.bytes();
    let architecture = described(&file).unwrap().architecture;
    let files = [import::File::new("x.gguf", &bytes)];
    assert!(Checkpoint::open(&architecture, &files, None).unwrap().dtypes().into_iter().eq(["F32", "Q4_0"]));
}

#[test]
fn output_weights_that_repeat_the_embedding_are_tied() {
    let mut file = of(Family::Gpt2);
    let mut head = file.tensor("token_embd.weight").unwrap().clone();
    head.name = "output.weight".into();
    file.tensors.push(head);
    assert_eq!(described(&file).unwrap(), described(&of(Family::Gpt2)).unwrap());
    assert!(read(&file).unwrap() == read(&of(Family::Gpt2)).unwrap());
    file.tensor("output.weight").unwrap().bytes[2] ^= 1;
    assert_eq!(described(&file).unwrap().architecture.output, Output::Logits { tied: false });
    assert!(read(&file).unwrap().get("head.weight").is_ok());
}

#[test]
fn architectures_that_are_not_computed_are_refused_by_name() {
    let named = |name: &str| refused(Family::Llama, "general.architecture", name.into());
    assert_eq!(named("mamba"), GgufError::Architecture("mamba".into()));
    assert!(named("mamba").to_string().contains("bert, gpt2, llama, qwen2, qwen3, gemma3"));
    assert_eq!(named("gemma2"), GgufError::Architecture("gemma2".into()));
    let mut file = of(Family::Llama);
    file.remove("general.architecture");
    assert!(matches!(described(&file), Err(GgufError::Missing(_))));
}

#[test]
fn what_would_change_the_result_is_never_ignored() {
    for (key, value) in [
        ("llama.logit_scale", Value::F32(2.0)),
        ("llama.attention.scale", Value::F32(2.0)),
        ("llama.attn_logit_softcapping", Value::F32(2.0)),
    ] {
        assert_eq!(refused(Family::Llama, key, value), GgufError::Unknown(key.into()));
    }
    for (key, value) in [
        ("llama.expert_count", Value::U32(8)),
        ("llama.attention.causal", Value::Flag(false)),
        ("llama.rope.dimension_count", Value::U32(2)),
        ("llama.attention.value_length", Value::U32(6)),
        ("llama.rope.scaling.attn_factor", Value::F32(1.5)),
        ("llama.rope.scale_linear", Value::F32(2.0)),
        ("llama.rope.scaling.type", "longrope".into()),
    ] {
        let error = refused(Family::Llama, key, value);
        assert!(matches!(&error, GgufError::Unsupported { key: named, .. } if named == key), "{error}");
    }
    assert!(matches!(refused(Family::Bert, "bert.pooling_type", Value::U32(4)), GgufError::Unsupported { .. }));
    assert!(matches!(refused(Family::Llama, "llama.block_count", "2".into()), GgufError::Type { .. }));
    for key in ["llama.block_count", "llama.attention.layer_norm_rms_epsilon", "llama.embedding_length"] {
        let mut file = of(Family::Llama);
        file.remove(key);
        assert_eq!(described(&file), Err(GgufError::Missing(key.into())));
    }
    let mut file = of(Family::Llama);
    file.tensors.retain(|tensor| tensor.name != "token_embd.weight");
    assert_eq!(described(&file), Err(GgufError::Missing("token_embd.weight".into())));
    // What changes nothing.
    let mut file = of(Family::Llama);
    file.set("llama.rope.dimension_count", Value::U32(4));
    file.set("llama.attention.causal", Value::Flag(true));
    file.set("llama.expert_count", Value::U32(0));
    file.set("general.name", "Tiny".into());
    assert_eq!(described(&file).unwrap(), described(&of(Family::Llama)).unwrap());
}

#[test]
fn bounds_are_those_of_folders() {
    let mut file = of(Family::Qwen2);
    file.set("qwen2.attention.head_count", Value::U32(4096));
    let bytes = file.bytes();
    let config = Json::Object(config(&Gguf::parse(&bytes).unwrap()).unwrap()).to_string();
    assert!(matches!(describe(config.as_bytes(), None), Err(ConfigError::OutOfRange { .. })));
}

#[test]
fn positions_are_stretched_as_the_file_says() {
    let stretched = |values: &[(&str, Value)]| {
        let mut file = of(Family::Qwen2);
        values.iter().for_each(|(key, value)| file.set(&format!("qwen2.rope.scaling.{key}"), value.clone()));
        let Positions::Rotary(rotary) = described(&file).unwrap().architecture.positions else { panic!() };
        rotary.scaling
    };
    assert_eq!(stretched(&[("type", "none".into()), ("factor", Value::F32(4.0))]), Scaling::None);
    assert_eq!(stretched(&[("factor", Value::F32(4.0))]), Scaling::Linear { factor: 4.0 });
    assert_eq!(stretched(&[("type", "linear".into()), ("factor", Value::F32(4.0))]), Scaling::Linear { factor: 4.0 });
    let yarn = stretched(&[
        ("type", "yarn".into()),
        ("factor", Value::F32(4.0)),
        ("original_context_length", Value::U32(32768)),
        ("finetuned", Value::Flag(true)),
    ]);
    let Scaling::Yarn { factor, fast, slow, original_context, .. } = yarn else { panic!("{yarn:?}") };
    assert_eq!((factor, fast, slow, original_context), (4.0, 32.0, 1.0, 32768));
}

/// The factors that Llama 3's converter writes, in 32 bits.
fn factors(rotary: &Rotary) -> Tensor {
    let plain = Rotary { scaling: Scaling::None, ..rotary.clone() }.frequencies();
    let factors: Vec<f32> = plain.iter().zip(rotary.frequencies()).map(|(a, b)| (a / b) as f32).collect();
    Tensor::floats("rope_freqs.weight", &[factors.len()], &factors)
}

#[test]
fn factors_of_frequencies_are_those_of_llama_3_or_refused() {
    // As published: Llama 3.1 and 3.2.
    for (factor, width) in [(8.0, 128), (32.0, 64)] {
        let scaling = Scaling::Llama3 { factor, low: 1.0, high: 4.0, original_context: 8192 };
        let rotary = Rotary { theta: 500_000.0, width, scaling };
        let mut file = of(Family::Llama);
        file.tensors.retain(|tensor| tensor.name != "rope_freqs.weight");
        file.tensors.push(factors(&rotary));
        file.set("llama.rope.freq_base", Value::F32(500_000.0));
        file.set("llama.attention.key_length", Value::U32(width));
        assert_eq!(described(&file).unwrap().architecture.positions, Positions::Rotary(rotary));
    }
    let mut file = of(Family::Llama);
    let given = file.tensor("rope_freqs.weight").unwrap();
    given.bytes[4..].copy_from_slice(&1.3_f32.to_le_bytes());
    assert_eq!(described(&file), Err(GgufError::Factors));
    file.tensor("rope_freqs.weight").unwrap().shape = vec![1, 2];
    assert_eq!(described(&file), Err(GgufError::Factors));
    // Two stretchings at once.
    let mut file = of(Family::Llama);
    file.set("llama.rope.scaling.type", "linear".into());
    file.set("llama.rope.scaling.factor", Value::F32(2.0));
    assert_eq!(described(&file), Err(GgufError::Factors));
}

#[test]
fn tokens_windows_and_poolings_are_read() {
    let llama = described(&of(Family::Llama)).unwrap();
    assert_eq!((llama.beginning, llama.ends, llama.padding), (Some(0), vec![2, 3], 1));
    let mut file = of(Family::Llama);
    file.set("llama.attention.sliding_window", Value::U32(6));
    let window = described(&file).unwrap();
    assert_eq!((window.architecture.context, window.limit), (6, Some(ContextLimit::Window)));
    for (kind, pooled) in [(0, Pooling::Mean), (1, Pooling::Mean), (2, Pooling::First), (3, Pooling::Last)] {
        let mut file = of(Family::Bert);
        file.set("bert.pooling_type", Value::U32(kind));
        let architecture = described(&file).unwrap().architecture;
        assert_eq!(architecture.output, Output::Embedding(pooled));
        assert_eq!(architecture.activation, Activation::Gelu);
    }
    let mut file = of(Family::Qwen3);
    file.set("qwen3.pooling_type", Value::U32(3));
    assert_eq!(described(&file).unwrap().architecture.output, Output::Embedding(Pooling::Last));
    assert!(read(&file).is_ok());
    let mut file = of(Family::Bert);
    file.tensors.retain(|tensor| tensor.name != "token_types.weight");
    assert!(!described(&file).unwrap().architecture.token_types);
    assert!(read(&file).is_ok());
}
