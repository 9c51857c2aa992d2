//! `POST /v1/chat/completions`, answered as a whole.

use serde_json::{Value, json};
use tensorlink_gateway::Gateway;

use crate::completions::{ROOM, speaker};
use crate::served::{Server, limits, refused, start_changed};
use crate::speaker::{SPEAKER, Speaker, speaking};

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
        ("repetition_penalty", json!(0.01), "1/8 to 8"),
        ("min_p", json!(2), "0 to 1"),
        ("chat_template_kwargs", json!("a"), "expected a map"),
        ("max_completion_tokens", json!(0), "at least one"),
        ("temperature", json!(3), "0 to 2"),
    ] {
        let mut fields = json!({"messages": user("say a")});
        fields[field] = value.clone();
        let message = refused(chat(&server, fields).await, 400, INVALID, Some(field), None).await;
        assert!(message.contains(part), "{field} {value}: {message}");
    }
    let both = json!({"messages": user("say a"), "max_tokens": 2, "max_completion_tokens": 1});
    refused(chat(&server, both).await, 400, INVALID, Some("max_tokens"), None).await;
}

#[tokio::test]
async fn what_changes_nothing_is_taken_as_it_comes() {
    let server = speaker().await;
    let defaults = json!({"messages": user("say a"), "n": 1, "tools": [], "tool_choice": "auto", "logprobs": false,
        "response_format": {"type": "text"}, "modalities": ["text"], "parallel_tool_calls": true, "metadata": {"a": "b"},
        "store": true, "service_tier": "auto", "user": "u", "logit_bias": null, "top_k": 3, "max_tokens": 4096,
        "max_completion_tokens": 4096});
    let said = json!([{"role": "assistant", "content": "b", "name": "bob", "refusal": null, "annotations": [],
        "reasoning_content": "hm"}, {"role": "user", "content": "say a", "name": "ann"}]);
    let clients = json!({"messages": said, "prompt_cache_retention": "24h", "prompt_cache_key": null, "metadata": null,
        "reasoning_effort": "high", "verbosity": null, "stream_options": null, "top_k": -1, "min_p": 0,
        "repetition_penalty": 1.2, "chat_template_kwargs": {"enable_thinking": false}, "colour": "red"});
    let nothing = json!({"messages": user("say a"), "model": SPEAKER, "temperature": null, "n": null, "stop": null,
        "tools": null, "response_format": null, "modalities": null, "chat_template_kwargs": null, "max_tokens": null});
    for fields in [defaults, clients, nothing] {
        let response = chat(&server, fields.clone()).await;
        let (status, body): (_, Value) = (response.status(), response.json().await.unwrap());
        assert_eq!(status, 200, "{fields}: {body}");
        assert_eq!(body["choices"][0]["message"]["content"], "a", "{fields}");
    }
}

/// Only unknown fields are strict gateways' to refuse: what OpenAI documents stays welcome.
#[tokio::test]
async fn a_strict_gateway_refuses_what_it_does_not_know_by_name() {
    let gateway = |gateway: Gateway| gateway.strict(true);
    let server = start_changed(speaking(Speaker::default(), ROOM), limits(), gateway).await;
    let said = json!([{"role": "user", "content": "say a", "mood": "good"}]);
    for (field, fields) in [
        ("colour", json!({"messages": user("say a"), "colour": "red"})),
        ("prompt", json!({"messages": user("say a"), "prompt": null})),
        ("messages", json!({"messages": said})),
    ] {
        let message = refused(chat(&server, fields).await, 400, INVALID, Some(field), None).await;
        assert!(message.contains("unknown field"), "{message}");
    }
    let known = json!({"messages": user("say a"), "metadata": {"a": "b"}, "tools": [], "user": "u",
        "stream_options": null});
    assert_eq!(chat(&server, known).await.status(), 200);
}
