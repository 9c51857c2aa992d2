//! What the endpoints answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::served::{MODEL, Words, limits, model, refused, start, token, vector, words};

const INVALID: &str = "invalid_request_error";

#[tokio::test]
async fn models_are_listed_and_found() {
    let mut local = tensorlink_gateway::local::Local::new();
    local.add(model("words"), Words::default(), 1).unwrap();
    local.add(model("makers/words-2"), Words::default(), 1).unwrap();
    let server = start(std::sync::Arc::new(local), limits()).await;
    let list: Value = server.get("/v1/models").send().await.unwrap().json().await.unwrap();
    let one = |id: &str| json!({"id": id, "object": "model", "created": 1_700_000_000u64, "owned_by": "tensorlink", "max_model_len": 16});
    assert_eq!(list, json!({"object": "list", "data": [one("words"), one("makers/words-2")]}));
    for path in ["words", "makers/words-2", "makers%2Fwords-2"] {
        let found: Value = server.get(&format!("/v1/models/{path}")).send().await.unwrap().json().await.unwrap();
        assert_eq!(found, one(&path.replace("%2F", "/")));
    }
    let response = server.get("/v1/models/gpt-5").send().await.unwrap();
    let message = refused(response, 404, INVALID, Some("model"), Some("model_not_found")).await;
    assert!(message.contains("gpt-5") && message.contains("words, makers/words-2"), "{message}");
}

#[tokio::test]
async fn health_needs_no_key() {
    let server = words().await;
    let response = server.http.get(server.url("/healthz")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.json::<Value>().await.unwrap(), json!({"status": "ok"}));
}

#[tokio::test]
async fn every_form_of_input_gives_the_same_vectors() {
    let server = words().await;
    let (one, two) = (vec![token("good"), token("morning")], vec![token("night")]);
    let expect = |texts: &[&Vec<u32>]| {
        let data: Vec<Value> = (0..).zip(texts).map(|(index, ids)| item(index, ids)).collect();
        let tokens: usize = texts.iter().map(|ids| ids.len()).sum();
        json!({"object": "list", "data": data, "model": MODEL,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})
    };
    for (input, texts) in [
        (json!("good morning"), vec![&one]),
        (json!(["good morning", "night"]), vec![&one, &two]),
        (json!(one), vec![&one]),
        (json!([one, two]), vec![&one, &two]),
    ] {
        let response = server.embed(input).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.json::<Value>().await.unwrap(), expect(&texts));
    }
}

fn item(index: usize, ids: &[u32]) -> Value {
    // As text, because a JSON value would widen the floats.
    let embedding: Value = serde_json::from_str(&serde_json::to_string(&vector(ids)).unwrap()).unwrap();
    json!({"object": "embedding", "index": index, "embedding": embedding})
}

#[tokio::test]
async fn a_prompt_stands_before_texts_by_its_name() {
    let server = words().await;
    let ask = |input: Value, name: &str| server.post(&json!({"model": MODEL, "input": input, "prompt_name": name}));
    let answer: Value = ask(json!(["night"]), "query").send().await.unwrap().json().await.unwrap();
    let due = [token("query:"), token("night")];
    assert_eq!((&answer["data"][0], &answer["usage"]["prompt_tokens"]), (&item(0, &due), &json!(2)));
    for (input, name, told) in [(json!("night"), "passage", "query"), (json!([1, 2]), "query", "token ids")] {
        let message = refused(ask(input, name).send().await.unwrap(), 400, INVALID, Some("prompt_name"), None).await;
        assert!(message.contains(told), "{message}");
    }
}

#[tokio::test]
async fn base64_holds_little_endian_floats() {
    let server = words().await;
    let body =
        json!({"model": MODEL, "input": "good morning", "encoding_format": "base64", "dimensions": 8, "user": "u"});
    let answer: Value = server.post(&body).send().await.unwrap().json().await.unwrap();
    let bytes = STANDARD.decode(answer["data"][0]["embedding"].as_str().unwrap()).unwrap();
    let floats: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(floats, vector(&[token("good"), token("morning")]));
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let server = words().await;
    for (body, param, part) in [
        (json!({"input": "a"}), None, "missing field `model`"),
        (json!({"model": MODEL}), None, "missing field `input`"),
        (json!({"model": 3, "input": "a"}), Some("model"), "expected a string"),
        (json!({"model": MODEL, "input": {}}), Some("input"), "an array of token ids"),
        (json!({"model": MODEL, "input": "a", "encoding_format": "int8"}), Some("encoding_format"), "`base64`"),
        (json!({"model": MODEL, "input": "a", "dimensions": 4}), Some("dimensions"), "8 elements, not 4"),
        (json!({"model": MODEL, "input": "a", "dimensions": "8"}), Some("dimensions"), "u64"),
    ] {
        let response = server.post(&body).send().await.unwrap();
        let message = refused(response, 400, INVALID, param, None).await;
        assert!(message.contains(part), "{body}: {message}");
    }
    let response = server.post(&json!({"model": "gpt-5", "input": "a"})).send().await.unwrap();
    refused(response, 404, INVALID, Some("model"), Some("model_not_found")).await;
}

#[tokio::test]
async fn what_is_not_offered_is_refused_with_what_is() {
    let server = words().await;
    for path in ["/v1/responses", "/v1/audio/speech", "/", "/v2/models"] {
        let response = server.http.post(server.url(path)).json(&json!({})).send().await.unwrap();
        let message = refused(response, 404, INVALID, None, Some("unknown_url")).await;
        assert!(message.contains(path) && message.contains("POST /v1/embeddings"), "{message}");
    }
    let response = server.get("/v1/embeddings").send().await.unwrap();
    let message = refused(response, 405, INVALID, None, Some("method_not_supported")).await;
    assert!(message.contains("GET /v1/embeddings"), "{message}");
}

#[tokio::test]
async fn every_request_has_its_own_id() {
    let server = words().await;
    let mut ids = std::collections::BTreeSet::new();
    for path in ["/healthz", "/v1/models", "/nowhere"] {
        let response = server.get(path).send().await.unwrap();
        ids.insert(response.headers()["x-request-id"].to_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 3);
}
