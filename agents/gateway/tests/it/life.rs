//! Clients that leave, models that die, servers that stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::json;
use tensorlink_gateway::backend::{Backend, BackendError, Embedded, Model, Texts};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use crate::served::{
    Door, KEY, MODEL, PATIENCE, Words, backend, limits, model, refused, start, start_with, until, words,
};

/// Never answers; tells when it is asked and when it is no longer waited for.
struct Endless {
    models: Vec<Model>,
    asked: Arc<Notify>,
    dropped: Arc<Notify>,
}

struct Told(Arc<Notify>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl Backend for Endless {
    fn models(&self) -> &[Model] {
        &self.models
    }

    fn alive(&self) -> bool {
        true
    }

    async fn embed(&self, _: &str, _: Texts) -> Result<Embedded, BackendError> {
        let _told = Told(self.dropped.clone());
        self.asked.notify_one();
        std::future::pending().await
    }
}

fn endless() -> (Arc<Endless>, Arc<Notify>, Arc<Notify>) {
    let (asked, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let backend = Endless { models: vec![model(MODEL)], asked: asked.clone(), dropped: dropped.clone() };
    (Arc::new(backend), asked, dropped)
}

#[tokio::test]
async fn work_ends_when_its_client_leaves() {
    let (backend, asked, dropped) = endless();
    let server = start(backend, limits()).await;
    let body = json!({"model": MODEL, "input": "a"}).to_string();
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    tokio::time::timeout(PATIENCE, asked.notified()).await.unwrap();
    drop(stream);
    tokio::time::timeout(PATIENCE, dropped.notified()).await.unwrap();
}

#[tokio::test]
async fn a_stopping_server_finishes_what_is_under_way_and_takes_no_more() {
    let door = Arc::new(Door::default());
    let server = Arc::new(start(backend(Words { door: Some(door.clone()) }, 4), limits()).await);
    let under_way = tokio::spawn({
        let server = server.clone();
        async move { server.embed(json!("a")).await }
    });
    until(|| door.reached().len() == 1).await;
    server.shutdown.cancel();
    let end = Instant::now() + PATIENCE;
    while tokio::net::TcpStream::connect(server.address).await.is_ok() {
        assert!(Instant::now() < end, "it still listens");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!server.task.is_finished());
    door.let_pass(1);
    assert_eq!(under_way.await.unwrap().status(), 200);
    until(|| server.task.is_finished()).await;
}

#[tokio::test]
async fn a_stopping_server_waits_only_so_long() {
    let (backend, asked, dropped) = endless();
    let access = tensorlink_gateway::Access::Open;
    let server = start_with(backend, access, limits(), Duration::from_millis(200)).await;
    let request = server.http.post(server.url("/v1/embeddings")).json(&json!({"model": MODEL, "input": "a"}));
    let under_way = tokio::spawn(request.send());
    asked.notified().await;
    server.shutdown.cancel();
    tokio::time::timeout(PATIENCE, server.task).await.unwrap().unwrap().unwrap();
    dropped.notified().await;
    assert!(under_way.await.unwrap().is_err());
}

#[tokio::test]
async fn a_model_that_fails_over_a_text_serves_the_next_and_keeps_the_reason_to_itself() {
    let server = words().await;
    for text in ["!fail", "!nan", "!short", "!lose"] {
        let message = refused(server.embed(json!(text)).await, 500, "server_error", None, Some("internal_error")).await;
        assert!(!message.contains("secret"), "{message}");
        assert_eq!(server.embed(json!("fine")).await.status(), 200);
    }
}

#[tokio::test]
async fn a_model_that_dies_is_told_of_and_health_says_so() {
    let server = words().await;
    for _ in 0..2 {
        let response = server.embed(json!("!panic")).await;
        refused(response, 503, "server_error", None, Some("service_unavailable")).await;
        until_unwell(&server).await;
    }
    assert_eq!(server.get("/v1/models").send().await.unwrap().status(), 200);
}

async fn until_unwell(server: &crate::served::Server) {
    let end = Instant::now() + PATIENCE;
    while server.get("/healthz").send().await.unwrap().status() != 503 {
        assert!(Instant::now() < end, "it claims to be well");
    }
}
