//! Bodies and texts that cannot be computed.

use serde_json::json;

use crate::served::{KEY, MODEL, Server, Words, backend, limits, refused, start, words};

const INVALID: &str = "invalid_request_error";

async fn send(server: &Server, body: impl Into<reqwest::Body>) -> reqwest::Response {
    let request = server.http.post(server.url("/v1/embeddings")).bearer_auth(KEY);
    request.header("content-type", "application/json; charset=utf-8").body(body).send().await.unwrap()
}

#[tokio::test]
async fn texts_beyond_the_context_are_refused_with_both_lengths() {
    let server = words().await;
    let long = vec!["word"; 17].join(" ");
    for input in [json!(["short", long]), json!([[1], vec![1; 17]])] {
        let response = server.embed(input).await;
        let message = refused(response, 400, INVALID, Some("input"), Some("context_length_exceeded")).await;
        assert!(message.contains("16 tokens") && message.contains("input 1 has 17 tokens"), "{message}");
    }
    assert_eq!(server.embed(json!(vec!["word"; 16].join(" "))).await.status(), 200);
}

#[tokio::test]
async fn empty_inputs_are_refused() {
    let server = words().await;
    for (input, part) in [
        (json!(""), "empty"),
        (json!([]), "empty"),
        (json!(["a", ""]), "empty"),
        (json!([[1], []]), "empty"),
        (json!(["a", " \n"]), "Input 1 has no tokens"),
    ] {
        let message = refused(server.embed(input).await, 400, INVALID, Some("input"), None).await;
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn what_the_tokenizer_refuses_is_refused_in_its_words() {
    let server = words().await;
    let message = refused(server.embed(json!(["a", "!refuse"])).await, 400, INVALID, Some("input"), None).await;
    assert_eq!(message, "Input 1: send another text.");
}

#[tokio::test]
async fn token_ids_the_model_does_not_know_are_refused() {
    let server = words().await;
    let message = refused(server.embed(json!([1, 1000])).await, 400, INVALID, Some("input"), None).await;
    assert!(message.contains("token id 1000") && message.contains("below 1000"), "{message}");
    refused(server.embed(json!([1, -1])).await, 400, INVALID, Some("input"), None).await;
    refused(server.embed(json!([u64::MAX])).await, 400, INVALID, Some("input"), None).await;
}

#[tokio::test]
async fn more_than_2048_inputs_are_refused() {
    let server = words().await;
    let message = refused(server.embed(json!(vec!["a"; 2049])).await, 400, INVALID, Some("input"), None).await;
    assert!(message.contains("2049 inputs") && message.contains("2048"), "{message}");
    let answer: serde_json::Value = server.embed(json!(vec!["a"; 2048])).await.json().await.unwrap();
    assert_eq!(answer["data"].as_array().unwrap().len(), 2048);
    assert_eq!(answer["usage"]["total_tokens"], 2048);
}

#[tokio::test]
async fn bodies_that_are_not_json_are_refused() {
    let server = words().await;
    let whole = json!({"model": MODEL, "input": "a"}).to_string();
    for (body, part) in [
        (vec![], "empty"),
        (b"{\"model\": \"words\", \"input\": \"a".to_vec(), "EOF"),
        (b"{\"model\" \"words\"}".to_vec(), "expected `:`"),
        (format!("{whole} {whole}").into_bytes(), "trailing characters"),
        (b"{\"model\": \"words\", \"input\": \"\xff\xfe\"}".to_vec(), "not UTF-8, from byte 29"),
        (b"{\"model\": \"words\", \"input\": \"\\ud800\"}".to_vec(), "hex escape"),
        (vec![b'['; 100_000], "JSON object"),
        (json!([MODEL, "a"]).to_string().into_bytes(), "JSON object"),
        (b" \n3".to_vec(), "JSON object"),
    ] {
        let message = refused(send(&server, body).await, 400, INVALID, None, None).await;
        assert!(message.contains(part), "{message}");
    }
    let request = server.http.post(server.url("/v1/embeddings")).bearer_auth(KEY).body(whole);
    let response = request.header("content-type", "text/plain").send().await.unwrap();
    refused(response, 415, INVALID, None, Some("unsupported_media_type")).await;
}

#[tokio::test]
async fn nested_input_does_not_overflow_the_stack() {
    let server = words().await;
    let deep = format!("{{\"model\": \"words\", \"input\": {}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
    assert_eq!(send(&server, deep).await.status(), 400);
}

#[tokio::test]
async fn large_bodies_are_refused_and_their_senders_told() {
    let server = start(backend(Words::default(), 4), tensorlink_gateway::Limits { body: 10_000, ..limits() }).await;
    let fits = json!({"model": MODEL, "input": format!("a{}", " ".repeat(9_900))}).to_string();
    assert_eq!(send(&server, fits).await.status(), 200);
    for size in [10_001, 70_000] {
        let message =
            refused(send(&server, vec![b' '; size]).await, 413, INVALID, None, Some("request_too_large")).await;
        assert!(message.contains("10000 bytes"), "{message}");
    }
}
