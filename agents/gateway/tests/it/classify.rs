//! Classes of texts.

use std::sync::Arc;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tensorlink_gateway::backend::{Before, EmbedError, Makes, Model, TokenizeError};
use tensorlink_gateway::local::{Embedder, Local};

use crate::served::{MODEL, Server, backend, limits, model, start};

const SORTER: &str = "sorter";

/// The number of a class is how often its letter stands in a text: `a`, `b` or `c`.
struct Sorter;

impl Embedder for Sorter {
    fn embed(&self, ids: &[u32]) -> Result<Vec<f32>, EmbedError> {
        Ok((1..=3).map(|class| ids.iter().filter(|id| **id == class).count() as f32).collect())
    }

    fn tokenize(&self, text: &str, _: &Before) -> Result<Vec<u32>, TokenizeError> {
        Ok(text.bytes().map(|byte| u32::from(byte.wrapping_sub(b'a')) + 1).collect())
    }
}

async fn sorter(several: bool) -> Server {
    let labels: Vec<String> = ["law", "story", "song"].map(String::from).into();
    let makes = Makes::Classes { labels: labels.into(), several };
    let mut local = Local::new();
    local.add(Model { id: SORTER.into(), makes, ..model(SORTER) }, Sorter, 4).unwrap();
    start(Arc::new(local), limits()).await
}

async fn classify(server: &Server, path: &str, input: Value) -> (StatusCode, Value) {
    let answer = server.post_to(path, &json!({ "model": SORTER, "input": input })).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

fn likely(logits: [f64; 3]) -> [f64; 3] {
    let sum: f64 = logits.iter().map(|x| x.exp()).sum();
    logits.map(|x| x.exp() / sum)
}

#[tokio::test]
async fn texts_are_told_apart() {
    let server = sorter(false).await;
    for path in ["/v1/classify", "/classify"] {
        let (status, answer) = classify(&server, path, json!(["abb", "c"])).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        assert_eq!((&answer["object"], &answer["model"]), (&json!("list"), &json!(SORTER)));
        assert_eq!(answer["usage"], json!({ "prompt_tokens": 4, "total_tokens": 4 }));
        for (index, label, logits) in [(0, "story", [1.0, 2.0, 0.0]), (1, "song", [0.0, 0.0, 1.0])] {
            let item = &answer["data"][index];
            assert_eq!(
                (&item["index"], &item["label"], &item["num_classes"]),
                (&json!(index), &json!(label), &json!(3))
            );
            let probs: Vec<f64> = serde_json::from_value(item["probs"].clone()).unwrap();
            assert!(probs.iter().zip(likely(logits)).all(|(got, due)| (got - due).abs() < 1e-12), "{item}");
        }
    }
    let (_, one) = classify(&server, "/v1/classify", json!("a")).await;
    assert_eq!(one["data"].as_array().map(Vec::len), Some(1));
    let (_, ids) = classify(&server, "/v1/classify", json!([1])).await;
    assert_eq!(ids["data"], one["data"], "token ids are texts as well");
}

#[tokio::test]
async fn where_a_text_may_be_of_several_each_class_stands_for_itself() {
    let (_, answer) = classify(&sorter(true).await, "/v1/classify", json!("bb")).await;
    let probs: Vec<f64> = serde_json::from_value(answer["data"][0]["probs"].clone()).unwrap();
    let due = [0.0f64, 2.0, 0.0].map(|logit| 1.0 / (1.0 + (-logit).exp()));
    assert!(probs.iter().zip(due).all(|(got, due)| (got - due).abs() < 1e-12), "{answer}");
    assert_eq!(answer["data"][0]["label"], "story");
}

#[tokio::test]
async fn models_answer_at_their_own_address() {
    let server = sorter(false).await;
    let answer = server.post(&json!({ "model": SORTER, "input": "a" })).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    let message: Value = answer.json().await.unwrap();
    assert!(message["error"]["message"].as_str().unwrap().contains("POST /v1/classify"), "{message}");
    let vectors = start(backend(Default::default(), 4), limits()).await;
    let asked = json!({ "model": MODEL, "input": "a" });
    assert_eq!(vectors.post_to("/v1/classify", &asked).send().await.unwrap().status(), StatusCode::NOT_FOUND);
}
