//! Publish and subscribe across a node in the middle.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use libp2p::gossipsub::{self, IdentTopic, MessageAuthenticity};
use libp2p::identity::Keypair;
use libp2p::{SwarmBuilder, tls, yamux};
use tensorlink_net::{Libp2pNet, NetConfig, address_of};
use tensorlink_node::Speed;
use tensorlink_node::ports::{Net, NetError};
use tensorlink_node::price::Prices;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::gossip::{WORKERS, WorkerAdvert};
use tensorlink_types::Address;
use tokio::sync::mpsc;

use crate::common::{Open, Staked, addresses, connected, eventually, identity, node, quick, tcp};

/// A worker's advert, told from others by its price.
fn advert(price_per_gmac: u128) -> Bytes {
    encode(
        "advert",
        &WorkerAdvert {
            memory: 1,
            disk: 1,
            speed: Speed::LEAST,
            free_lanes: 1,
            prices: Prices { sno: price_per_gmac, eth: None },
            engine: String::new(),
        },
    )
    .unwrap()
}

#[tokio::test]
async fn a_message_reaches_subscribers_with_the_address_of_its_source() {
    let hub = node(1, vec![]);
    let at = addresses(&hub).await;
    let (b, c) = (node(2, at.clone()), node(3, at));
    connected(&hub, b.address()).await;
    connected(&hub, c.address()).await;
    let mut heard = c.subscribe("adverts").await.unwrap();
    let mut at_hub = hub.subscribe("adverts").await.unwrap();
    // Subscriptions travel at their own pace: publish until one arrives.
    let (from, message) = eventually("it is heard", async || {
        let n: u64 = rand::random();
        b.publish("adverts", Bytes::copy_from_slice(&n.to_le_bytes())).await.unwrap();
        heard.try_recv().ok()
    })
    .await;
    assert_eq!((from, message.len()), (b.address(), 8));
    assert_eq!(at_hub.recv().await.unwrap().0, b.address());
}

#[tokio::test]
async fn an_advert_reaches_who_cannot_meet_its_worker() {
    let hub = node(1, vec![]);
    let at = addresses(&hub).await;
    // What they tell of themselves leads nowhere.
    let apart = |n| {
        let external = vec!["/ip4/127.0.0.1/tcp/9".parse().unwrap()];
        let config =
            NetConfig { listen: vec![tcp()], bootstrap: at.clone(), external, limits: quick(), ..NetConfig::default() };
        let node = Arc::new(Libp2pNet::start(identity(n), config).unwrap());
        node.set_gate(Arc::new(Open));
        node
    };
    let (worker, user) = (apart(2), apart(3));
    connected(&hub, worker.address()).await;
    connected(&hub, user.address()).await;
    let mut heard = user.subscribe(WORKERS).await.unwrap();
    let (from, _) = eventually("it is heard", async || {
        worker.publish(WORKERS, advert(rand::random())).await.unwrap();
        heard.try_recv().ok()
    })
    .await;
    assert_eq!(from, worker.address());
    assert_eq!(worker.connected_peers().await.unwrap(), [hub.address()], "they did not meet");
}

#[tokio::test]
async fn too_long_a_message_is_an_error_and_one_that_nobody_hears_is_none() {
    let a = node(1, vec![]);
    let long = Bytes::from(vec![0; (64 << 10) + 1]);
    assert!(matches!(a.publish("t", long).await, Err(NetError::TooLarge { limit: 65536, .. })));
    a.publish("t", Bytes::from_static(b"hello?")).await.unwrap();
}

#[tokio::test]
async fn keys_without_stake_are_not_heard_where_stakes_are_known() {
    let hub = node(1, vec![]);
    let at = addresses(&hub).await;
    let (with, without, reader) = (node(2, at.clone()), node(3, at.clone()), node(4, at));
    let (staked, stranger) = (with.address(), without.address());
    for node in [&hub, &reader] {
        node.set_gate(Arc::new(Staked(vec![staked])));
    }
    for node in [&with, &without, &reader] {
        connected(&hub, node.address()).await;
    }
    let mut heard = reader.subscribe(WORKERS).await.unwrap();
    let ignored = || hub.metrics().unknown_messages();
    let mut from = Vec::new();
    eventually("one is heard, and the other ignored", async || {
        without.publish(WORKERS, advert(rand::random())).await.unwrap();
        with.publish(WORKERS, advert(rand::random())).await.unwrap();
        from.extend(std::iter::from_fn(|| heard.try_recv().ok()).map(|(source, _)| source));
        (from.len() >= 3 && ignored() >= 3).then_some(())
    })
    .await;
    assert!(!from.contains(&stranger));
    assert_eq!(hub.metrics().malformed_messages(), 0);
}

/// A peer that publishes adverts, or what it calls so.
async fn loud(at: &Libp2pNet) -> (Address, mpsc::Sender<Bytes>) {
    let swarm = SwarmBuilder::with_existing_identity(Keypair::generate_secp256k1()).with_tokio();
    let swarm = swarm.with_tcp(libp2p::tcp::Config::default(), tls::Config::new, yamux::Config::default).unwrap();
    let gossip = |key: &Keypair| {
        let signed = MessageAuthenticity::Signed(key.clone());
        gossipsub::Behaviour::new(signed, gossipsub::Config::default()).unwrap()
    };
    let swarm = swarm.with_behaviour(|key| -> gossipsub::Behaviour { gossip(key) }).unwrap();
    let hour = Duration::from_secs(3600);
    let mut swarm = swarm.with_swarm_config(|config| config.with_idle_connection_timeout(hour)).build();
    swarm.dial(addresses(at).await[0].clone()).unwrap();
    let address = address_of(swarm.local_peer_id()).unwrap();
    let (say, mut said) = mpsc::channel::<Bytes>(16);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = swarm.select_next_some() => {}
                Some(message) = said.recv() => {
                    // Until its peer has told what it subscribes to, there is nobody to say it to.
                    let _ = swarm.behaviour_mut().publish(IdentTopic::new(WORKERS), message);
                }
            }
        }
    });
    (address, say)
}

#[tokio::test]
async fn who_sends_malformed_messages_is_soon_not_listened_to() {
    let a = node(1, vec![]);
    let b = node(2, addresses(&a).await);
    let (liar, say) = loud(&a).await;
    connected(&a, b.address()).await;
    connected(&a, liar).await;
    let mut heard = a.subscribe(WORKERS).await.unwrap();
    eventually("it is heard while it behaves", async || {
        say.send(advert(1)).await.unwrap();
        heard.try_recv().ok().filter(|(from, _)| *from == liar)
    })
    .await;
    eventually("it has misbehaved", async || {
        let nonsense: [u8; 8] = rand::random();
        say.send(Bytes::from([&advert(1)[..], &nonsense].concat())).await.unwrap();
        (a.metrics().malformed_messages() >= 4).then_some(())
    })
    .await;
    // Others than what it said before, of which some may still be on its way.
    let mut from = Vec::new();
    eventually("an honest peer is still heard", async || {
        say.send(advert(2)).await.unwrap();
        b.publish(WORKERS, advert(2)).await.unwrap();
        let late = std::iter::from_fn(|| heard.try_recv().ok()).filter(|(_, message)| *message == advert(2));
        from.extend(late.map(|(source, _)| source));
        (from.len() >= 10).then_some(())
    })
    .await;
    assert!(!from.contains(&liar));
}
