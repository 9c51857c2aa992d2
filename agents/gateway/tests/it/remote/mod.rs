//! The gateway over the scripted workers of a serving job whose last stage chooses tokens: from a client's request to
//! what workers are paid.

mod moved;
#[allow(dead_code, reason = "shared with the tests of workers")]
#[path = "../../../../worker/tests/it/serving/world.rs"]
mod processes;
mod real;
#[allow(dead_code, reason = "workers misbehave in more ways than are tested here")]
#[path = "../../../../user/tests/it/serving/worker.rs"]
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tensorlink_gateway::backend::{Backend, BackendError, EmbedError, Makes, Model, TokenizeError};
use tensorlink_gateway::generation::language::{Language, Spell};
use tensorlink_gateway::generation::{Ask, Prompt, SamplingParams};
use tensorlink_gateway::remote::{Remote, Words};
use tensorlink_gateway::{Access, Gateway, Limits, server};
use tensorlink_model::choice::controls;
use tensorlink_model::{Plan, StageRunner, tokens};
use tensorlink_node::ports::Ports;
use tensorlink_node::ports::chain::JobView;
use tensorlink_program::Reference;
use tensorlink_types::{JobId, Lane};
use tensorlink_user::serving::{Agreement, Boundaries, Pipeline, Pipelines};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use worker::{Manner, Worker};

use crate::support::serving::{LONGEST, choosing_plans, serving_view, shards};
use crate::support::{Hasty, Hub, JOB, MemoryChain, identity, ports};

const MODEL: &str = "tiny";
const PROMPT: [u32; 2] = [3, 1];
/// Tokens added to it, of which the last is computed by nobody.
const MORE: u32 = 3;
const COMPUTED: u32 = 4;

/// Tokens as numbers with a space before each; no text ends by itself.
struct Numerals;

impl Language for Numerals {
    fn encode(&self, prompt: &Prompt) -> Result<Vec<u32>, TokenizeError> {
        let text = match prompt {
            Prompt::Tokens(ids) => return Ok(ids.clone()),
            Prompt::Text(text) => text.clone(),
            Prompt::Chat(chat) => chat.messages.iter().map(|said| said.content.clone()).collect(),
        };
        Ok(text.split_whitespace().map(|word| word.parse().unwrap()).collect())
    }

    fn ends(&self) -> &[u32] {
        &[]
    }

    fn spell(&self, _: &[u32]) -> Box<dyn Spell + Send + '_> {
        Box::new(Self)
    }
}

impl Spell for Numerals {
    fn push(&mut self, token: u32) -> Result<String, EmbedError> {
        Ok(format!(" {token}"))
    }

    fn rest(&mut self) -> Result<String, EmbedError> {
        Ok(String::new())
    }
}

/// The user's side of a job.
async fn pipeline(mut ports: Ports, view: &JobView) -> Pipeline {
    ports.clock = Arc::new(Hasty);
    let plans: Vec<Plan> = choosing_plans().into_iter().map(|(plan, _)| plan).collect();
    Pipeline::open(ports, view, Boundaries::new(&plans).unwrap(), Agreement::of_one()).await.unwrap()
}

/// The model over a job's workers.
fn remote(pipelines: Arc<Pipelines>) -> Remote {
    let model = Model { id: MODEL.into(), created: 1, context: LONGEST, vocabulary: 20, makes: Makes::Text };
    Remote::new(model, pipelines, Words::Texts(Arc::new(Numerals)), 8)
}

/// Workers of all stages of a job, with the keys from this one on.
async fn serve(job: JobId, key: u8, hub: &Arc<Hub>) -> Vec<Arc<Worker>> {
    let mut workers = Vec::new();
    for (stage, shard) in (0u16..).zip(shards(choosing_plans())) {
        let lane = Lane { job, stage, replica: 0 };
        workers.push(Worker::start(lane, stage as u8 + key, shard, hub).await);
    }
    workers
}

