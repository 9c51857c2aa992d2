//! Models on threads, without HTTP.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_gateway::backend::{Backend, BackendError, Input, Texts};
use tensorlink_gateway::local::{Local, StartError};

use crate::served::{Door, MODEL, Words, backend, model, token, until};

fn text(text: &str) -> Texts {
    vec![Input::Text(text.to_owned())].into()
}

#[tokio::test]
async fn what_nobody_waits_for_is_not_computed() {
    let door = Arc::new(Door::default());
    let local = backend(Words { door: Some(door.clone()) }, 4);
    let first = tokio::spawn({
        let local = local.clone();
        async move { local.embed(MODEL, text("first")).await }
    });
    until(|| door.reached().len() == 1).await;
    // The second waits in the queue, the third too; the second's client leaves.
    let left = tokio::time::timeout(Duration::from_millis(20), local.embed(MODEL, text("second"))).await;
    assert!(left.is_err());
    let third = tokio::spawn({
        let local = local.clone();
        async move { local.embed(MODEL, text("third")).await }
    });
    door.let_pass(2);
    assert!(first.await.unwrap().is_ok() && third.await.unwrap().is_ok());
    assert_eq!(door.reached(), [[token("first")], [token("third")]]);
}

#[tokio::test]
async fn the_rest_of_a_request_is_not_computed_either() {
    let door = Arc::new(Door::default());
    let local = backend(Words { door: Some(door.clone()) }, 4);
    let texts = ["one", "two", "three"].map(|text| Input::Text(text.to_owned())).to_vec();
    let asked = tokio::spawn({
        let local = local.clone();
        async move { local.embed(MODEL, texts.into()).await }
    });
    until(|| door.reached().len() == 1).await;
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    door.let_pass(3);
    assert!(local.embed(MODEL, text("next")).await.is_ok());
    assert_eq!(door.reached(), [[token("one")], [token("next")]]);
}

#[tokio::test]
async fn one_bad_text_refuses_all_before_any_is_computed() {
    let door = Arc::new(Door::default());
    let local = backend(Words { door: Some(door.clone()) }, 4);
    let inputs = vec![Input::Tokens(vec![1]), Input::Tokens(vec![1; 17])];
    let expected = BackendError::TooLong { index: 1, tokens: 17, context: 16 };
    assert_eq!(local.embed(MODEL, inputs.into()).await, Err(expected));
    assert!(door.reached().is_empty());
    assert_eq!(local.embed("other", text("a")).await, Err(BackendError::UnknownModel("other".into())));
}

#[tokio::test]
async fn models_have_queues_of_their_own_and_different_names() {
    let door = Arc::new(Door::default());
    let mut local = Local::new();
    local.add(model("slow"), Words { door: Some(door.clone()) }, 1).unwrap();
    local.add(model("fast"), Words::default(), 1).unwrap();
    assert!(matches!(local.add(model("fast"), Words::default(), 1), Err(StartError::Duplicate(id)) if id == "fast"));
    let local = Arc::new(local);
    let slow = tokio::spawn({
        let local = local.clone();
        async move { local.embed("slow", text("a")).await }
    });
    until(|| door.reached().len() == 1).await;
    assert!(local.embed("fast", text("a")).await.is_ok());
    door.let_pass(1);
    assert!(slow.await.unwrap().is_ok());
}
