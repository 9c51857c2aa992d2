//! Publish and subscribe across a node in the middle.

use std::sync::Arc;

use bytes::Bytes;
use tensorlink_net::{Libp2pNet, NetConfig};
use tensorlink_node::ports::{Net, NetError};
use tensorlink_node::wire::gossip::WORKERS;

use crate::common::{Open, addresses, connected, eventually, identity, node, quick, tcp};

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
        let config = NetConfig { listen: vec![tcp()], bootstrap: at.clone(), external, limits: quick() };
        let node = Arc::new(Libp2pNet::start(identity(n), config).unwrap());
        node.set_gate(Arc::new(Open));
        node
    };
    let (worker, user) = (apart(2), apart(3));
    connected(&hub, worker.address()).await;
    connected(&hub, user.address()).await;
    let mut heard = user.subscribe(WORKERS).await.unwrap();
    let (from, _) = eventually("it is heard", async || {
        let n: u64 = rand::random();
        worker.publish(WORKERS, Bytes::copy_from_slice(&n.to_le_bytes())).await.unwrap();
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
