use serde_json::{Value, json};

mod gemma;

use super::super::architecture::{Curve, Dense, Norm, Output, Placement, Pooling, Rotary, Scaling};
use super::super::fixture::{FAMILIES, Folder};
use super::*;

/// The configuration of a published model, with some fields changed.
fn edited(family: Family, edits: Value) -> Result<Description, ConfigError> {
    let mut folder = Folder::new(family);
    folder.config.extend(edits.as_object().unwrap().clone());
    describe(&folder.config_json(), None)
}

fn rotary(description: &Description) -> &Rotary {
    match &description.architecture.positions {
        Positions::Rotary(rotary) => rotary,
        Positions::Learned { .. } => panic!("learned positions"),
    }
}

#[test]
fn every_family_is_read() {
    for family in FAMILIES {
        let gemma = family == Family::Gemma3;
        let Description { architecture: a, .. } = edited(family, json!({})).unwrap();
        let tensors = Folder::new(family).tensors;
        let rows = |part: &str| tensors.iter().find(|tensor| tensor.name.ends_with(part)).map(|tensor| tensor.shape[0]);
        assert_eq!((a.family, a.vocabulary, a.width, a.layers, a.hidden), (family, 16, 8, 2, 12));
        let encoder = matches!(family, Family::Bert | Family::Roberta);
        assert_eq!((a.context, a.causal), (10, !encoder), "{family:?}");
        let placement = if encoder { Placement::After } else { Placement::Before };
        assert_eq!(a.placement, if gemma { Placement::Around } else { placement });
        let layer_norm = encoder || family == Family::Gpt2;
        assert_eq!(a.norm, if layer_norm { Norm::Layer } else { Norm::Rms });
        assert_eq!((a.gated, a.mlp_bias, a.kv_heads), (!layer_norm, layer_norm, if layer_norm { 2 } else { 1 }));
        assert_eq!(a.attention_bias, layer_norm || rows("q_proj.bias").is_some());
        assert_eq!((a.output_bias, a.query_key_norm), (layer_norm, rows("q_norm.weight").is_some()));
        assert_eq!(a.head_width as usize, rows("q_proj.weight").map_or(4, |rows| rows / 2));
        let tied = rows("lm_head.weight").is_none();
        assert_eq!((a.local.is_some(), a.embedding_scale.is_some(), a.score_scale), (gemma, gemma, None));
        let expected = if encoder { Output::Embedding(Pooling::Mean) } else { Output::Logits { tied } };
        assert_eq!(a.output, expected, "{family:?}");
    }
}

#[test]
fn a_published_llama_3_is_read() {
    let json = br#"{ "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
        "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "head_dim": 64, "hidden_act": "silu",
        "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 131072,
        "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
        "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": { "factor": 32.0,
        "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
        "rope_type": "llama3" }, "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "transformers_version": "4.45.0.dev0", "use_cache": true, "vocab_size": 128256 }"#;
    let description = describe(json, None).unwrap();
    let scaling = Scaling::Llama3 { factor: 32.0, low: 1.0, high: 4.0, original_context: 8192 };
    assert_eq!(*rotary(&description), Rotary { theta: 500_000.0, width: 64, scaling });
    assert_eq!((description.beginning, description.ends.as_slice()), (Some(128_000), &[128_001, 128_008, 128_009][..]));
    let a = &description.architecture;
    assert_eq!((description.stated_context, a.context), (131_072, 4096));
    assert_eq!(description.limit, Some(ContextLimit::Reduction));
    assert_eq!(
        super::super::parameters(a).iter().map(|p| u64::from(p.rows) * u64::from(p.columns)).sum::<u64>(),
        1_235_814_400
    );
}

