//! Documents by how well they answer a query.

use std::sync::Arc;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tensorlink_gateway::backend::{Before, EmbedError, Makes, Model, TokenizeError};
use tensorlink_gateway::local::{Embedder, Local};

use crate::served::{MODEL, Server, backend, limits, model, start};

const JUDGE: &str = "judge";

/// A score is the number of words that a document has of the query, less two; a document `nan` has none.
struct Judge;

impl Embedder for Judge {
    fn embed(&self, ids: &[u32]) -> Result<Vec<f32>, EmbedError> {
        let (common, unknown) = (ids[0] as f32, ids.contains(&999));
        Ok(vec![if unknown { f32::NAN } else { common - 2.0 }])
    }

    fn tokenize(&self, text: &str, before: &Before) -> Result<Vec<u32>, TokenizeError> {
        let Before::Query(query) = before else { return Err(TokenizeError::Refused("send a query".into())) };
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (asked, read) = (words(query), words(text));
        let common = read.iter().filter(|word| asked.contains(word)).count() as u32;
        let rest = read.iter().map(|word| if word == "nan" { 999 } else { 1 });
        Ok([common].into_iter().chain(rest).collect())
    }
}

async fn judge(sigmoid: bool) -> Server {
    let mut local = Local::new();
    local.add(Model { id: JUDGE.into(), makes: Makes::Scores { sigmoid }, ..model(JUDGE) }, Judge, 4).unwrap();
    start(Arc::new(local), limits()).await
}

async fn rerank(server: &Server, path: &str, mut fields: Value) -> (StatusCode, Value) {
    for (field, value) in [("model", json!(JUDGE)), ("query", json!("red round planet"))] {
        if fields.get(field).is_none() {
            fields[field] = value;
        }
    }
    let answer = server.post_to(path, &fields).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

#[tokio::test]
async fn documents_come_back_the_best_first() {
    let server = judge(false).await;
    let documents = json!(["a cat", "a red planet", { "text": "round red planet" }, "", "red"]);
    for path in ["/v1/rerank", "/v2/rerank"] {
        let (status, answer) = rerank(&server, path, json!({ "documents": documents })).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let scored = |index: usize, score: f64| json!({ "index": index, "relevance_score": score });
        // Equal ones in the order of the request.
        let results = [scored(2, 1.0), scored(1, 0.0), scored(4, -1.0), scored(0, -2.0), scored(3, -2.0)];
        let usage = json!({ "prompt_tokens": 14, "total_tokens": 14 });
        assert_eq!(answer, json!({ "object": "list", "model": JUDGE, "results": results, "usage": usage }));
    }
    let fields = json!({ "documents": documents, "top_n": 2, "return_documents": true });
    let (_, answer) = rerank(&server, "/v1/rerank", fields).await;
    let shown = |index: usize, score: f64, text: &str| json!({ "index": index, "relevance_score": score, "document": { "text": text } });
    assert_eq!(answer["results"], json!([shown(2, 1.0, "round red planet"), shown(1, 0.0, "a red planet")]));
    assert_eq!(answer["usage"]["total_tokens"], 14, "all of them were read");
    let (_, all) = rerank(&server, "/v1/rerank", json!({ "documents": ["a"], "top_n": 100 })).await;
    assert_eq!(all["results"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn scores_of_models_that_say_so_lie_between_0_and_1() {
    let server = judge(true).await;
    let (_, answer) =
        rerank(&server, "/v1/rerank", json!({ "documents": ["red", "round red planet", "red round"] })).await;
    let scores = answer["results"].as_array().unwrap().iter().map(|result| result["relevance_score"].as_f64().unwrap());
    let due = [1.0f64, 0.0, -1.0].map(|score| 1.0 / (1.0 + (-score).exp()));
    assert!(scores.zip(due).all(|(got, due)| (got - due).abs() < 1e-12), "{answer}");
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let server = judge(true).await;
    let one = json!(["a"]);
    for (fields, field, part) in [
        (json!({ "documents": one, "query": "" }), "query", "empty text"),
        (json!({ "documents": [] }), "documents", "0 documents: send 1 to 2048"),
        (json!({ "documents": vec!["a"; 2049] }), "documents", "2049 documents: send 1 to 2048"),
        (json!({ "documents": [5] }), "documents", "a document is a text"),
        (json!({ "documents": [{ "title": "a" }] }), "documents", "a document is a text"),
        (json!({ "documents": "a" }), "documents", "expected a sequence"),
        (json!({ "documents": one, "top_n": 0 }), "top_n", "at least one"),
        (json!({ "documents": one, "top_n": -1 }), "top_n", "expected usize"),
        (json!({ "documents": one, "model": "other" }), "model", "other"),
    ] {
        let (status, answer) = rerank(&server, "/v1/rerank", fields).await;
        assert!(status.is_client_error(), "{answer}");
        assert_eq!(answer["error"]["param"], field, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{part}: {answer}");
    }
    let (status, answer) = rerank(&server, "/v1/rerank", json!({ "documents": ["nan"] })).await;
    assert!(status.is_server_error(), "a score that is no number is not told: {answer}");
}

#[tokio::test]
async fn models_answer_at_their_own_address() {
    let server = judge(true).await;
    let answer = server.post(&json!({ "model": JUDGE, "input": "a" })).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    let message: Value = answer.json().await.unwrap();
    assert!(message["error"]["message"].as_str().unwrap().contains("POST /v1/rerank"), "{message}");
    let vectors = start(backend(Default::default(), 4), limits()).await;
    let (status, answer) = rerank(&vectors, "/v1/rerank", json!({ "model": MODEL, "documents": ["a"] })).await;
    assert_eq!((status, &answer["error"]["param"]), (StatusCode::NOT_FOUND, &json!("model")), "{answer}");
}
