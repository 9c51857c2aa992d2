//! Publish and subscribe across a node in the middle.

use bytes::Bytes;
use tensorlink_node::ports::{Net, NetError};

use crate::common::{addresses, connected, eventually, node};

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
async fn too_long_a_message_is_an_error_and_one_that_nobody_hears_is_none() {
    let a = node(1, vec![]);
    let long = Bytes::from(vec![0; (64 << 10) + 1]);
    assert!(matches!(a.publish("t", long).await, Err(NetError::TooLarge { limit: 65536, .. })));
    a.publish("t", Bytes::from_static(b"hello?")).await.unwrap();
}