#[test]
fn the_context_ends_at_the_window_where_attention_slides() {
    for (family, edits, context) in [
        (Family::Mistral, json!({ "sliding_window": 6 }), 6),
        (Family::Mistral, json!({ "sliding_window": 100 }), 10),
        (Family::Qwen2, json!({ "use_sliding_window": true }), 4),
        (Family::Qwen2, json!({}), 10),
        (Family::Qwen2, json!({ "layer_types": ["full_attention", "full_attention"] }), 10),
        // As many layers as there are see all, as published files of Qwen 2 have it.
        (Family::Qwen2, json!({ "use_sliding_window": true, "max_window_layers": 2 }), 10),
        (Family::Qwen2, json!({ "use_sliding_window": true, "max_window_layers": null }), 10),
        (Family::Qwen3, json!({ "use_sliding_window": true, "max_window_layers": 0, "sliding_window": 5 }), 5),
        (
            Family::Qwen3,
            json!({ "use_sliding_window": true, "sliding_window": 5, "max_window_layers": 0,
            "layer_types": ["full_attention", "full_attention"] }),
            10,
        ),
        (Family::Mistral, json!({ "sliding_window": 6, "layer_types": ["full_attention", "full_attention"] }), 10),
        (Family::Mistral, json!({ "sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"] }), 6),
        (Family::Qwen3, json!({ "sliding_window": 5, "layer_types": ["full_attention", "sliding_attention"] }), 5),
        (Family::Llama, json!({ "sliding_window": 5 }), 10),
    ] {
        let description = edited(family, edits.clone()).unwrap();
        assert_eq!(description.architecture.context, context, "{family:?} {edits}");
        assert_eq!(description.limit, (context < 10).then_some(ContextLimit::Window));
    }
    let both = json!({ "sliding_window": 4097, "max_position_embeddings": 32768 });
    assert_eq!(edited(Family::Mistral, both).unwrap().limit, Some(ContextLimit::Reduction));
}

