//! Receipts of texts that others computed.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tensorlink_gateway::backend::{Backend, BackendError, Embedded, Embedding, Model, ReceiptError, ReceiptId, Texts};

use crate::served::{MODEL, Server, limits, model, refused, start, words};

const INVALID: &str = "invalid_request_error";

/// Numbers its texts from 17, in job 3; keeps the receipts of those below 20.
struct Signing([Model; 1]);

#[async_trait]
impl Backend for Signing {
    fn models(&self) -> &[Model] {
        &self.0
    }

    fn alive(&self) -> bool {
        true
    }

    async fn embed(&self, _: &str, Texts { inputs, .. }: Texts) -> Result<Embedded, BackendError> {
        let embeddings = vec![Embedding { vector: vec![0.5; 8], tokens: 2 }; inputs.len()];
        let last = 16 + u32::try_from(inputs.len()).unwrap();
        Ok(Embedded { embeddings, receipt: Some(ReceiptId { job: 3, first: 17, last }) })
    }

    fn receipts(&self, id: ReceiptId) -> Result<Value, ReceiptError> {
        match id {
            ReceiptId { first: 666, .. } => Err(ReceiptError::Failed("the secret reason".into())),
            ReceiptId { job: 3, first: 17, last: 0..20 } => Ok(json!({"texts": [{"job": 3, "last": id.last}]})),
            _ => Err(ReceiptError::Unknown),
        }
    }
}

async fn signing() -> Server {
    start(Arc::new(Signing([model(MODEL)])), limits()).await
}

#[tokio::test]
async fn a_response_names_its_receipts_and_they_are_given() {
    let server = signing().await;
    for (input, id, last) in [(json!("one"), "3-17", 17), (json!(["one", "two", "three"]), "3-17..19", 19)] {
        let response = server.embed(input).await;
        assert_eq!(response.headers()["x-receipt-id"], id);
        let body: Value = response.json().await.unwrap();
        assert!(body.get("id").is_none(), "OpenAI's schema has no such field");
        let receipts = server.get(&format!("/v1/receipts/{id}")).send().await.unwrap();
        assert_eq!(receipts.status(), 200);
        assert_eq!(receipts.json::<Value>().await.unwrap(), json!({"texts": [{"job": 3, "last": last}]}));
    }
}

#[tokio::test]
async fn unknown_receipts_are_refused_in_openais_form() {
    let server = signing().await;
    for id in ["4-17", "3-18", "3-17..20", "3-17..2100", "3-19..17", "anything", "3-", "17"] {
        let response = server.get(&format!("/v1/receipts/{id}")).send().await.unwrap();
        let message = refused(response, 404, INVALID, Some("id"), Some("receipt_not_found")).await;
        assert!(message.contains(id) && message.contains("no receipts of this id"), "{message}");
    }
    let response = server.get("/v1/receipts/3-666").send().await.unwrap();
    let message = refused(response, 500, "server_error", None, Some("internal_error")).await;
    assert!(!message.contains("secret"), "{message}");
}

#[tokio::test]
async fn receipts_are_for_those_with_a_key() {
    let server = signing().await;
    let response = server.http.get(server.url("/v1/receipts/3-17")).send().await.unwrap();
    refused(response, 401, INVALID, None, Some("invalid_api_key")).await;
}

#[tokio::test]
async fn a_gateway_that_computes_itself_says_that_it_signs_nothing() {
    let server = words().await;
    let response = server.embed(json!("one")).await;
    assert!(response.headers().get("x-receipt-id").is_none());
    let response = server.get("/v1/receipts/3-17").send().await.unwrap();
    let message = refused(response, 404, INVALID, Some("id"), Some("receipt_not_found")).await;
    assert!(message.contains("computes by itself"), "{message}");
}
