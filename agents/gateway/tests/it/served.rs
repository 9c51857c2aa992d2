//! A model made up for tests, and a gateway to it on a free port.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tensorlink_gateway::backend::{Backend, Before, EmbedError, Makes, Model, TokenizeError};
use tensorlink_gateway::keys::Keys;
use tensorlink_gateway::local::{Embedder, Local};
use tensorlink_gateway::{Access, Gateway, Limits, server};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const KEY: &str = "tl-first-key-of-the-tests";
pub(crate) const OTHER_KEY: &str = "tl-second-key-of-the-tests";
pub(crate) const MODEL: &str = "words";
/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The made-up model: 16 words of context, 8 elements.
pub(crate) fn model(id: &str) -> Model {
    Model {
        id: id.to_owned(),
        created: 1_700_000_000,
        context: 16,
        vocabulary: 1000,
        makes: Makes::Vectors { dimensions: 8 },
    }
}

/// Words are tokens; a vector depends on all of them and their order. Computing waits at a door, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Words {
    pub(crate) door: Option<Arc<Door>>,
}

/// Lets texts pass one by one, or all; remembers which were computed.
#[derive(Default)]
pub(crate) struct Door {
    state: Mutex<(usize, Vec<Vec<u32>>)>,
    changed: Condvar,
}

impl Door {
    pub(crate) fn let_pass(&self, texts: usize) {
        self.state.lock().unwrap().0 += texts;
        self.changed.notify_all();
    }

    pub(crate) fn reached(&self) -> Vec<Vec<u32>> {
        self.state.lock().unwrap().1.clone()
    }

    fn pass(&self, ids: &[u32]) {
        let mut state = self.state.lock().unwrap();
        state.1.push(ids.to_vec());
        while state.0 == 0 {
            state = self.changed.wait(state).unwrap();
        }
        state.0 -= 1;
    }
}

pub(crate) fn token(word: &str) -> u32 {
    word.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte))) % 1000
}

impl Embedder for Words {
    fn embed(&self, ids: &[u32]) -> Result<Vec<f32>, EmbedError> {
        if let Some(door) = &self.door {
            door.pass(ids);
        }
        assert_ne!(ids, [token("!panic")], "as the test asked");
        match ids {
            [id] if *id == token("!fail") => Err("the secret reason".into()),
            [id] if *id == token("!nan") => Ok(vec![f32::NAN; 8]),
            [id] if *id == token("!short") => Ok(vec![0.0; 7]),
            _ => Ok(vector(ids)),
        }
    }

    fn tokenize(&self, text: &str, before: &Before) -> Result<Vec<u32>, TokenizeError> {
        let prompt = if let Before::Prompt(name) = before { Some(name) } else { None };
        if prompt.is_some_and(|prompt| prompt != "query") {
            return Err(TokenizeError::Prompt("the model has no such prompt, but query".into()));
        }
        let text = if prompt.is_some() { &format!("query: {text}") } else { text };
        if text == "!refuse" {
            return Err(TokenizeError::Refused("send another text".into()));
        }
        if text == "!lose" {
            return Err(TokenizeError::Failed("the secret reason".into()));
        }
        Ok(text.split_whitespace().map(token).collect())
    }
}

pub(crate) fn vector(ids: &[u32]) -> Vec<f32> {
    let mix = |seed: u32| ids.iter().fold(seed, |hash, id| hash.wrapping_mul(0x9E37_79B1).rotate_left(5) ^ id);
    (1..=8).map(|element| (f64::from(mix(element)) / f64::from(u32::MAX) - 0.5) as f32).collect()
}

/// A gateway under test.
pub(crate) struct Server {
    pub(crate) address: std::net::SocketAddr,
    pub(crate) shutdown: CancellationToken,
    pub(crate) task: JoinHandle<std::io::Result<()>>,
    pub(crate) http: Client,
}

/// Starts a gateway with the two keys of the tests.
pub(crate) async fn start(backend: Arc<dyn Backend>, limits: Limits) -> Server {
    start_changed(backend, limits, |gateway| gateway).await
}

/// The same, with another gateway than by default.
pub(crate) async fn start_changed(
    backend: Arc<dyn Backend>,
    limits: Limits,
    change: impl FnOnce(Gateway) -> Gateway,
) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    std::fs::write(&path, format!("{KEY}\n{OTHER_KEY}\n")).unwrap();
    let access = Access::Keys(Keys::read(&path).unwrap());
    listen(change(Gateway::new(backend, access, limits, Instant::now())), Duration::from_secs(10)).await
}

pub(crate) async fn start_with(backend: Arc<dyn Backend>, access: Access, limits: Limits, grace: Duration) -> Server {
    listen(Gateway::new(backend, access, limits, Instant::now()), grace).await
}

async fn listen(gateway: Gateway, grace: Duration) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = gateway.router();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(server::serve(listener, router, grace, shutdown.clone()));
    let http = Client::builder().timeout(PATIENCE).no_proxy().build().unwrap();
    Server { address, shutdown, task, http }
}

/// Limits without a rate that tests would reach.
pub(crate) fn limits() -> Limits {
    Limits { per_minute: None, ..Limits::default() }
}

/// A gateway to the made-up model.
pub(crate) async fn words() -> Server {
    start(backend(Words::default(), 64), limits()).await
}

pub(crate) fn backend(words: Words, queue: usize) -> Arc<Local> {
    let mut local = Local::new();
    local.add(model(MODEL), words, queue).unwrap();
    Arc::new(local)
}

impl Server {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(self.url(path)).bearer_auth(KEY)
    }

    pub(crate) fn post(&self, body: &Value) -> RequestBuilder {
        self.post_to("/v1/embeddings", body)
    }

    pub(crate) fn post_to(&self, path: &str, body: &Value) -> RequestBuilder {
        self.http.post(self.url(path)).bearer_auth(KEY).json(body)
    }

    pub(crate) async fn embed(&self, input: Value) -> Response {
        self.post(&json!({"model": MODEL, "input": input})).send().await.unwrap()
    }
}

/// Checks that a response is an error in OpenAI's form; gives its message.
pub(crate) async fn refused(
    response: Response,
    status: u16,
    kind: &str,
    param: Option<&str>,
    code: Option<&str>,
) -> String {
    assert_eq!(response.status(), StatusCode::from_u16(status).unwrap());
    assert!(response.headers()["x-request-id"].to_str().unwrap().starts_with("req_"));
    assert_eq!(response.headers()["content-type"], "application/json");
    let body: Value = response.json().await.unwrap();
    let error = &body["error"];
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    assert_eq!(error.as_object().unwrap().len(), 4, "{body}");
    assert_eq!((error["type"].as_str(), error["param"].as_str(), error["code"].as_str()), (Some(kind), param, code));
    error["message"].as_str().unwrap().to_owned()
}

/// Waits until something holds.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "it never came true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
