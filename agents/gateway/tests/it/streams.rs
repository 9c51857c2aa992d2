//! Answers in parts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tensorlink_gateway::Limits;
use tensorlink_gateway::generation::batch::Capacity;

use crate::completions::{ROOM, speaker};
use crate::served::{Server, limits, refused, start, until};
use crate::speaker::{Gate, SPEAKER, Speaker, speaking};

async fn begin(server: &Server, path: &str, mut fields: Value) -> reqwest::Response {
    fields["model"] = SPEAKER.into();
    fields["stream"] = true.into();
    server.post_to(path, &fields).send().await.unwrap()
}

/// The events of a whole stream.
async fn events(response: reqwest::Response) -> Vec<String> {
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    assert!(text.ends_with("\n\n"), "{text:?}");
    text.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap().to_owned()).collect()
}

/// Parts of a stream that ends well.
async fn parts(response: reqwest::Response) -> Vec<Value> {
    let mut events = events(response).await;
    assert_eq!(events.pop().as_deref(), Some("[DONE]"));
    events.iter().map(|event| serde_json::from_str(event).unwrap()).collect()
}

#[tokio::test]
async fn completions_come_in_parts() {
    let server = speaker().await;
    let parts = parts(begin(&server, "/v1/completions", json!({"prompt": "say one"})).await).await;
    let choices: Vec<&Value> = parts.iter().map(|part| &part["choices"][0]).collect();
    let choice =
        |text: &str, finish: Value| json!({"index": 0, "text": text, "logprobs": null, "finish_reason": finish});
    let null = Value::Null;
    let expected = [choice("o", null.clone()), choice("n", null.clone()), choice("e", null), choice("", "stop".into())];
    assert_eq!(choices, expected.iter().collect::<Vec<_>>());
    for part in &parts {
        assert_eq!((&part["object"], &part["model"]), (&json!("text_completion"), &json!(SPEAKER)));
        assert_eq!((&part["id"], &part["created"]), (&parts[0]["id"], &parts[0]["created"]));
        assert!(part.get("usage").is_none() && part["id"].as_str().unwrap().starts_with("cmpl-"));
    }
}

