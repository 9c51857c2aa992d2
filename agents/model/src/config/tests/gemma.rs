//! Gemma 3.

use serde_json::json;

use super::super::super::architecture::{Local, Scaling};
use super::*;

fn local(description: &Description) -> &Local {
    description.architecture.local.as_ref().expect("layers with a window")
}

#[test]
fn a_published_gemma_3_is_read() {
    // As the one of a billion has it, and the one of 270 million.
    let older = br#"{ "architectures": ["Gemma3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
        "attn_logit_softcapping": null, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": [1, 106],
        "final_logit_softcapping": null, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 1152, "initializer_range": 0.02, "intermediate_size": 6912, "max_position_embeddings": 32768,
        "model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1,
        "pad_token_id": 0, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000,
        "rope_scaling": null, "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6,
        "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0", "use_cache": true, "vocab_size": 262144 }"#;
    let description = describe(older, None).unwrap();
    let a = &description.architecture;
    assert_eq!(
        (a.context, description.stated_context, description.limit),
        (4096, 32768, Some(ContextLimit::Reduction))
    );
    assert_eq!((description.beginning, description.ends.as_slice()), (Some(2), &[1, 106][..]));
    assert_eq!(*rotary(&description), Rotary { theta: 1e6, width: 256, scaling: Scaling::None });
    let plain = Rotary { theta: 1e4, width: 256, scaling: Scaling::None };
    assert_eq!(*local(&description), Local { window: 512, period: 6, rotary: plain });
    assert_eq!((0..26).filter(|layer| a.local(*layer).is_none()).collect::<Vec<_>>(), [5, 11, 17, 23]);
    assert_eq!((a.embedding_scale, a.score_scale), (Some(f64::from(1152_f32.sqrt())), None));
    assert_eq!(a.output, Output::Logits { tied: true });
    assert_eq!(
        super::super::super::parameters(a).iter().map(|p| u64::from(p.rows) * u64::from(p.columns)).sum::<u64>(),
        999_885_952
    );
}

#[test]
fn what_a_published_file_leaves_out_is_as_hugging_face_has_it() {
    // As the one of four billion has it, which takes images as well.
    let json = br#"{ "architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999,
        "eoi_token_index": 256000, "eos_token_id": [1, 106], "image_token_index": 262144,
        "initializer_range": 0.02, "mm_tokens_per_image": 256, "model_type": "gemma3",
        "text_config": { "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
            "num_hidden_layers": 34, "rope_scaling": { "factor": 8.0, "rope_type": "linear" },
            "sliding_window": 1024 },
        "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0",
        "vision_config": { "hidden_size": 1152, "model_type": "siglip_vision_model" } }"#;
    let description = describe(json, None).unwrap();
    let a = &description.architecture;
    assert_eq!((a.width, a.layers, a.heads, a.kv_heads, a.head_width, a.vocabulary), (2560, 34, 8, 4, 256, 262_208));
    assert_eq!((description.stated_context, description.ends.as_slice()), (131_072, &[1, 106][..]));
    assert_eq!(*rotary(&description), Rotary { theta: 1e6, width: 256, scaling: Scaling::Linear { factor: 8.0 } });
    let plain = Rotary { theta: 1e4, width: 256, scaling: Scaling::None };
    assert_eq!(*local(&description), Local { window: 1024, period: 6, rotary: plain });
    // What is wrong within is named where it stands.
    let text = String::from_utf8_lossy(json).replace("\"hidden_size\": 2560", "\"hidden_size\": 0");
    assert!(describe(text.as_bytes(), None).unwrap_err().to_string().contains("text_config.hidden_size"));
}

#[test]
fn newer_files_say_the_same_in_other_words() {
    let gemma = |edits: Value| edited(Family::Gemma3, edits);
    let plain = gemma(json!({})).unwrap();
    let newer = gemma(json!({
        "rope_theta": null, "rope_local_base_freq": null, "sliding_window_pattern": null,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": { "full_attention": { "rope_type": "default", "rope_theta": 1e6 },
                             "sliding_attention": { "rope_type": "default", "rope_theta": 1e4 } } }));
    assert_eq!(newer.unwrap(), plain);
    let bases = gemma(json!({ "rope_theta": 5e5, "rope_local_base_freq": 2e4 })).unwrap();
    assert_eq!((rotary(&bases).theta, local(&bases).rotary.theta), (5e5, 2e4));
    // All layers alike: all with a window, or none.
    let all = gemma(json!({ "layer_types": ["sliding_attention", "sliding_attention"] })).unwrap();
    assert_eq!(local(&all).period, 3);
    assert_eq!(gemma(json!({ "sliding_window_pattern": 6 })).unwrap(), all);
    for none in [json!({ "layer_types": ["full_attention", "full_attention"] }), json!({ "sliding_window_pattern": 1 })]
    {
        assert_eq!(gemma(none).unwrap().architecture.local, None);
    }
    assert_eq!(gemma(json!({ "query_pre_attn_scalar": 8 })).unwrap().architecture.score_scale, Some(8.0));
}

#[test]
fn what_gemma_3_has_not_is_refused() {
    for (field, value) in [
        ("attn_logit_softcapping", json!(50.0)),
        ("final_logit_softcapping", json!(30.0)),
        ("use_bidirectional_attention", json!(true)),
        ("attention_bias", json!(true)),
        ("layer_types", json!(["full_attention", "sliding_attention"])),
        ("layer_types", json!(["sliding_attention"])),
        ("layer_types", json!(["sliding_attention", "chunked_attention"])),
    ] {
        let error = edited(Family::Gemma3, json!({ field: value })).unwrap_err();
        assert!(matches!(&error, ConfigError::Unsupported { field: f, .. } if f == field), "{field}: {error}");
    }
    let window = edited(Family::Gemma3, json!({ "sliding_window": null })).unwrap_err();
    assert_eq!(window.to_string(), "config.json lacks sliding_window; take the file as the model's publisher wrote it");
    for (field, value) in [
        ("query_pre_attn_scalar", json!(0)),
        ("query_pre_attn_scalar", json!(1e9)),
        ("sliding_window", json!(0)),
        ("sliding_window_pattern", json!(0)),
        ("rope_local_base_freq", json!(1)),
    ] {
        let error = edited(Family::Gemma3, json!({ field: value })).unwrap_err();
        assert!(matches!(&error, ConfigError::OutOfRange { field: f, .. } if f == field), "{field}: {error}");
    }
    let flat = json!({ "rope_parameters": { "rope_type": "default", "rope_theta": 1e6 } });
    let error = edited(Family::Gemma3, flat).unwrap_err();
    assert!(error.to_string().contains("rope_parameters.full_attention"), "{error}");
    assert_eq!(edited(Family::Gemma3, json!({ "head_dim": 5 })), Err(ConfigError::OddRotary(5)));
    let stretched = json!({ "rope_scaling": { "rope_type": "longrope", "factor": 2.0 } });
    assert_eq!(edited(Family::Gemma3, stretched), Err(ConfigError::Scaling("longrope".into())));
    let older = describe(br#"{ "model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"] }"#, None);
    assert_eq!(older, Err(ConfigError::UnknownModel("gemma2".into())));
}
