//! Files go from node to node.

use std::sync::Arc;

use bytes::Bytes;
use tensorlink_node::ports::{Net, Protocol, Store, StoreError};
use tensorlink_store::unixfs::{CHUNK, blocks_of};

use crate::memory_net::Hub;
use crate::support::{LIMIT, Node, content};

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_from_a_holder_is_kept_and_served_on() {
    let hub = Hub::default();
    let [one, two, three] =
        [Node::start(&hub, 1, LIMIT).await, Node::start(&hub, 2, LIMIT).await, Node::start(&hub, 3, LIMIT).await];
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 45 << 20] {
        let file = content(len, 1);
        let cid = one.store.put(file.clone()).await.unwrap();
        assert!(!two.store.has(&cid).await.unwrap());
        assert_eq!(two.store.get(&cid, &[one.address()], LIMIT).await.unwrap(), file, "{len}");
        assert!(two.store.has(&cid).await.unwrap());
        // Two has it now, and is asked for nothing it has not.
        let sent = two.sent();
        assert_eq!(two.store.get(&cid, &[one.address()], LIMIT).await.unwrap(), file);
        assert_eq!(two.sent(), sent);
        one.store.unpin(&cid).await.unwrap();
        let holders = [three.address(), one.address(), two.address()];
        assert_eq!(three.store.get(&cid, &holders, LIMIT).await.unwrap(), file);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_recur_travel_once() {
    let hub = Hub::default();
    let [one, two] = [Node::start(&hub, 1, LIMIT).await, Node::start(&hub, 2, LIMIT).await];
    let file = Bytes::from(vec![0; 200 * CHUNK]);
    let cid = one.store.put(file.clone()).await.unwrap();
    assert_eq!(two.store.get(&cid, &[one.address()], LIMIT).await.unwrap(), file);
    // A root, two inner nodes, one leaf.
    assert_eq!(two.sent(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_files_at_once() {
    let hub = Hub::default();
    let [one, two] = [Node::start(&hub, 1, LIMIT).await, Node::start(&hub, 2, LIMIT).await];
    let two = Arc::new(two);
    let mut gets = tokio::task::JoinSet::new();
    for seed in 0..8 {
        let file = content(3 * CHUNK + 5, seed % 6);
        let cid = one.store.put(file.clone()).await.unwrap();
        let (two, holder) = (two.clone(), one.address());
        gets.spawn(async move { two.store.get(&cid, &[holder], LIMIT).await.unwrap() == file });
    }
    assert!(gets.join_all().await.into_iter().all(|same| same));
}

#[tokio::test]
async fn what_nobody_has_is_not_found() {
    let hub = Hub::default();
    let [one, two] = [Node::start(&hub, 1, LIMIT).await, Node::start(&hub, 2, LIMIT).await];
    let cid = blocks_of(&Bytes::from_static(b"nobody's"))[0].0;
    // One that has it not, one that is unknown.
    let offline = hub.node(9).address();
    let error = two.store.get(&cid, &[one.address(), offline], LIMIT).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound(missing) if missing == cid), "{error}");
    let error = two.store.get(&cid, &[], LIMIT).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound(_)), "{error}");
}

#[tokio::test]
async fn a_holder_that_fails_is_given_up_and_the_next_one_serves() {
    let hub = Hub::default();
    let [one, two] = [Node::start(&hub, 1, LIMIT).await, Node::start(&hub, 2, LIMIT).await];
    let silent = hub.answering(8, |_| None);
    let file = content(100 * CHUNK, 3);
    let cid = one.store.put(file.clone()).await.unwrap();
    assert_eq!(two.store.get(&cid, &[silent, one.address()], LIMIT).await.unwrap(), file);
    // A root and 100 leaves, and the root in vain.
    assert_eq!(two.sent(), 102);
}

#[tokio::test]
async fn requests_that_are_no_cid_are_answered_by_absence() {
    let hub = Hub::default();
    let one = Node::start(&hub, 1, LIMIT).await;
    let asker = hub.node(7);
    let cid = one.store.put(Bytes::from_static(b"here")).await.unwrap();
    let ask =
        async |body: &[u8]| asker.request(one.address(), Protocol::Block, Bytes::copy_from_slice(body)).await.unwrap();
    for malformed in [&[] as &[u8], b"x", &[0xff; 100], &cid.to_bytes()[..20], &vec![1; 2 << 20]] {
        assert_eq!(*ask(malformed).await, [0]);
    }
    assert_eq!(*ask(&cid.to_bytes()).await, *b"\x01here");
}
