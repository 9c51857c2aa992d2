//! `POST /v1/completions`, answered as a whole.

use serde_json::{Value, json};
use tensorlink_gateway::generation::batch::Capacity;

use crate::served::{MODEL, Server, limits, refused, start};
use crate::speaker::{SPEAKER, Speaker, speaking};

const INVALID: &str = "invalid_request_error";
pub(crate) const ROOM: Capacity = Capacity { queue: 16, texts: 4 };

pub(crate) async fn speaker() -> Server {
    start(speaking(Speaker::default(), ROOM), limits()).await
}

async fn complete(server: &Server, mut fields: Value) -> reqwest::Response {
    fields["model"] = SPEAKER.into();
    server.post_to("/v1/completions", &fields).send().await.unwrap()
}

async fn answer(server: &Server, fields: Value) -> Value {
    let response = complete(server, fields).await;
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

fn choice(index: usize, text: &str, finish: &str) -> Value {
    json!({"index": index, "text": text, "logprobs": null, "finish_reason": finish})
}

#[tokio::test]
async fn an_answer_has_the_fields_of_the_reference() {
    let server = speaker().await;
    let mut body = answer(&server, json!({"prompt": "say hello"})).await;
    let fields = body.as_object_mut().unwrap();
    let id = fields.remove("id").unwrap();
    assert!(id.as_str().unwrap().starts_with("cmpl-"), "{id}");
    assert!(fields.remove("created").unwrap().as_u64().unwrap() > 1_700_000_000);
    let fingerprint = fields.remove("system_fingerprint").unwrap();
    assert!(fingerprint.as_str().unwrap().starts_with("fp_"), "{fingerprint}");
    // Nine bytes of prompt; five of text and the end.
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 6, "total_tokens": 15});
    let expected = json!({"object": "text_completion", "model": SPEAKER, "choices": [choice(0, "hello", "stop")],
        "usage": usage});
    assert_eq!(body, expected);
    let again = answer(&server, json!({"prompt": "say hello"})).await;
    assert_eq!(again["system_fingerprint"], fingerprint);
    assert_ne!(again["id"], id);
}

#[tokio::test]
async fn prompts_keep_their_order_in_every_form() {
    let server = speaker().await;
    let ids = |text: &str| text.bytes().collect::<Vec<u8>>();
    let (one, two) = (choice(0, "a long one", "stop"), choice(1, "b", "stop"));
    for prompt in [json!(["say a long one", "say b"]), json!([ids("say a long one"), ids("say b")])] {
        let body = answer(&server, json!({"prompt": prompt})).await;
        assert_eq!(body["choices"], json!([one, two]));
        assert_eq!(body["usage"]["prompt_tokens"], 19);
    }
    assert_eq!(answer(&server, json!({"prompt": ids("say a long one")})).await["choices"], json!([one]));
    let many = vec!["say x"; 16];
    assert_eq!(answer(&server, json!({"prompt": many})).await["choices"].as_array().unwrap().len(), 16);
}

#[tokio::test]
async fn a_text_ends_by_its_length_or_before_a_stop() {
    let server = speaker().await;
    for (fields, text, finish) in [
        (json!({"prompt": "repeat ab"}), "abababababababab", "length"),
        (json!({"prompt": "repeat ab", "max_tokens": 3}), "aba", "length"),
        (json!({"prompt": "say abc", "max_tokens": 3}), "abc", "length"),
        (json!({"prompt": "say abc", "max_tokens": 4}), "abc", "stop"),
        (json!({"prompt": "say one two three", "stop": "two"}), "one ", "stop"),
        (json!({"prompt": "say one two three", "stop": ["x", "ree", "thr"]}), "one two ", "stop"),
        (json!({"prompt": "say one tw", "stop": "two"}), "one tw", "stop"),
        (json!({"prompt": "repeat one tw", "max_tokens": 6, "stop": "two"}), "one tw", "length"),
        (json!({"prompt": "say two", "stop": "two"}), "", "stop"),
        (json!({"prompt": "say x", "stop": []}), "x", "stop"),
        // The character after é is never finished.
        (json!({"prompt": "hex c3a9c3"}), "é\u{fffd}", "stop"),
        (json!({"prompt": "hex c3a9c3", "max_tokens": 3}), "é\u{fffd}", "length"),
        (json!({"prompt": "say é!", "stop": "é"}), "", "stop"),
    ] {
        let body = answer(&server, fields.clone()).await;
        assert_eq!(body["choices"], json!([choice(0, text, finish)]), "{fields}");
    }
}

