//! Pages in browsers, other names of this machine, and clients that only hold connections.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tensorlink_gateway::Access;
use tensorlink_gateway::origins::Origins;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::served::{MODEL, PATIENCE, Server, Words, backend, limits, refused, start_changed, start_with, words};

const INVALID: &str = "invalid_request_error";
const PAGE: &str = "https://chat.example.org";

/// What a browser asks before a page's request.
async fn preflight(server: &Server, origin: &str) -> reqwest::Response {
    let request = server.http.request(Method::OPTIONS, server.url("/v1/embeddings"));
    let request = request.header("origin", origin).header("access-control-request-method", "POST");
    request.header("access-control-request-headers", "authorization,x-stainless-os").send().await.unwrap()
}

#[tokio::test]
async fn pages_of_this_machine_and_of_named_origins_may_ask() {
    let named = Origins::new([PAGE]).unwrap();
    let server = start_changed(backend(Words::default(), 4), limits(), |gateway| gateway.with_origins(named)).await;
    for origin in ["http://localhost:3000", PAGE] {
        let answer = preflight(&server, origin).await;
        assert_eq!(answer.status(), 204);
        let headers = answer.headers();
        assert_eq!(headers["access-control-allow-origin"], origin);
        assert_eq!(headers["access-control-allow-methods"], "GET, POST");
        assert_eq!(headers["access-control-allow-headers"], "authorization,x-stainless-os");
        let body = json!({"model": MODEL, "input": "a"});
        let answer = server.post(&body).header("origin", origin).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["access-control-allow-origin"]),
            (200, &origin.parse().unwrap())
        );
        assert_eq!(answer.headers()["vary"], "origin");
    }
    let refusal =
        refused(preflight(&server, "https://evil.example").await, 403, INVALID, None, Some("origin_not_allowed"));
    assert!(refusal.await.contains("--allow-origin https://evil.example"));
    let answer = server.get("/v1/models").header("origin", "https://evil.example").send().await.unwrap();
    assert!(!answer.headers().contains_key("access-control-allow-origin"), "a page cannot read it");
    // Not asked by a page, and no question of a browser's.
    let other = server.http.request(Method::OPTIONS, server.url("/v1/embeddings")).send().await.unwrap();
    assert_eq!(other.status(), 405);
}

#[tokio::test]
async fn where_no_key_is_asked_for_this_machine_answers_by_its_own_names_only() {
    let server = start_with(backend(Words::default(), 4), Access::Open, limits(), Duration::from_secs(1)).await;
    let ask = |path: &str, host: &str| server.http.get(server.url(path)).header("host", host.to_owned()).send();
    for host in ["localhost", "127.0.0.1:8080", "[::1]:8080"] {
        assert_eq!(ask("/v1/models", host).await.unwrap().status(), 200, "{host}");
    }
    let rebound = ask("/v1/models", "evil.example").await.unwrap();
    let message = refused(rebound, 403, INVALID, None, Some("host_not_allowed")).await;
    assert!(message.contains("evil.example"), "{message}");
    assert_eq!(ask("/healthz", "evil.example").await.unwrap().status(), 200);
    // A key says enough.
    let keyed = words().await;
    let answer = keyed.get("/v1/models").header("host", "gateway.example").send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn whoever_only_holds_connections_makes_room_for_who_asks() {
    let server = words().await;
    let mut held = Vec::new();
    for _ in 0..1024 {
        held.push(TcpStream::connect(server.address).await.unwrap());
    }
    // Those that have just come may be about to ask.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.get("/healthz").send().await.unwrap().status(), 200);
    assert_eq!(server.embed(json!("a")).await.status(), 200);
    // The first that came was ended, the last was not.
    let mut bytes = [0];
    assert!(matches!(tokio::time::timeout(PATIENCE, held[0].read(&mut bytes)).await.unwrap(), Ok(0) | Err(_)));
    let last = held.last_mut().unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), last.read(&mut bytes)).await.is_err(), "it is still there");
}
