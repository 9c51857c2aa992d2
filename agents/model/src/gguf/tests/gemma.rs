//! Gemma 3: what its files say, and what llama.cpp takes where they do not.

use super::super::super::architecture::Local;
use super::super::super::family::Family;
use super::super::super::fixture::gguf::Value;
use super::super::GgufError;
use super::model::{described, of, refused};

fn local(values: &[(&str, Value)], without: &[&str]) -> Option<Local> {
    let mut file = of(Family::Gemma3);
    values.iter().for_each(|(key, value)| file.set(&format!("gemma3.{key}"), value.clone()));
    without.iter().for_each(|key| file.remove(&format!("gemma3.{key}")));
    described(&file).unwrap().architecture.local
}

#[test]
fn windows_and_bases_are_those_of_the_file() {
    let plain = local(&[], &[]).unwrap();
    assert_eq!((plain.window, plain.period, plain.rotary.theta), (3, 2, 10_000.0));
    let stated = local(&[("attention.sliding_window", Value::U32(5)), ("rope.freq_base_swa", Value::F32(500.0))], &[]);
    let stated = stated.unwrap();
    assert_eq!((stated.window, stated.rotary.theta), (5, 500.0));
    // Every sixth layer sees all; of two, none.
    assert_eq!(local(&[], &["attention.sliding_window_pattern"]).unwrap().period, 3);
    assert_eq!(local(&[], &["attention.sliding_window"]), None);
    assert_eq!(local(&[("attention.sliding_window", Value::U32(0))], &[]), None);
}

#[test]
fn scores_are_divided_as_llama_cpp_divides_them() {
    let mut file = of(Family::Gemma3);
    assert_eq!(described(&file).unwrap().architecture.score_scale, None);
    // The largest Gemma 3, known by its number of layers: by the root of width over heads.
    file.set("gemma3.block_count", Value::U32(62));
    assert_eq!(described(&file).unwrap().architecture.score_scale, Some(4.0));
}

#[test]
fn softcapping_is_refused() {
    for key in ["attn_logit_softcapping", "final_logit_softcapping"] {
        let key = format!("gemma3.{key}");
        let error = refused(Family::Gemma3, &key, Value::F32(30.0));
        assert!(matches!(&error, GgufError::Unsupported { key: named, .. } if *named == key), "{error}");
        let mut file = of(Family::Gemma3);
        file.set(&key, Value::F32(0.0));
        assert!(described(&file).is_ok());
    }
    let odd = refused(Family::Qwen3, "qwen3.rope.freq_base_swa", Value::F32(1e4));
    assert_eq!(odd, GgufError::Unknown("qwen3.rope.freq_base_swa".into()));
}
