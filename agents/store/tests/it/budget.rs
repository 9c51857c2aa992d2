//! What fits, and what a put costs.

use std::time::Instant;

use tensorlink_node::ports::{Store, StoreError};
use tensorlink_store::Embedded;

use crate::memory_net::Hub;
use crate::support::{LIMIT, Node, content};

#[tokio::test]
async fn a_full_store_says_so_and_takes_more_once_something_is_unpinned() {
    let hub = Hub::default();
    let [one, two] = [Node::start(&hub, 1, LIMIT).await, Node::start(&hub, 2, 3 << 20).await];
    let first = two.store.put(content(2 << 20, 1)).await.unwrap();
    let file = content(2 << 20, 2);
    let error = two.store.put(file.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { budget: 0x30_0000, .. }), "{error}");
    let cid = one.store.put(file.clone()).await.unwrap();
    let error = two.store.get(&cid, &[one.address()], LIMIT).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(two.store.has(&first).await.unwrap() && !two.store.has(&cid).await.unwrap());
    two.store.unpin(&first).await.unwrap();
    assert_eq!(two.store.get(&cid, &[one.address()], LIMIT).await.unwrap(), file);
}

#[tokio::test]
async fn what_was_put_is_there_in_a_copy_of_the_disk_made_without_closing() {
    let hub = Hub::default();
    let one = Node::start(&hub, 1, LIMIT).await;
    let mut files = Vec::new();
    let start = Instant::now();
    for seed in 0..10 {
        files.push(one.store.put(content(100_000, seed)).await.unwrap());
    }
    eprintln!("a put of 100 KB takes {:?}", start.elapsed() / 10);
    // What a SIGKILL leaves is what the file holds now: the process still has it open.
    let killed = tempfile::tempdir().unwrap();
    std::fs::copy(one.folder.path().join("blocks.redb"), killed.path().join("blocks.redb")).unwrap();
    let backend = Embedded::open(killed.path(), LIMIT).unwrap();
    let net = Hub::default().node(2);
    let again =
        tensorlink_store::Content::start(backend, net, tokio_util::sync::CancellationToken::new()).await.unwrap();
    for (seed, cid) in (0..).zip(&files) {
        assert!(again.has(cid).await.unwrap());
        assert_eq!(again.get(cid, &[], LIMIT).await.unwrap(), content(100_000, seed));
    }
}
