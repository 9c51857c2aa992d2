//! A tiny exact decoder out of a folder, in two stages, behind the gateway.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tensorlink::hf_tokenizer::HfTokenizer;
use tensorlink::quantized::prepare;
use tensorlink_folder::ModelFolder;
use tensorlink_gateway::backend::{Makes, Model};
use tensorlink_gateway::generation::batch::Capacity;
use tensorlink_gateway::generation::cached::Cached;
use tensorlink_gateway::local::Local;
use tensorlink_model::decode::CachedRunner;
use tensorlink_model::fixture::{Folder, Stored, tokenizer_json};
use tensorlink_model::plan::Head;
use tensorlink_model::{Family, Quantized, StageRunner, tokens};
use tensorlink_proof::commit::tensor_root;
use tensorlink_tensor::{Device, TorchEngine};

use crate::served::{Server, limits, refused, start};

pub(crate) const TINY: &str = "tiny-llama";
const TEXTS: &str = "the cat sat on the mat\na dog ran\nthe dog sat on a cat\n";
const TEMPLATE: &str = "{{ bos_token }}{% for message in messages %}{% if message.role == 'system' %}\
    {{ raise_exception('no system messages, please') }}{% endif %} {{ message.content }}{% endfor %}";

/// A folder with a chat template, and room for 32 tokens.
pub(crate) fn write(path: &Path, template: bool) {
    let mut folder = Folder::new(Family::Llama);
    folder.config.insert("max_position_embeddings".into(), 32.into());
    std::fs::write(path.join("config.json"), folder.config_json()).unwrap();
    std::fs::write(path.join("model.safetensors"), folder.safetensors(Stored::Bf16)).unwrap();
    std::fs::write(path.join("tokenizer.json"), tokenizer_json()).unwrap();
    std::fs::write(path.join("generation_config.json"), json!({"eos_token_id": [2, 1]}).to_string()).unwrap();
    let mut config = json!({"bos_token": "<s>", "eos_token": {"content": "</s>"}});
    if template {
        config["chat_template"] = TEMPLATE.into();
    }
    std::fs::write(path.join("tokenizer_config.json"), config.to_string()).unwrap();
}

fn stage(model: &Quantized) -> StageRunner<TorchEngine> {
    let (plan, constants) = model.stage(0..model.architecture().layers, tensor_root).unwrap();
    StageRunner::new(TorchEngine::new(Device::Cpu).unwrap(), plan, &constants).unwrap()
}

/// Adds the model of such a folder.
pub(crate) fn add(local: &mut Local, path: &Path) -> Quantized {
    let folder = ModelFolder::open(path).unwrap();
    let exact = prepare(&folder, TEXTS, Device::Cpu).unwrap().exact;
    let shape = Model { id: TINY.into(), created: 1_700_000_000, context: 32, vocabulary: 16, makes: Makes::Text };
    let capacity = Capacity { queue: 64, texts: 4 };
    let tokenizer = Arc::new(HfTokenizer::of(&folder).unwrap());
    let engine = TorchEngine::new(Device::Cpu).unwrap();
    let stages = [0..1, 1..2].map(|layers| {
        let (plan, constants) = exact.stage_with(layers, Head::Choice, tensor_root).unwrap();
        CachedRunner::new(engine.clone(), plan, &constants).unwrap()
    });
    local.add_decoder(shape, tokenizer, Cached::new(stages.into()).unwrap(), capacity).unwrap();
    exact
}

async fn serve(template: bool) -> (Server, Quantized) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), template);
    let mut local = Local::new();
    let exact = add(&mut local, folder.path());
    (start(Arc::new(local), limits()).await, exact)
}

async fn answer(server: &Server, path: &str, mut fields: Value) -> Value {
    fields["model"] = TINY.into();
    let response = server.post_to(path, &fields).send().await.unwrap();
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    assert_eq!(status, 200, "{body}");
    body
}

/// The likeliest continuation, by the whole program for every token, until an end or `most` tokens.
fn likeliest(model: &Quantized, prompt: &[u32], most: usize) -> Vec<u32> {
    let runner = stage(model);
    let mut text = prompt.to_vec();
    while text.len() < prompt.len() + most {
        let logits = runner.run(&tokens(&text).unwrap()).unwrap().to_f64();
        let last = &logits[logits.len() - 16..];
        let best = (0u32..).zip(last).fold((0, f64::MIN), |best, (id, x)| if *x > best.1 { (id, *x) } else { best });
        text.push(best.0);
        if [1, 2, 3].contains(&best.0) {
            break;
        }
    }
    text.split_off(prompt.len())
}

#[tokio::test]
async fn the_likeliest_text_is_the_exact_programs() {
    let (server, exact) = serve(true).await;
    let mut lengths = vec![];
    for (prompt, ids) in [("the cat", vec![0, 4, 5]), ("a dog ran on", vec![0, 10, 6, 8, 9]), ("mat", vec![0, 11])] {
        let expected = likeliest(&exact, &ids, 12);
        // The fixture's tokenizer begins texts with <s> and ends them with </s>, after which nothing could follow.
        let fields = json!({"prompt": prompt, "max_tokens": 12, "temperature": 0});
        let body = answer(&server, "/v1/completions", fields).await;
        assert_eq!(body["usage"]["prompt_tokens"], ids.len());
        assert_eq!(body["usage"]["completion_tokens"], expected.len());
        let by_ids = json!({"prompt": ids, "max_tokens": 12, "temperature": 0});
        assert_eq!(answer(&server, "/v1/completions", by_ids).await["choices"], body["choices"]);
        let chat = json!({"messages": [{"role": "user", "content": prompt}], "max_tokens": 12, "temperature": 0});
        let chat = answer(&server, "/v1/chat/completions", chat).await;
        assert_eq!(chat["usage"], body["usage"]);
        assert_eq!(chat["choices"][0]["message"]["content"], body["choices"][0]["text"]);
        lengths.push(expected.len());
    }
    assert!(lengths.iter().any(|length| *length > 1), "{lengths:?}: nothing was continued");
}

#[tokio::test]
async fn a_seed_names_a_text_whatever_runs_beside_it() {
    let (server, _) = serve(true).await;
    let fields = |seed: u64| json!({"prompt": "the cat", "max_tokens": 8, "seed": seed, "temperature": 2});
    let mut alone = vec![];
    for seed in 0..6 {
        alone.push(answer(&server, "/v1/completions", fields(seed)).await["choices"].clone());
    }
    assert!(alone.iter().any(|choices| *choices != alone[0]), "{alone:?}");
    let together = futures::future::join_all((0..6).map(|seed| answer(&server, "/v1/completions", fields(seed)))).await;
    assert_eq!(together.iter().map(|body| body["choices"].clone()).collect::<Vec<_>>(), alone);
}

#[tokio::test]
async fn templates_refuse_in_their_own_words_and_models_without_one_in_ours() {
    let (server, _) = serve(true).await;
    let body = json!({"model": TINY, "messages": [{"role": "system", "content": "the"}]});
    let response = server.post_to("/v1/chat/completions", &body).send().await.unwrap();
    let message = refused(response, 400, "invalid_request_error", Some("messages"), None).await;
    assert!(message.contains("no system messages, please"), "{message}");
    let (server, _) = serve(false).await;
    let response = server.post_to("/v1/chat/completions", &body).send().await.unwrap();
    let message = refused(response, 400, "invalid_request_error", Some("messages"), None).await;
    assert!(message.contains("no chat template") && message.contains("/v1/completions"), "{message}");
}
