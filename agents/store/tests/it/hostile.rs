//! Holders that lie, and CIDs that are not what they should be.

use std::collections::HashMap;

use bytes::Bytes;
use cid::Cid;
use multihash_codetable::{Code, MultihashDigest};
use tensorlink_node::ports::{Store, StoreError};
use tensorlink_store::unixfs::{CHUNK, blocks_of};
use tensorlink_types::Address;

use crate::memory_net::Hub;
use crate::support::{LIMIT, Node, content};

/// A holder of the blocks given.
fn holding(hub: &Hub, byte: u8, blocks: &[(Cid, Bytes)]) -> Address {
    let blocks: HashMap<Vec<u8>, Bytes> = blocks.iter().map(|(cid, block)| (cid.to_bytes(), block.clone())).collect();
    hub.answering(byte, move |body| {
        Some(blocks.get(body).map_or(Bytes::from_static(&[0]), |block| [&[1], block.as_ref()].concat().into()))
    })
}

#[tokio::test]
async fn a_liar_is_refused_and_named_and_an_honest_holder_serves() {
    let hub = Hub::default();
    let [one, two] = [Node::start(&hub, 1, LIMIT).await, Node::start(&hub, 2, LIMIT).await];
    let file = content(40 * CHUNK, 4);
    let cid = one.store.put(file.clone()).await.unwrap();
    // Wrong from the first block, wrong in one leaf by one bit, and answers that are none.
    let mut forged = blocks_of(&file);
    let mut leaf = forged[7].1.to_vec();
    leaf[1000] ^= 1;
    forged[7].1 = leaf.into();
    let liars = [
        hub.answering(10, |_| Some(Bytes::from_static(b"\x01something else"))),
        holding(&hub, 11, &forged),
        hub.answering(12, |_| Some(Bytes::new())),
        hub.answering(13, |_| Some(Bytes::from_static(b"\x00and more"))),
        hub.answering(14, |_| Some(Bytes::from_static(b"\x02"))),
    ];
    for liar in liars {
        let error = two.store.get(&cid, &[liar], LIMIT).await.unwrap_err();
        assert!(matches!(&error, StoreError::Mismatch { from, .. } if *from == liar.to_string()), "{error}");
        assert!(!two.store.has(&cid).await.unwrap());
    }
    let all: Vec<Address> = liars.into_iter().chain([one.address()]).collect();
    assert_eq!(two.store.get(&cid, &all, LIMIT).await.unwrap(), file);
}

#[tokio::test]
async fn files_over_the_limit_are_refused_before_they_are_fetched() {
    let hub = Hub::default();
    let [one, two] = [Node::start(&hub, 1, LIMIT).await, Node::start(&hub, 2, LIMIT).await];
    for len in [1001, 10 * CHUNK] {
        let cid = one.store.put(content(len, 5)).await.unwrap();
        let sent = two.sent();
        let error = two.store.get(&cid, &[one.address()], len as u64 - 1).await.unwrap_err();
        assert!(matches!(error, StoreError::TooLarge { limit, .. } if limit == len as u64 - 1), "{error}");
        assert_eq!(two.sent(), sent + 1);
        assert!(!two.store.has(&cid).await.unwrap());
    }
}

#[tokio::test]
async fn cids_that_cannot_be_verified_are_refused_without_asking_anybody() {
    let hub = Hub::default();
    let two = Node::start(&hub, 2, LIMIT).await;
    let sha256 = Code::Sha2_256.digest(b"x");
    for cid in [
        Cid::new_v0(sha256).unwrap(),
        Cid::new_v1(0x71, sha256),
        Cid::new_v1(0x55, Code::Sha2_512.digest(b"x")),
        Cid::new_v1(0x55, multihash::Multihash::wrap(0, b"x").unwrap()),
        Cid::new_v1(0x55, multihash::Multihash::wrap(0x12, &[7; 16]).unwrap()),
    ] {
        let error = two.store.get(&cid, &[Address::repeat_byte(1)], LIMIT).await.unwrap_err();
        assert!(matches!(error, StoreError::Unsupported(_)), "{error}");
    }
    assert_eq!(two.sent(), 0);
}

/// A dag-pb node: an empty UnixFS file of `size` bytes that links to `links`, each said to have `each` bytes.
fn node(links: &[Cid], each: u64, size: u64) -> (Cid, Bytes) {
    fn varint(mut n: u64, out: &mut Vec<u8>) {
        while n > 0x7f {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
    }
    fn field(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
        out.push(number << 3 | 2);
        varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    }
    let mut data = vec![0x08, 2, 0x18];
    varint(size, &mut data);
    let mut block = Vec::new();
    for cid in links {
        data.push(0x20);
        varint(each, &mut data);
        let mut link = Vec::new();
        field(1, &cid.to_bytes(), &mut link);
        field(2, b"", &mut link);
        field(2, &link, &mut block);
    }
    field(1, &data, &mut block);
    (Cid::new_v1(0x70, Code::Sha2_256.digest(&block)), block.into())
}

#[tokio::test]
async fn files_chunked_in_another_way_are_read_and_kept() {
    let hub = Hub::default();
    let two = Node::start(&hub, 2, LIMIT).await;
    let leaves: Vec<(Cid, Bytes)> = (0..5).map(|seed| blocks_of(&content(3000, seed)).remove(0)).collect();
    let mut blocks = leaves.clone();
    blocks.push(node(&leaves.iter().map(|(cid, _)| *cid).collect::<Vec<_>>(), 3000, 15_000));
    let root = blocks[5].0;
    let holder = holding(&hub, 1, &blocks);
    let whole: Vec<u8> = leaves.iter().flat_map(|(_, block)| block.to_vec()).collect();
    assert_eq!(two.store.get(&root, &[holder], 15_000).await.unwrap(), whole);
    assert!(two.store.has(&root).await.unwrap());
    assert_eq!(two.store.get(&root, &[], 15_000).await.unwrap(), whole);
}

#[tokio::test]
async fn a_small_file_that_takes_forever_to_walk_is_refused() {
    let hub = Hub::default();
    let two = Node::start(&hub, 2, LIMIT).await;
    // Twelve levels of a hundred links each: 10^24 visits of an empty leaf.
    let mut blocks = vec![node(&[], 0, 0)];
    for _ in 0..12 {
        let below = blocks.last().unwrap().0;
        blocks.push(node(&[below; 100], 0, 0));
    }
    let holder = holding(&hub, 1, &blocks);
    let root = blocks.last().unwrap().0;
    let error = two.store.get(&root, &[holder], 1 << 20).await.unwrap_err();
    assert!(matches!(error, StoreError::Unsupported(_)), "{error}");
    // Nodes that are no UnixFS, and links that cannot be verified.
    let garbage = Bytes::from_static(b"no protobuf at all");
    let no_node = (Cid::new_v1(0x70, Code::Sha2_256.digest(&garbage)), garbage);
    let unverifiable = node(&[Cid::new_v1(0x55, Code::Sha2_512.digest(b"x"))], 1, 1);
    for (root, block) in [no_node, unverifiable] {
        let holder = holding(&hub, 3, &[(root, block)]);
        let error = two.store.get(&root, &[holder], 1 << 20).await.unwrap_err();
        assert!(matches!(error, StoreError::Unsupported(_)), "{error}");
    }
}
