//! Endpoints that are not what they should be.

use std::time::Duration;

use futures::future::join_all;
use tensorlink_chain::{AlloyChain, Config};
use tensorlink_node::ports::ChainError;
use tensorlink_types::Address;
use tokio_util::sync::CancellationToken;

use crate::proxy::{Proxy, Wire};
use crate::world::{USER, World};

#[tokio::test]
async fn another_chain_is_refused() {
    let world = World::new().await;
    let mut config = world.config(USER, world.anvil.endpoint(), 0);
    config.deployment.chain_id = 1;
    let refused = AlloyChain::connect(config).await.unwrap_err();
    assert!(matches!(refused, ChainError::WrongChain { expected: 1, actual: 31337 }), "{refused}");
}

#[tokio::test]
async fn a_deployment_that_is_not_there_is_refused() {
    let world = World::new().await;
    let mut config = world.config(USER, world.anvil.endpoint(), 0);
    config.deployment.disputes = Address::repeat_byte(7);
    let refused = AlloyChain::connect(config).await.unwrap_err().to_string();
    assert!(refused.contains("(disputes)") && refused.contains("--deployment"), "{refused}");
}

#[tokio::test]
async fn nonsense_silence_and_absence_are_unavailable() {
    let world = World::new().await;
    let (noise, cut) = (Proxy::new(Wire::Noise).await, Proxy::new(Wire::Cut).await);
    let mut urls: Vec<String> = ["", "not a url", "gopher://x", "http://127.0.0.1:1"].map(String::from).into();
    for port in [noise.port, cut.port] {
        urls.extend(["http", "https", "ws", "wss"].map(|scheme| format!("{scheme}://127.0.0.1:{port}/secret-key")));
    }
    let connecting = urls.into_iter().map(|url| {
        let config = world.config(USER, url.clone(), 0);
        async move { (url, AlloyChain::connect(config).await.unwrap_err()) }
    });
    for (url, refused) in join_all(connecting).await {
        assert!(matches!(refused, ChainError::Unavailable(_)), "{url}: {refused:?}");
        let text = refused.to_string();
        assert!(text.contains("--rpc") && !text.contains("secret-key"), "{url}: {text}");
    }
}

#[tokio::test]
async fn shutdown_ends_the_wait_for_an_endpoint_that_says_nothing() {
    let world = World::new().await;
    // Accepts connections and never answers.
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let shutdown = CancellationToken::new();
    let config = Config { shutdown: shutdown.clone(), ..world.config(USER, url, 0) };
    let connecting = tokio::spawn(AlloyChain::connect(config));
    tokio::time::sleep(Duration::from_millis(200)).await;
    shutdown.cancel();
    let refused = tokio::time::timeout(Duration::from_secs(2), connecting).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(refused, ChainError::Closed), "{refused:?}");
}