struct World {
    hub: Arc<Hub>,
    workers: Vec<Arc<Worker>>,
    pipelines: Arc<Pipelines>,
    remote: Arc<Remote>,
    url: String,
    http: reqwest::Client,
    folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let (hub, shards) = (Arc::new(Hub::default()), shards(choosing_plans()));
        let workers = serve(JOB, 1, &hub).await;
        let chain = MemoryChain::serving(serving_view(2), &[1, 2].map(|key| identity(key).address()), &shards);
        let folder = tempfile::tempdir().unwrap();
        let ports = ports(0x55, chain, Arc::default(), hub.clone(), folder.path());
        let pipelines = Arc::new(Pipelines::new(pipeline(ports, &serving_view(2)).await, []));
        let remote = Arc::new(remote(Arc::clone(&pipelines)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Gateway::new(remote.clone(), Access::Open, Limits::default(), Instant::now()).router();
        tokio::spawn(server::serve(listener, router, Duration::from_secs(1), CancellationToken::new()));
        let http = reqwest::Client::builder().timeout(Duration::from_secs(20)).no_proxy().build().unwrap();
        Self { hub, workers, pipelines, remote, url, http, folder }
    }

    async fn post(&self, path: &str, body: Value) -> reqwest::Response {
        self.http.post(format!("{}{path}", self.url)).json(&body).send().await.unwrap()
    }

    /// Receipts are there once the text has ended.
    async fn receipts(&self, id: &str) -> Value {
        loop {
            let response = self.http.get(format!("{}/v1/receipts/{id}", self.url)).send().await.unwrap();
            if response.status() == 200 {
                return response.json().await.unwrap();
            }
            assert_eq!(response.status(), 404);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn paid(&self) -> Vec<u32> {
        self.workers.iter().map(|worker| worker.paid()).collect()
    }
}

/// The likeliest continuation, computed from nothing for each token.
fn due(prompt: &[u32]) -> String {
    let stages: Vec<_> = choosing_plans()
        .into_iter()
        .map(|(plan, constants)| StageRunner::new(Reference, plan, &constants).unwrap())
        .collect();
    let (mut ids, mut text) = (prompt.to_vec(), String::new());
    for _ in 0..MORE {
        let choices: Vec<_> = ids.iter().map(|id| (*id, Some(SamplingParams::default()))).collect();
        let hidden = stages[0].run(&tokens(&ids).unwrap()).unwrap();
        let chosen = stages[1].choose(&hidden, &controls(0, &choices).unwrap()).unwrap();
        ids.push(u32::try_from(*chosen.mantissas().to_vec().last().unwrap()).unwrap());
        text.push_str(&format!(" {}", ids[ids.len() - 1]));
    }
    text
}

fn ask(prompts: Vec<Prompt>) -> Ask {
    Ask { prompts, most: MORE, sampling: SamplingParams::default().into(), stops: vec![] }
}

#[tokio::test]
async fn completions_are_computed_by_workers_named_by_receipts_and_paid() {
    let world = World::new().await;
    let body = json!({"model": MODEL, "prompt": [[3, 1], [7, 2]], "max_tokens": MORE, "temperature": 0});
    let response = world.post("/v1/completions", body).await;
    assert_eq!((response.status().as_u16(), &response.headers()["x-receipt-id"]), (200, &"1-0..1".parse().unwrap()));
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["choices"][0]["text"], due(&PROMPT));
    assert_eq!(answer["choices"][1]["text"], due(&[7, 2]));
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let receipts = world.receipts("1-0..1").await;
    for text in receipts["texts"].as_array().unwrap() {
        assert_eq!((&text["tokens"], text["stages"].as_array().unwrap().len()), (&json!(COMPUTED), 2));
        assert_eq!(text["terms"], json!({ "setting": "standard", "conviction_gas": 652_260 }));
    }
    world.remote.close().await;
    assert_eq!(world.paid(), [2 * COMPUTED; 2]);
}

#[tokio::test]
async fn a_stream_names_its_receipts_before_they_are_there() {
    let world = World::new().await;
    let body = json!({"model": MODEL, "messages": [{"role": "user", "content": "3 1"}], "max_tokens": MORE,
        "temperature": 0, "stream": true});
    let response = world.post("/v1/chat/completions", body).await;
    assert_eq!((response.status().as_u16(), &response.headers()["x-receipt-id"]), (200, &"1-0".parse().unwrap()));
    let events = response.text().await.unwrap();
    let said: String = events
        .split_terminator("\n\n")
        .filter_map(|event| serde_json::from_str::<Value>(event.strip_prefix("data: ")?).ok())
        .filter_map(|part| part["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(said, due(&PROMPT));
    assert!(events.ends_with("data: [DONE]\n\n"));
    assert_eq!(world.receipts("1-0").await["texts"][0]["tokens"], COMPUTED);
    world.remote.close().await;
    assert_eq!(world.paid(), [COMPUTED; 2]);
}

#[tokio::test]
async fn tokens_that_went_through_are_paid_though_their_reader_left() {
    let world = World::new().await;
    let mut generated = world.remote.generate(MODEL, ask(vec![Prompt::Tokens(PROMPT.into())])).await.unwrap();
    let receipt = generated.receipt.unwrap();
    assert!(generated.generations[0].pieces.recv().await.unwrap().is_ok());
    drop(generated);
    world.remote.close().await;
    let texts = world.remote.receipts(receipt).unwrap();
    let tokens = u32::try_from(texts["texts"][0]["tokens"].as_u64().unwrap()).unwrap();
    assert!((2..=COMPUTED).contains(&tokens), "{tokens}");
    assert_eq!(world.paid(), [tokens; 2]);
}

#[tokio::test]
async fn a_worker_that_dies_in_a_text_ends_it_with_an_error_and_nobody_is_paid() {
    let world = World::new().await;
    world.workers[0].set(Manner::Busy(5));
    let mut generated = world.remote.generate(MODEL, ask(vec![Prompt::Tokens(PROMPT.into())])).await.unwrap();
    world.workers[1].set(Manner::Dead);
    let pieces = &mut generated.generations[0].pieces;
    assert_eq!(pieces.recv().await, Some(Err(BackendError::Stopped)));
    assert_eq!(pieces.recv().await, None);
    let body = json!({"model": MODEL, "prompt": [3, 1], "max_tokens": 1});
    let response = world.post("/v1/completions", body).await;
    assert_eq!(response.status(), 503);
    world.remote.close().await;
    assert!(world.remote.receipts(generated.receipt.unwrap()).is_err());
    assert_eq!(world.paid(), [0; 2]);
}

#[tokio::test]
async fn what_a_decoder_does_not_do_is_refused_before_any_worker_is_asked() {
    let world = World::new().await;
    let long = ask(vec![Prompt::Tokens(vec![1; LONGEST as usize])]);
    assert!(matches!(world.remote.generate(MODEL, long).await, Err(BackendError::NoRoom { .. })));
    let unknown = ask(vec![Prompt::Tokens(vec![20])]);
    assert!(matches!(world.remote.generate(MODEL, unknown).await, Err(BackendError::UnknownToken { .. })));
    assert!(matches!(world.remote.generate("other", ask(vec![])).await, Err(BackendError::UnknownModel(_))));
    assert!(matches!(world.remote.embed(MODEL, vec![].into()).await, Err(BackendError::OtherKind(_))));
    assert!(world.workers.iter().all(|worker| worker.with(|inner| inner.advances.is_empty())));
    world.remote.close().await;
    let late = world.remote.generate(MODEL, ask(vec![Prompt::Tokens(PROMPT.into())])).await.unwrap();
    let mut pieces = late.generations.into_iter().next().unwrap().pieces;
    assert_eq!(pieces.recv().await, Some(Err(BackendError::Stopped)));
}
