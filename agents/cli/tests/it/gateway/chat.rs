//! `POST /v1/chat/completions`, answered as a whole.

use serde_json::{Value, json};

use crate::gateway::completions::speaker;
use crate::gateway::speaker::SPEAKER;
use crate::gateway::support::{Server, refused};

const INVALID: &str = "invalid_request_error";

async fn chat(server: &Server, mut fields: Value) -> reqwest::Response {
    fields["model"] = SPEAKER.into();
    server.post_to("/v1/chat/completions", &fields).send().await.unwrap()
}

fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

#[tokio::test]
async fn an_answer_has_the_fields_of_the_reference() {
    let server = speaker().await;
    let response = chat(&server, json!({"messages": user("say hello")})).await;
    assert_eq!(response.status(), 200);
    let mut body: Value = response.json().await.unwrap();
    let fields = body.as_object_mut().unwrap();
    assert!(fields.remove("id").unwrap().as_str().unwrap().starts_with("chatcmpl-"));
    assert!(fields.remove("created").unwrap().is_u64());
    assert!(fields.remove("system_fingerprint").unwrap().is_string());
    let message = json!({"role": "assistant", "content": "hello", "refusal": null});
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"});
    let usage = json!({"prompt_tokens": 14, "completion_tokens": 6, "total_tokens": 20});
    let expected = json!({"object": "chat.completion", "model": SPEAKER, "choices": [choice], "usage": usage});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn conversations_reach_the_template_as_roles_and_texts() {
    let server = speaker().await;
    let parts = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "say two"}]);
    let sent_back =
        json!({"role": "assistant", "content": "hi", "refusal": null, "annotations": [], "tool_calls": null});
    for (messages, tokens) in [
        (
            json!([{"role": "system", "content": "s"}, {"role": "user", "content": "say x"}]),
            "system=s;user=say x".len(),
        ),
        (
            json!([{"role": "developer", "content": "s"}, {"role": "user", "content": "say x"}]),
            "system=s;user=say x".len(),
        ),
        (json!([{"role": "user", "content": parts}]), "user=one\nsay two".len()),
        (json!([sent_back, {"role": "user", "content": "say x"}]), "assistant=hi;user=say x".len()),
    ] {
        let body: Value = chat(&server, json!({"messages": messages})).await.json().await.unwrap();
        assert_eq!(body["usage"]["prompt_tokens"], tokens, "{messages}: {body}");
    }
}

#[tokio::test]
async fn an_answer_is_as_long_as_the_context_holds_or_as_asked() {
    let server = speaker().await;
    for (more, tokens) in [(json!({}), 51), (json!({"max_tokens": 2}), 2), (json!({"max_completion_tokens": 3}), 3)] {
        let mut fields = json!({"messages": user("repeat x")});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body: Value = chat(&server, fields).await.json().await.unwrap();
        assert_eq!(body["usage"]["completion_tokens"], tokens);
        assert_eq!(body["choices"][0]["finish_reason"], "length");
    }
    let response = chat(&server, json!({"messages": user(&"x".repeat(60))})).await;
    refused(response, 400, INVALID, Some("messages"), Some("context_length_exceeded")).await;
}

#[tokio::test]
async fn what_is_not_offered_is_refused_by_name() {
    let server = speaker().await;
    let tool = json!([{"type": "function", "function": {"name": "f"}}]);
    for (field, value, part) in [
        ("messages", json!([]), "at least one"),
        ("messages", json!("hello"), "expected a sequence"),
        ("messages", json!([{"role": "tool", "content": "a"}]), "unknown variant `tool`"),
        ("messages", json!([{"role": "user"}]), "message 0 has no content"),
        ("messages", json!([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]), "only text"),
        ("messages", json!([{"role": "user", "content": "a", "name": "bob"}]), "a role and a content"),
        ("messages", json!([{"role": "assistant", "content": "a", "tool_calls": tool}]), "no tools"),
        ("tools", tool, "tools are not offered"),
        ("tool_choice", json!("required"), "tools are not offered"),
        ("functions", json!([{"name": "f"}]), "tools are not offered"),
        ("response_format", json!({"type": "json_object"}), "text"),
        ("modalities", json!(["text", "audio"]), "text"),
        ("audio", json!({"voice": "v"}), "text only"),
        ("n", json!(2), "one answer"),
        ("logprobs", json!(true), "probabilities"),
        ("top_logprobs", json!(2), "probabilities"),
        ("reasoning_effort", json!("high"), "trained"),
        ("store", json!(true), "nothing is stored"),
        ("max_completion_tokens", json!(0), "at least one"),
        ("temperature", json!(3), "0 to 2"),
        ("prompt", json!("a"), "unknown field"),
    ] {
        let mut fields = json!({"messages": user("say a")});
        fields[field] = value.clone();
        let message = refused(chat(&server, fields).await, 400, INVALID, Some(field), None).await;
        assert!(message.contains(part), "{field} {value}: {message}");
    }
    let both = json!({"messages": user("say a"), "max_tokens": 1, "max_completion_tokens": 1});
    refused(chat(&server, both).await, 400, INVALID, Some("max_tokens"), None).await;
    let defaults = json!({"messages": user("say a"), "n": 1, "tools": [], "tool_choice": "auto", "logprobs": false,
        "response_format": {"type": "text"}, "modalities": ["text"], "parallel_tool_calls": true, "metadata": {"a": "b"},
        "store": false, "service_tier": "auto", "user": "u", "logit_bias": null, "top_k": 3});
    assert_eq!(chat(&server, defaults).await.status(), 200);
}
