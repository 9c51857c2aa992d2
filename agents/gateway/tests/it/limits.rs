//! What happens under load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tensorlink_gateway::Limits;

use crate::served::{Door, KEY, MODEL, OTHER_KEY, PATIENCE, Server, Words, backend, limits, refused, start, until};

#[tokio::test]
async fn a_key_that_asks_too_often_is_told_when_to_come_back() {
    let server = start(backend(Words::default(), 64), Limits { per_minute: Some(20), ..Limits::default() }).await;
    for _ in 0..2 {
        assert_eq!(server.get("/v1/models").send().await.unwrap().status(), 200);
    }
    let response = server.embed(json!("a")).await;
    let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=3).contains(&wait), "{wait}");
    let message = refused(response, 429, "requests", None, Some("rate_limit_exceeded")).await;
    assert!(message.contains("20 requests per minute"), "{message}");
    // Another key's requests are its own.
    assert_eq!(server.http.get(server.url("/v1/models")).bearer_auth(OTHER_KEY).send().await.unwrap().status(), 200);
    tokio::time::sleep(Duration::from_secs(wait)).await;
    assert_eq!(server.embed(json!("a")).await.status(), 200);
}

#[tokio::test]
async fn a_full_queue_refuses_and_recovers() {
    let door = Arc::new(Door::default());
    let server = Arc::new(start(backend(Words { door: Some(door.clone()) }, 1), limits()).await);
    let ask = |text: &'static str| {
        let server = server.clone();
        tokio::spawn(async move { server.embed(json!(text)).await })
    };
    let first = ask("first");
    until(|| door.reached().len() == 1).await;
    // One computes, one waits; which of the two others waits is theirs to settle.
    let others = [ask("second"), ask("third")];
    until(|| others.iter().any(tokio::task::JoinHandle::is_finished)).await;
    door.let_pass(2);
    assert_eq!(first.await.unwrap().status(), 200);
    let mut answered = 0;
    for other in others {
        let response = other.await.unwrap();
        if response.status() == 200 {
            answered += 1;
        } else {
            assert_eq!(response.headers()["retry-after"], "1");
            refused(response, 429, "requests", None, Some("overloaded")).await;
        }
    }
    assert_eq!(answered, 1);
    door.let_pass(1);
    assert_eq!(server.embed(json!("fourth")).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_once_are_answered_or_refused() {
    let door = Arc::new(Door::default());
    let server = Arc::new(start(backend(Words { door: Some(door.clone()) }, 32), limits()).await);
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..1000 {
        let server = server.clone();
        asked.spawn(async move {
            let response = server.embed(json!(format!("text {number}"))).await;
            let retry = response.headers().contains_key("retry-after");
            let status = response.status().as_u16();
            // An answer is whole.
            let body: serde_json::Value = response.json().await.unwrap();
            assert!(body["data"].is_array() || body["error"]["message"].is_string(), "{body}");
            (status, retry)
        });
    }
    let mut counts = BTreeMap::new();
    let all = async {
        while let Some(result) = asked.join_next().await {
            *counts.entry(result.unwrap()).or_insert(0) += 1;
            // Nobody is let through before somebody was refused, so the queue does fill.
            if counts.values().sum::<usize>() == 1 {
                door.let_pass(1000);
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap();
    let (answered, refused) = (counts.remove(&(200, false)).unwrap_or(0), counts.remove(&(429, true)).unwrap_or(0));
    assert!(counts.is_empty(), "{counts:?}");
    assert!(answered >= 33 && refused >= 1 && answered + refused == 1000, "{answered} answered, {refused} refused");
    assert_eq!(server.embed(json!("after")).await.status(), 200);
}

#[tokio::test]
async fn requests_in_memory_are_bounded_before_their_bodies_are_read() {
    let server = start(backend(Words::default(), 64), Limits { requests: 1, ..limits() }).await;
    let stalled = stall(&server).await;
    let response = until_refused(&server).await;
    refused(response, 429, "requests", None, Some("overloaded")).await;
    drop(stalled);
    let end = std::time::Instant::now() + PATIENCE;
    while server.embed(json!("a")).await.status() != 200 {
        assert!(std::time::Instant::now() < end, "the place is never free again");
    }
}

#[tokio::test]
async fn a_body_that_stalls_ends_in_time() {
    let server = start(backend(Words::default(), 64), Limits { time: Duration::from_millis(200), ..limits() }).await;
    let answer = read(stall(&server).await).await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("request_timeout"), "{answer}");
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_given_up() {
    let door = Arc::new(Door::default());
    let limits = Limits { time: Duration::from_millis(200), ..limits() };
    let server = start(backend(Words { door: Some(door.clone()) }, 4), limits).await;
    refused(server.embed(json!("a")).await, 503, "server_error", None, Some("timeout")).await;
    door.let_pass(1);
}

/// A request whose body never comes.
async fn stall(server: &Server) -> tokio::net::TcpStream {
    use tokio::io::AsyncWriteExt;
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{\"model\": \"{MODEL}\""
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn read(mut stream: tokio::net::TcpStream) -> String {
    use tokio::io::AsyncReadExt;
    let mut bytes = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
    String::from_utf8(bytes).unwrap()
}

async fn until_refused(server: &Server) -> reqwest::Response {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        let response = server.embed(json!("a")).await;
        if response.status() == 429 {
            return response;
        }
        assert!(std::time::Instant::now() < end, "the stalled request takes no place");
    }
}
