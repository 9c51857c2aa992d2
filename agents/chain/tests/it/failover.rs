//! Several endpoints: the first that serves is asked, and nothing is lost or done twice on the way to another.

use std::net::SocketAddr;
use std::time::Duration;

use alloy::node_bindings::AnvilInstance;
use alloy::providers::Provider;
use tensorlink_chain::{AlloyChain, Config};
use tensorlink_node::ports::chain::{Event, EventAt, Role};
use tensorlink_node::ports::{Call, Chain, ChainError};
use tensorlink_types::U256;
use tokio::sync::mpsc;

use crate::proxy::{Proxy, Wire};
use crate::world::{OTHER, QUICK, USER, WORKER, World, nothing, sno, take};

fn to(anvil: &AnvilInstance) -> Wire {
    Wire::To(SocketAddr::from(([127, 0, 0, 1], anvil.port())))
}

async fn through(world: &World, account: usize, urls: Vec<String>) -> Result<AlloyChain, ChainError> {
    let config = Config { rpc_urls: urls, ..world.config(account, String::new(), 0) };
    AlloyChain::connect_at(config, QUICK).await
}

async fn staked(world: &World, amount: &str) {
    let worker = world.chain(WORKER).await;
    worker.send(Call::Stake { role: Role::Worker, amount: sno(amount) }).await.unwrap();
}

async fn hears(events: &mut mpsc::Receiver<EventAt>, amount: &str) {
    let told = take(events, 1).await;
    assert!(matches!(told[0].event, Event::Staked { amount: told, .. } if told == sno(amount)), "{told:?}");
}

/// First one endpoint is gone, then the other; whatever kinds they are, nothing is missed and nothing told twice.
async fn follows_over(schemes: [&str; 2]) {
    let world = World::new().await;
    let proxies = [Proxy::new(to(&world.anvil)).await, Proxy::new(to(&world.anvil)).await];
    let urls = proxies.iter().zip(schemes).map(|(proxy, scheme)| format!("{scheme}://127.0.0.1:{}", proxy.port));
    let watcher = through(&world, OTHER, urls.collect()).await.unwrap();
    let mut events = watcher.events(0).await.unwrap();
    staked(&world, "1").await;
    hears(&mut events, "1").await;
    for (gone, amount) in [(0, "2"), (1, "3"), (0, "4")] {
        proxies[gone].lead(if amount == "3" { Wire::Noise } else { Wire::Cut });
        staked(&world, amount).await;
        hears(&mut events, amount).await;
        watcher.head().await.unwrap();
        proxies[gone].lead(to(&world.anvil));
    }
    nothing(&mut events).await;
}

#[tokio::test]
async fn events_go_on_through_another_socket() {
    Box::pin(follows_over(["ws", "ws"])).await;
}

#[tokio::test]
async fn events_go_on_over_http_where_a_socket_is_gone_and_back() {
    Box::pin(follows_over(["ws", "http"])).await;
}

/// Waits until the chain is seen through the first endpoint again, whose wire counts.
#[tokio::test]
async fn the_first_endpoint_is_used_again_once_it_serves() {
    let world = World::new().await;
    let (first, second) = (Proxy::new(Wire::Cut).await, Proxy::new(to(&world.anvil)).await);
    let watcher = through(&world, OTHER, vec![first.http(), second.ws()]).await.unwrap();
    watcher.head().await.unwrap();
    first.lead(to(&world.anvil));
    let mut events = watcher.events(0).await.unwrap();
    // Once the second is gone for good, only the first is left.
    second.lead(Wire::Cut);
    staked(&world, "1").await;
    hears(&mut events, "1").await;
}

#[tokio::test]
async fn an_endpoint_of_another_chain_is_left_whichever_comes_first() {
    let (world, foreign) = (World::new().await, World::foreign());
    let (own, other) = (world.anvil.endpoint(), foreign.endpoint());
    for urls in [vec![own.clone(), other.clone()], vec![other.clone(), own]] {
        let watcher = through(&world, OTHER, urls).await.unwrap();
        for _ in 0..3 {
            watcher.parameters().await.unwrap();
            tokio::time::sleep(QUICK.recheck).await;
        }
    }
    let refused = through(&world, OTHER, vec![other.clone(), other]).await.unwrap_err();
    assert!(matches!(refused, ChainError::WrongChain { expected: 31337, actual: 5 }), "{refused:?}");
}

#[tokio::test]
async fn an_endpoint_that_lags_is_left() {
    let world = World::new().await;
    staked(&world, "1").await;
    let laggard = world.laggard();
    let watcher = through(&world, OTHER, vec![laggard.ws_endpoint(), world.anvil.ws_endpoint()]).await.unwrap();
    let mut events = watcher.events(0).await.unwrap();
    hears(&mut events, "1").await;
    world.wait(60).await;
    world.mine(5).await;
    staked(&world, "2").await;
    hears(&mut events, "2").await;
    nothing(&mut events).await;
}

/// The first endpoint has the transaction and does not say so; the second refuses it, for it is there already.
#[tokio::test]
async fn a_transaction_whose_answer_is_lost_is_found_through_the_other_endpoint() {
    let world = World::new().await;
    let address = SocketAddr::from(([127, 0, 0, 1], world.anvil.port()));
    let (first, second) = (Proxy::new(Wire::Swallows(address)).await, Proxy::new(to(&world.anvil)).await);
    let user = through(&world, USER, vec![first.http(), second.http()]).await.unwrap();
    let now = user.head().await.unwrap().timestamp;
    let sent = user.send(Call::Post { terms: world.terms(now), deposit: U256::from(5) }).await.unwrap();
    assert!(first.is_cut(), "the transaction went there");
    assert!(matches!(sent.events[..], [Event::JobPosted { .. }]));
    assert_eq!(user.job_count().await.unwrap(), 1);
    assert_eq!(world.provider.get_transaction_count(user.account()).await.unwrap(), 1, "it was not sent again");
}

/// It is sent through the first endpoint and waits there; the rest of its life is seen through the second.
#[tokio::test]
async fn a_transaction_that_waits_is_looked_for_through_the_other_endpoint() {
    let world = World::new().await;
    let (first, second) = (Proxy::new(to(&world.anvil)).await, Proxy::new(to(&world.anvil)).await);
    let user = through(&world, USER, vec![first.ws(), second.ws()]).await.unwrap();
    world.automine(false).await;
    let now = user.head().await.unwrap().timestamp;
    let call = Call::Post { terms: world.terms(now), deposit: U256::from(5) };
    let outage = async {
        while world.pending().await == 0 {
            tokio::time::sleep(QUICK.poll).await;
        }
        first.lead(Wire::Cut);
        tokio::time::sleep(QUICK.bump_after).await;
        world.automine(true).await;
        world.mine(1).await;
    };
    let (sent, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(20), user.send(call)), outage);
    sent.expect("it is found in time").unwrap();
    assert_eq!(user.job_count().await.unwrap(), 1);
    assert_eq!(world.provider.get_transaction_count(user.account()).await.unwrap(), 1);
}