#[test]
fn positions_and_their_stretching_are_read_in_all_spellings() {
    let positions = |family| edited(family, json!({})).unwrap().architecture.positions;
    assert_eq!(positions(Family::Roberta), Positions::Learned { first: 2 });
    assert_eq!(positions(Family::Gpt2), Positions::Learned { first: 0 });
    for (edits, scaling) in [
        (json!({ "rope_scaling": null }), Scaling::None),
        (json!({ "rope_scaling": { "type": "linear", "factor": 2 } }), Scaling::Linear { factor: 2.0 }),
        (json!({ "rope_scaling": { "rope_type": "default" } }), Scaling::None),
        (
            // As Qwen 2.5 is told to read long texts.
            json!({ "rope_scaling": { "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768 } }),
            Scaling::Yarn {
                factor: 4.0,
                fast: 32.0,
                slow: 1.0,
                original_context: 32768,
                amplitude: 1.138_629_436_111_989,
            },
        ),
        (
            json!({ "rope_scaling": { "rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 64,
                "beta_fast": 16, "beta_slow": 2, "attention_factor": 1.0 } }),
            Scaling::Yarn { factor: 2.0, fast: 16.0, slow: 2.0, original_context: 64, amplitude: 1.0 },
        ),
    ] {
        assert_eq!(rotary(&edited(Family::Llama, edits).unwrap()).scaling, scaling);
    }
    let newer = json!({ "rope_theta": null, "rope_scaling": null,
        "rope_parameters": { "rope_theta": 1e6, "rope_type": "linear", "factor": 4.0 } });
    let description = edited(Family::Llama, newer).unwrap();
    assert_eq!(*rotary(&description), Rotary { theta: 1e6, width: 4, scaling: Scaling::Linear { factor: 4.0 } });
    let absent = edited(Family::Llama, json!({ "rope_theta": null, "rope_scaling": null })).unwrap();
    assert_eq!(rotary(&absent).theta, 10_000.0);
}

#[test]
fn either_name_of_a_family_suffices_and_both_must_agree() {
    let named =
        |kind: Value, class: Value| edited(Family::Llama, json!({ "model_type": kind, "architectures": class }));
    assert!(named(json!("llama"), json!(null)).is_ok());
    assert!(named(json!(null), json!(["LlamaModel"])).is_ok());
    assert!(named(json!(null), json!([])).is_err_and(|e| matches!(e, ConfigError::Missing { .. })));
    assert_eq!(named(json!("t5"), json!(["T5Model"])), Err(ConfigError::UnknownModel("t5".into())));
    assert_eq!(named(json!(null), json!(["T5Model"])), Err(ConfigError::UnknownModel("T5Model".into())));
    let both = named(json!("llama"), json!(["MistralForCausalLM"])).unwrap_err();
    assert!(matches!(both, ConfigError::Disagreement { .. }));
    let head = named(json!("llama"), json!(["LlamaForSequenceClassification"])).unwrap_err();
    assert!(matches!(head, ConfigError::Head { .. }));
    let message = ConfigError::UnknownModel("t5".into()).to_string();
    assert!(
        message.contains("bert, roberta, xlm-roberta, gpt2, llama, mistral, qwen2, qwen3, gemma3_text, gemma3"),
        "{message}"
    );
}

#[test]
fn xlm_roberta_is_roberta_with_another_tokenizer() {
    let xlm = |class: &str| edited(Family::Roberta, json!({ "model_type": "xlm-roberta", "architectures": [class] }));
    let roberta = edited(Family::Roberta, json!({})).unwrap();
    assert_eq!(xlm("XLMRobertaModel").unwrap(), roberta);
    assert_eq!(xlm("XLMRobertaForMaskedLM").unwrap(), roberta);
    assert!(matches!(xlm("XLMRobertaForTokenClassification"), Err(ConfigError::Head { .. })));
}

#[test]
fn activations_by_the_names_hugging_face_has() {
    for (name, activation) in [
        ("gelu", Activation::Gelu),
        ("gelu_new", Activation::GeluTanh),
        ("gelu_pytorch_tanh", Activation::GeluTanh),
        ("silu", Activation::Silu),
        ("relu", Activation::Relu),
    ] {
        for (family, field) in [(Family::Bert, "hidden_act"), (Family::Gpt2, "activation_function")] {
            assert_eq!(edited(family, json!({ field: name })).unwrap().architecture.activation, activation);
        }
    }
    assert_eq!(edited(Family::Bert, json!({ "hidden_act": "mish" })), Err(ConfigError::Activation("mish".into())));
    let defaults = [(Family::Bert, Activation::Gelu), (Family::Llama, Activation::Silu)];
    for (family, activation) in defaults {
        assert_eq!(edited(family, json!({ "hidden_act": null })).unwrap().architecture.activation, activation);
    }
}

#[test]
fn pooling_is_that_of_the_folder() {
    let config = Folder::new(Family::Bert).config_json();
    let pooled = |json: Value| describe(&config, Some(json.to_string().as_bytes())).map(|d| d.architecture.output);
    let flags = |mean: bool, first: bool, most: bool| {
        pooled(json!({ "word_embedding_dimension": 8, "pooling_mode_cls_token": first,
            "pooling_mode_mean_tokens": mean, "pooling_mode_max_tokens": most }))
    };
    assert_eq!(flags(true, false, false), Ok(Output::Embedding(Pooling::Mean)));
    assert_eq!(flags(false, true, false), Ok(Output::Embedding(Pooling::First)));
    assert_eq!(pooled(json!({ "pooling_mode": "cls" })), Ok(Output::Embedding(Pooling::First)));
    assert_eq!(flags(false, false, true), Ok(Output::Embedding(Pooling::Max)));
    for (name, pooling) in [
        ("pooling_mode_mean_sqrt_len_tokens", Pooling::RootMean),
        ("pooling_mode_max_tokens", Pooling::Max),
        ("pooling_mode_lasttoken", Pooling::Last),
        ("pooling_mode_weightedmean_tokens", Pooling::WeightedMean),
    ] {
        assert_eq!(pooled(json!({ name: true })), Ok(Output::Embedding(pooling)));
        let short = name.trim_start_matches("pooling_mode_").trim_end_matches("_tokens");
        let short = if short == "mean_sqrt_len" { "mean_sqrt_len_tokens" } else { short };
        assert_eq!(pooled(json!({ "pooling_mode": short })), Ok(Output::Embedding(pooling)));
    }
    let unknown = pooled(json!({ "pooling_mode": "median" }));
    for refused in [unknown, flags(true, true, false), flags(false, false, false)] {
        assert!(matches!(refused, Err(ConfigError::Pooling(_))), "{refused:?}");
    }
    let decoder = Folder::new(Family::Qwen3).config_json();
    let described = describe(&decoder, Some(br#"{ "pooling_mode": "lasttoken" }"#)).unwrap().architecture;
    assert!(described.causal && described.output == Output::Embedding(Pooling::Last));
}

#[test]
fn absurd_numbers_are_refused_by_name() {
    for (family, field, value) in [
        (Family::Llama, "vocab_size", json!(0)),
        (Family::Llama, "vocab_size", json!((1_u64 << 20) + 1)),
        (Family::Llama, "vocab_size", json!(1_u64 << 63)),
        (Family::Llama, "vocab_size", json!(-5)),
        (Family::Llama, "vocab_size", json!(16.5)),
        (Family::Llama, "hidden_size", json!(16386)),
        (Family::Llama, "num_hidden_layers", json!(257)),
        (Family::Llama, "num_hidden_layers", json!(0)),
        (Family::Gpt2, "n_layer", json!(0)),
        (Family::Bert, "num_hidden_layers", json!(-1)),
        (Family::Llama, "hidden_size", json!(1e30)),
        (Family::Llama, "num_attention_heads", json!(0)),
        (Family::Llama, "num_attention_heads", json!(2048)),
        (Family::Llama, "intermediate_size", json!(1 << 17)),
        (Family::Llama, "head_dim", json!(4096)),
        (Family::Llama, "max_position_embeddings", json!(0)),
        (Family::Llama, "rms_norm_eps", json!(0.0)),
        (Family::Llama, "rms_norm_eps", json!(-1e-5)),
        (Family::Llama, "rope_theta", json!(0.5)),
        (Family::Llama, "rope_theta", json!(1e300)),
        (Family::Llama, "eos_token_id", json!(16)),
        (Family::Llama, "eos_token_id", json!([2, -1])),
        (Family::Bert, "layer_norm_eps", json!(1)),
        (Family::Roberta, "max_position_embeddings", json!(2)),
        (Family::Gpt2, "n_positions", json!(0)),
        (Family::Gpt2, "n_inner", json!(0)),
    ] {
        let error = edited(family, json!({ field: value })).unwrap_err();
        let named = matches!(&error, ConfigError::OutOfRange { field: f, .. } if f == field);
        assert!(named, "{field} = {value}: {error}");
    }
    let wide = edited(Family::Gpt2, json!({ "n_embd": 4096, "n_head": 2 })).unwrap_err();
    assert!(matches!(&wide, ConfigError::OutOfRange { field, value, .. } if field == "n_head" && value == "2"));
}

#[test]
fn sizes_that_do_not_divide_are_refused() {
    for (family, edits, whole) in [
        (Family::Bert, json!({ "num_attention_heads": 3 }), "hidden_size"),
        (Family::Gpt2, json!({ "n_head": 3 }), "n_embd"),
        (Family::Llama, json!({ "num_attention_heads": 3 }), "hidden_size"),
        (Family::Llama, json!({ "num_attention_heads": 4, "num_key_value_heads": 3 }), "num_attention_heads"),
        (Family::Llama, json!({ "num_key_value_heads": 4 }), "num_attention_heads"),
    ] {
        let error = edited(family, edits.clone()).unwrap_err();
        assert!(matches!(error, ConfigError::Division { whole: w, .. } if w == whole), "{edits}: {error}");
    }
    assert_eq!(edited(Family::Qwen3, json!({ "head_dim": 5 })), Err(ConfigError::OddRotary(5)));
}

#[test]
fn variants_that_compute_something_else_are_refused() {
    for (family, edits) in [
        (Family::Gpt2, json!({ "scale_attn_weights": false })),
        (Family::Gpt2, json!({ "scale_attn_by_inverse_layer_idx": true })),
        (Family::Bert, json!({ "position_embedding_type": "relative_key" })),
        (Family::Bert, json!({ "is_decoder": true })),
        (Family::Llama, json!({ "partial_rotary_factor": 0.5 })),
        (Family::Qwen3, json!({ "layer_types": ["linear_attention"] })),
    ] {
        let error = edited(family, edits.clone()).unwrap_err();
        assert!(matches!(error, ConfigError::Unsupported { .. }), "{edits}: {error}");
    }
    for kind in ["dynamic", "longrope"] {
        let error = edited(Family::Llama, json!({ "rope_scaling": { "rope_type": kind, "factor": 2.0 } }));
        assert_eq!(error, Err(ConfigError::Scaling(kind.into())));
    }
    let ramp = json!({ "rope_scaling": { "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 8192 } });
    assert!(matches!(edited(Family::Llama, ramp), Err(ConfigError::Ramp { .. })));
    for (field, value) in [("mscale", json!(0.7)), ("truncate", json!(false))] {
        let mut yarn = json!({ "rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 64 });
        yarn[field] = value;
        let error = edited(Family::Llama, json!({ "rope_scaling": yarn })).unwrap_err();
        let named = format!("rope_scaling.{field}");
        assert!(matches!(&error, ConfigError::Unsupported { field, .. } if *field == named), "{error}");
    }
    let backwards = json!({ "rope_scaling": { "rope_type": "yarn", "factor": 2, "beta_fast": 1, "beta_slow": 1,
        "original_max_position_embeddings": 64 } });
    assert!(matches!(edited(Family::Llama, backwards), Err(ConfigError::OutOfRange { .. })));
    let quantised = edited(Family::Llama, json!({ "quantization_config": { "quant_method": "gptq" } }));
    assert_eq!(quantised, Err(ConfigError::Quantised));
}

#[test]
fn files_that_are_no_configuration_are_refused() {
    for bytes in [&b""[..], b"{", b"[]", b"\xff\xfe", b"null", &b"[".repeat(100_000)] {
        assert!(matches!(describe(bytes, None), Err(ConfigError::Syntax { .. })), "{bytes:?}");
    }
    assert!(matches!(describe(&b" ".repeat(2 << 20), None), Err(ConfigError::TooLarge { .. })));
    let missing = edited(Family::Llama, json!({ "hidden_size": null })).unwrap_err();
    assert_eq!(missing.to_string(), "config.json lacks hidden_size; take the file as the model's publisher wrote it");
    let nested = edited(Family::Llama, json!({ "rope_scaling": { "rope_type": "linear" } })).unwrap_err();
    assert!(nested.to_string().contains("rope_scaling.factor"), "{nested}");
    for (field, value) in [
        ("vocab_size", json!("many")),
        ("tie_word_embeddings", json!(1)),
        ("rope_scaling", json!("linear")),
        ("hidden_act", json!(["silu"])),
        ("architectures", json!("LlamaForCausalLM")),
        ("eos_token_id", json!("</s>")),
        ("rope_theta", json!("x".repeat(500))),
    ] {
        let error = edited(Family::Llama, json!({ field: value })).unwrap_err();
        assert!(matches!(error, ConfigError::Type { .. }) && error.to_string().len() < 250, "{field}: {error}");
    }
}

#[test]
fn classes_are_those_of_the_file() {
    let class = json!(["BertForSequenceClassification"]);
    let read = |names: Value| edited(Family::Bert, json!({ "architectures": class, "id2label": names }));
    let named = read(json!({ "1": "glad", "0": "sad" })).unwrap();
    assert_eq!((named.classes, named.architecture.output), (vec!["sad".into(), "glad".into()], Output::Classes(2)));
    let unnamed = read(Value::Null).unwrap();
    assert_eq!(unnamed.classes, ["LABEL_0", "LABEL_1"]);
    assert_eq!((named.padding, edited(Family::Bert, json!({ "pad_token_id": null })).unwrap().padding), (1, 0));
    // A masked language model has names of classes as well, by default.
    assert_eq!(edited(Family::Bert, json!({ "id2label": { "0": "a", "1": "b" } })).unwrap().classes, [""; 0]);
    assert_eq!((named.architecture.pairs, unnamed.architecture.pairs), (false, false));
    let score = read(json!({ "0": "score" })).unwrap().architecture;
    assert_eq!((score.output, score.pairs, score.token_numbers()), (Output::Classes(1), true, 2 * score.vocabulary));
    // One vector for all texts, as RoBERTa has.
    let one = json!({ "architectures": class, "id2label": { "0": "score" }, "type_vocab_size": 1 });
    assert!(!edited(Family::Bert, one).unwrap().architecture.pairs);
    assert!(matches!(read(json!({})), Err(ConfigError::OutOfRange { .. })));
    assert!(matches!(read(json!({ "0": "a", "2": "b" })), Err(ConfigError::Missing { .. })));
}

#[test]
fn dense_layers_follow_one_another() {
    let read = |family, layers: &[Value]| {
        let description = describe(&Folder::new(family).config_json(), None).unwrap();
        let file = |number| format!("{number}_Dense/config.json");
        let layers: Vec<_> = (2..).zip(layers).map(|(n, layer)| (file(n), layer.to_string().into_bytes())).collect();
        description.with_dense(&layers).map(|description| description.architecture)
    };
    let class = |name: &str| format!("torch.nn.modules.activation.{name}");
    let first = json!({ "in_features": 8, "out_features": 12, "bias": false, "activation_function": class("Tanh") });
    let second = json!({ "in_features": 12, "out_features": 5, "activation_function": "torch.nn.modules.linear.Identity",
        "module_input_name": "sentence_embedding", "module_output_name": null });
    let both = read(Family::Bert, &[first.clone(), second.clone()]).unwrap();
    assert_eq!(both.vector_width(), 5);
    let [one, two] = both.dense.try_into().unwrap();
    assert_eq!(one, Dense { outputs: 12, bias: false, curve: Curve::Tanh });
    assert_eq!(two, Dense { outputs: 5, bias: true, curve: Curve::Identity });
    for (name, curve) in [
        ("Sigmoid", Curve::Sigmoid),
        ("ReLU", Curve::Gate(Activation::Relu)),
        ("GELU", Curve::Gate(Activation::Gelu)),
        ("SiLU", Curve::Gate(Activation::Silu)),
    ] {
        let layer = json!({ "in_features": 8, "out_features": 8, "activation_function": class(name) });
        assert_eq!(read(Family::Bert, &[layer]).unwrap().dense[0].curve, curve);
    }
    let with = |field: &str, value: Value| {
        let mut layer = first.clone();
        layer[field] = value;
        layer
    };
    for (layers, part) in [
        (vec![second], "2_Dense/config.json: in_features is 12, but what comes before gives 8"),
        (vec![with("out_features", 0.into())], "out_features is 0, supported is 1 to 16384"),
        (vec![with("activation_function", class("Softmax").into())], "activation_function is Softmax"),
        (vec![with("module_input_name", "token_embeddings".into())], "module_input_name is token_embeddings"),
        (vec![with("bias", "yes".into())], "it cannot be read"),
        (vec![with("out_features", 8.into()); 9], "10_Dense/config.json: more than 8 dense layers"),
    ] {
        let error = read(Family::Bert, &layers).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = read(Family::Llama, &[first]).unwrap_err().to_string();
    assert!(error.contains("makes no vectors of texts"), "{error}");
}