#[tokio::test]
async fn chats_come_in_parts_after_their_role() {
    let server = speaker().await;
    let fields =
        json!({"messages": [{"role": "user", "content": "say hi"}], "stream_options": {"include_usage": true}});
    let parts = parts(begin(&server, "/v1/chat/completions", fields).await).await;
    let deltas: Vec<Value> = parts.iter().map(|part| part["choices"][0]["delta"].clone()).collect();
    let expected = [
        json!({"role": "assistant", "content": ""}),
        json!({"content": "h"}),
        json!({"content": "i"}),
        json!({}),
        json!(null),
    ];
    assert_eq!(deltas, expected);
    assert_eq!(parts[3]["choices"][0]["finish_reason"], "stop");
    assert!(parts.iter().all(|part| part["object"] == "chat.completion.chunk"));
    assert!(parts[..4].iter().all(|part| part.as_object().unwrap()["usage"].is_null()));
    let usage = json!({"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14});
    assert_eq!((&parts[4]["choices"], &parts[4]["usage"]), (&json!([]), &usage));
}

#[tokio::test]
async fn a_stream_says_what_a_whole_answer_says() {
    let server = speaker().await;
    for fields in [
        json!({"prompt": ["say one two", "repeat ab"], "stop": ["wo", "zz"]}),
        json!({"prompt": "hex e697a5e69cac21", "stop": "!"}),
        json!({"prompt": "hex e697a5e69c"}),
        json!({"prompt": "repeat abc", "max_tokens": 4, "stop": "abcd"}),
        json!({"prompt": "say ", "stop": "x"}),
    ] {
        let mut whole = fields.clone();
        whole["model"] = SPEAKER.into();
        let response = server.post_to("/v1/completions", &whole).send().await.unwrap();
        let whole: Value = response.json().await.unwrap();
        let expected: Vec<(String, Value)> = whole["choices"].as_array().unwrap().iter().map(text).collect();
        let mut told = vec![(String::new(), Value::Null); expected.len()];
        for part in parts(begin(&server, "/v1/completions", fields).await).await {
            let choice = &part["choices"][0];
            let (more, finish) = text(choice);
            let told = &mut told[usize::try_from(choice["index"].as_u64().unwrap()).unwrap()];
            assert!(told.1.is_null(), "more after the end");
            // Never half a character, never part of a stop sequence.
            assert!(!more.contains('\u{fffd}') || !expected[0].1.is_null());
            told.0.push_str(&more);
            told.1 = finish;
        }
        assert_eq!(told, expected);
    }
}

fn text(choice: &Value) -> (String, Value) {
    (choice["text"].as_str().unwrap().to_owned(), choice["finish_reason"].clone())
}

#[tokio::test]
async fn what_is_refused_is_refused_before_a_stream_begins() {
    let server = speaker().await;
    let response = begin(&server, "/v1/completions", json!({"prompt": "x".repeat(99)})).await;
    refused(response, 400, "invalid_request_error", Some("prompt"), Some("context_length_exceeded")).await;
    let response = begin(&server, "/v1/chat/completions", json!({"messages": []})).await;
    refused(response, 400, "invalid_request_error", Some("messages"), None).await;
}

#[tokio::test]
async fn a_failure_ends_its_own_stream_in_words_and_no_other() {
    let gate = Arc::new(Gate::default());
    let server = start(speaking(Speaker { gate: Some(gate.clone()) }, ROOM), limits()).await;
    let failing = begin(&server, "/v1/completions", json!({"prompt": "fail ab"})).await;
    until(|| gate.reached().len() == 1).await;
    let going = begin(&server, "/v1/completions", json!({"prompt": "say abcdef"})).await;
    gate.let_pass(1000);
    let told = events(failing).await;
    let error: Value = serde_json::from_str(told.last().unwrap()).unwrap();
    assert_eq!((&error["error"]["type"], &error["error"]["code"]), (&json!("server_error"), &json!("internal_error")));
    assert_eq!(told.len(), 3);
    assert!(!told.concat().contains("secret") && !told.concat().contains("DONE"));
    let all: String = parts(going).await.iter().map(|part| text(&part["choices"][0]).0).collect();
    assert_eq!(all, "abcdef");
    // One request's texts end together.
    let both = events(begin(&server, "/v1/completions", json!({"prompt": ["fail ab", "repeat x"]})).await).await;
    assert!(both.last().unwrap().contains("internal_error"), "{both:?}");
}

#[tokio::test]
async fn a_model_that_dies_ends_streams_in_words() {
    let gate = Arc::new(Gate::default());
    let server = start(speaking(Speaker { gate: Some(gate.clone()) }, ROOM), limits()).await;
    // It dies in the middle of the stream: had it died before the stream begins, there would be none.
    let response = begin(&server, "/v1/completions", json!({"prompt": "panic abc"})).await;
    gate.let_pass(4);
    let told = events(response).await;
    assert!(told.last().unwrap().contains("service_unavailable"), "{told:?}");
    assert_eq!(told.len(), 4);
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_text_at_the_next_token() {
    let gate = Arc::new(Gate::default());
    let server = start(speaking(Speaker { gate: Some(gate.clone()) }, ROOM), limits()).await;
    let mut leaving = begin(&server, "/v1/completions", json!({"prompt": "repeat leaving", "max_tokens": 48})).await;
    gate.let_pass(2);
    assert!(leaving.chunk().await.unwrap().is_some());
    until(|| gate.reached().len() == 3).await;
    drop(leaving);
    let staying = begin(&server, "/v1/completions", json!({"prompt": "say staying"})).await;
    // It was in the batch under way; once its leaving is noticed, it is in no other.
    let end = std::time::Instant::now() + crate::served::PATIENCE;
    while gate.reached().last().unwrap() != &["staying"] {
        assert!(std::time::Instant::now() < end, "it stays: {:?}", gate.reached());
        gate.let_pass(1);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gate.let_pass(10);
    assert_eq!(parts(staying).await.len(), 8);
}

#[tokio::test]
async fn a_stream_waits_only_so_long_for_a_token() {
    let gate = Arc::new(Gate::default());
    let limits = Limits { time: Duration::from_millis(300), ..limits() };
    let server = start(speaking(Speaker { gate: Some(gate.clone()) }, ROOM), limits).await;
    gate.let_pass(1);
    let told = events(begin(&server, "/v1/completions", json!({"prompt": "say abc"})).await).await;
    assert_eq!(told.len(), 2);
    assert!(told[1].contains("\"timeout\""), "{told:?}");
    gate.let_pass(9);
    let whole = json!({"model": SPEAKER, "prompt": "say abc"});
    assert_eq!(server.post_to("/v1/completions", &whole).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn streams_hold_their_places() {
    let gate = Arc::new(Gate::default());
    let limits = Limits { requests: 1, ..limits() };
    let server = start(speaking(Speaker { gate: Some(gate.clone()) }, Capacity { queue: 4, texts: 4 }), limits).await;
    let first = begin(&server, "/v1/completions", json!({"prompt": "say abc"})).await;
    let response = begin(&server, "/v1/completions", json!({"prompt": "say abc"})).await;
    refused(response, 429, "requests", None, Some("overloaded")).await;
    gate.let_pass(9);
    assert_eq!(parts(first).await.len(), 4);
}
