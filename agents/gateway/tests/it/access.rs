//! Who may ask, and what the log says of it.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tensorlink_gateway::Access;
use tracing_subscriber::fmt::MakeWriter;

use crate::served::{KEY, MODEL, OTHER_KEY, Words, backend, limits, refused, start_with, until, words};

const INVALID: &str = "invalid_request_error";

#[tokio::test]
async fn without_a_key_nothing_of_the_api_answers() {
    let server = words().await;
    let body = json!({"model": MODEL, "input": "a"});
    let requests = || {
        [
            server.http.get(server.url("/v1/models")),
            server.http.get(server.url("/v1/models/words")),
            server.http.post(server.url("/v1/embeddings")).json(&body),
        ]
    };
    for request in requests() {
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
        refused(response, 401, INVALID, None, Some("invalid_api_key")).await;
    }
    for wrong in ["Bearer tl-wrong-key-0123456789", "Bearer ", "Basic dTpw", "Bearer", KEY] {
        for request in requests() {
            let response = request.header("authorization", wrong).send().await.unwrap();
            let message = refused(response, 401, INVALID, None, Some("invalid_api_key")).await;
            assert!(!message.contains("tl-"), "{message}");
        }
    }
}

#[tokio::test]
async fn every_key_of_the_file_opens() {
    let server = words().await;
    for key in [KEY, OTHER_KEY] {
        assert_eq!(server.http.get(server.url("/v1/models")).bearer_auth(key).send().await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn an_open_gateway_asks_for_no_key() {
    let backend = backend(Words::default(), 4);
    let server = start_with(backend, Access::Open, limits(), Duration::from_secs(1)).await;
    assert_eq!(server.http.get(server.url("/v1/models")).send().await.unwrap().status(), 200);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

// For the whole process: the log of all tests that run beside this one must hold no key either.
#[tokio::test]
async fn the_log_names_requests_and_holds_no_content() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(log.clone()).finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let server = words().await;
    let request = server.http.post(server.url("/v1/embeddings?private=query")).bearer_auth(OTHER_KEY);
    let response = request.json(&json!({"model": MODEL, "input": ["private words", "more"]})).send().await.unwrap();
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    assert_eq!(response.status(), 200);
    let response = server.get("/v1/models/private-name").send().await.unwrap();
    assert_eq!(response.status(), 404);
    let missing = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    until(|| log.text().contains(&missing)).await;
    let text = log.text();
    let line = text.lines().find(|line| line.contains(&id)).unwrap();
    for part in ["method=POST", "route=\"/v1/embeddings\"", "status=200", "key=1", "texts=2", "tokens=3", "ms="] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(!text.contains("private") && !text.contains("tl-"), "{text}");
}