#[tokio::test]
async fn the_context_bounds_prompt_and_text_together() {
    let server = speaker().await;
    let prompt = |bytes: usize| format!("repeat {}", "x".repeat(bytes - 7));
    let code = Some("context_length_exceeded");
    for (fields, part) in [
        (json!({"prompt": prompt(65)}), "maximum context length is 64 tokens, however input 0 has 65"),
        (json!({"prompt": ["say a", prompt(64)]}), "you requested 65 tokens (64 in input 1, 1 for the completion)"),
    ] {
        let message = refused(complete(&server, fields.clone()).await, 400, INVALID, Some("prompt"), code).await;
        assert!(message.contains(part), "{fields}: {message}");
    }
    // As much as there is room for, whatever is asked for; up to 16 where nothing is said.
    for more in [json!(null), json!(5), json!(4096), json!(u64::MAX)] {
        let body = answer(&server, json!({"prompt": prompt(60), "max_tokens": more})).await;
        assert_eq!(body["choices"], json!([choice(0, "xxxx", "length")]), "{more}");
        assert_eq!(body["usage"]["total_tokens"], 64);
    }
}

#[tokio::test]
async fn the_choice_of_tokens_reaches_the_model() {
    let server = speaker().await;
    let choice = async |mut fields: Value| {
        fields["prompt"] = "choice".into();
        fields["max_tokens"] = 64.into();
        let body = answer(&server, fields).await;
        serde_json::from_str::<Vec<Value>>(body["choices"][0]["text"].as_str().unwrap()).unwrap()
    };
    let fields = json!({"temperature": 0.5, "top_p": 0.25, "top_k": 7, "min_p": 0.125, "repetition_penalty": 1.5,
        "seed": 11});
    assert_eq!(choice(fields).await, [json!(0.5), json!(7), json!(0.25), json!(0.125), json!(1.5), json!(11)]);
    let least = choice(json!({"seed": -1, "temperature": 0, "top_p": 0, "top_k": 1u64 << 40})).await;
    assert_eq!(least, [json!(0), json!(u32::MAX), json!(1.0 / 65536.0), json!(0), json!(1), json!(u64::MAX)]);
    // All tokens, in the ways that servers have for it.
    for all in [json!(0), json!(-1), json!(null)] {
        assert_eq!(choice(json!({"top_k": all})).await[1], json!(0), "{all}");
    }
    // Each text of a request has its own draws, unless a seed says otherwise.
    let seeds = async |fields: Value| {
        let mut body = json!({"prompt": vec!["choice"; 4], "max_tokens": 64});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let answered = answer(&server, body).await;
        let texts = answered["choices"].as_array().unwrap().iter().map(|choice| choice["text"].to_string());
        texts.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((seeds(json!({})).await, seeds(json!({"seed": 3})).await), (4, 1));
    // Unseen seeds differ.
    let (one, two) = (choice(json!({})).await, choice(json!({"temperature": null, "seed": null})).await);
    let defaults = [json!(1), json!(0), json!(1), json!(0), json!(1)];
    assert_eq!((&one[..5], &two[..5]), (&defaults[..], &defaults[..]));
    assert_ne!(one[5], two[5]);
}

#[tokio::test]
async fn what_would_change_the_answer_is_refused_by_name() {
    let server = speaker().await;
    for (field, value, part) in [
        ("n", json!(2), "one continuation"),
        ("best_of", json!(3), "one continuation"),
        ("echo", json!(true), "leave the prompt out"),
        ("logprobs", json!(0), "probabilities"),
        ("logit_bias", json!({"50": -100}), "logits"),
        ("presence_penalty", json!(0.5), "0 only"),
        ("frequency_penalty", json!(-1), "0 only"),
        ("suffix", json!("end"), "at their end"),
        ("temperature", json!(2.1), "0 to 2"),
        ("temperature", json!(-0.1), "0 to 2"),
        ("temperature", json!("hot"), "expected f64"),
        ("top_p", json!(1.5), "0 to 1"),
        ("top_k", json!(-2), "at least 1"),
        ("top_k", json!(1.5), "expected i64"),
        ("repetition_penalty", json!(0), "1/8 to 8"),
        ("repetition_penalty", json!(-1.1), "1/8 to 8"),
        ("repetition_penalty", json!(8.5), "1/8 to 8"),
        ("repetition_penalty", json!("much"), "expected f64"),
        ("min_p", json!(1.5), "0 to 1"),
        ("min_p", json!(-0.1), "0 to 1"),
        ("seed", json!(1.5), "expected i64"),
        ("max_tokens", json!(0), "at least one"),
        ("max_tokens", json!(-1), "expected u64"),
        ("stop", json!(""), "empty"),
        ("stop", json!(["a", ""]), "empty"),
        ("stop", json!(["a", "b", "c", "d", "e"]), "more than 4"),
        ("stop", json!(1), "a string or an array of up to 4"),
        ("stop", json!("x".repeat(1025)), "1025 bytes"),
        ("stream", json!("yes"), "boolean"),
        ("stream_options", json!({"include_usage": true}), "streams only"),
        ("prompt", json!(""), "empty"),
        ("prompt", json!([]), "empty"),
        ("prompt", json!(vec!["a"; 17]), "17 prompts"),
        ("prompt", json!("!refuse"), "send another text"),
        ("prompt", json!([300]), "below 257"),
        ("prompt", json!(null), "expected a string"),
    ] {
        let mut fields = json!({"prompt": "say a"});
        fields[field] = value.clone();
        let message = refused(complete(&server, fields).await, 400, INVALID, Some(field), None).await;
        assert!(message.contains(part), "{field} {value}: {message}");
    }
    let defaults = json!({"prompt": "say a", "n": 1, "best_of": 1, "echo": false, "logprobs": null, "logit_bias": {},
        "presence_penalty": 0.0, "frequency_penalty": 0, "suffix": null, "user": "u", "stop": null, "stream": false,
        "top_k": 0, "min_p": 0, "repetition_penalty": 1, "colour": "red"});
    assert_eq!(answer(&server, defaults).await["choices"][0]["text"], "a");
}

#[tokio::test]
async fn models_answer_at_their_own_address() {
    let server = speaker().await;
    for (path, body) in [
        ("/v1/completions", json!({"model": MODEL, "prompt": "a"})),
        ("/v1/chat/completions", json!({"model": MODEL, "messages": [{"role": "user", "content": "a"}]})),
        ("/v1/embeddings", json!({"model": SPEAKER, "input": "a"})),
    ] {
        let response = server.post_to(path, &body).send().await.unwrap();
        let message = refused(response, 404, INVALID, Some("model"), None).await;
        assert!(message.contains("not supported at this address"), "{message}");
    }
    let body = json!({"model": "gpt-5", "prompt": "a"});
    let response = server.post_to("/v1/completions", &body).send().await.unwrap();
    refused(response, 404, INVALID, Some("model"), Some("model_not_found")).await;
}

#[tokio::test]
async fn bodies_must_be_json() {
    let server = speaker().await;
    for path in ["/v1/completions", "/v1/chat/completions"] {
        for (body, part) in [
            (&b"{\"model\": "[..], "not valid JSON"),
            (b"{\"model\": \"\xff\"}", "not UTF-8"),
            (b"[]", "no JSON object"),
            (b"", "empty"),
        ] {
            let request = server.http.post(server.url(path)).bearer_auth(crate::served::KEY).body(body.to_vec());
            let response = request.header("content-type", "application/json").send().await.unwrap();
            let message = refused(response, 400, INVALID, None, None).await;
            assert!(message.contains(part), "{message}");
        }
    }
}

#[tokio::test]
async fn a_model_that_fails_over_a_text_goes_on_with_others() {
    let server = speaker().await;
    let response = complete(&server, json!({"prompt": ["say a", "fail b"]})).await;
    let message = refused(response, 500, "server_error", None, Some("internal_error")).await;
    assert!(!message.contains("secret"), "{message}");
    assert_eq!(answer(&server, json!({"prompt": "say a"})).await["choices"][0]["text"], "a");
    let response = complete(&server, json!({"prompt": "panic x"})).await;
    refused(response, 503, "server_error", None, Some("service_unavailable")).await;
    let response = complete(&server, json!({"prompt": "say a"})).await;
    refused(response, 503, "server_error", None, Some("service_unavailable")).await;
    assert_eq!(server.get("/healthz").send().await.unwrap().status(), 503);
}
