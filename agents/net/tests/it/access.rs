//! Who is let in.

use std::sync::Arc;

use bytes::Bytes;
use tensorlink_net::Refusal;
use tensorlink_node::ports::{Net, NetError, Protocol};

use crate::common::{Only, addresses, connected, identity, node, pair, quick, serve_reversed, start, tcp};

#[tokio::test]
async fn before_a_gate_is_set_only_blocks_pass() {
    let a = start(1, tcp(), vec![], quick());
    serve_reversed(&a, Protocol::Rpc).await;
    serve_reversed(&a, Protocol::Block).await;
    let _streams = a.accept(Protocol::Tensor).await.unwrap();
    let b = node(2, addresses(&a).await);
    connected(&b, a.address()).await;
    let (to, body) = (a.address(), Bytes::from_static(b"ab"));
    assert!(matches!(b.request(to, Protocol::Rpc, body.clone()).await, Err(NetError::Refused(p)) if p == to));
    assert!(matches!(b.open(to, Protocol::Tensor).await, Err(NetError::Refused(_))));
    assert_eq!(b.request(to, Protocol::Block, body).await.unwrap(), "ba");
    assert_eq!(a.metrics().refused(Refusal::NotAllowed), 2);
}

#[tokio::test]
async fn the_gate_tells_peers_and_protocols_apart_and_refusals_hold_up_nobody() {
    let a = start(1, tcp(), vec![], quick());
    let (staked, stranger) = (identity(2).address(), identity(3).address());
    a.set_gate(Arc::new(Only(vec![(staked, Protocol::Rpc)])));
    serve_reversed(&a, Protocol::Rpc).await;
    let mut streams = a.accept(Protocol::Tensor).await.unwrap();
    let at = addresses(&a).await;
    let (b, c) = (node(2, at.clone()), node(3, at));
    connected(&a, staked).await;
    connected(&a, stranger).await;

    let to = a.address();
    let knocking = tokio::spawn(async move {
        for _ in 0..50 {
            let refused = c.request(to, Protocol::Rpc, Bytes::from(vec![0; 100_000])).await;
            assert!(matches!(refused, Err(NetError::Refused(_))), "{refused:?}");
            assert!(matches!(c.open(to, Protocol::Tensor).await, Err(NetError::Refused(_))));
        }
    });
    for n in 0..50_u8 {
        assert_eq!(b.request(to, Protocol::Rpc, Bytes::copy_from_slice(&[n, 7])).await.unwrap()[..], [7, n]);
    }
    knocking.await.unwrap();
    assert!(matches!(b.open(to, Protocol::Tensor).await, Err(NetError::Refused(_))));
    assert!(streams.try_recv().is_err(), "no refused stream reached the role");
    assert_eq!(a.metrics().refused(Refusal::NotAllowed), 101);
}

#[tokio::test]
async fn a_gate_that_closes_also_closes_streams_that_were_open() {
    let (a, b) = pair().await;
    serve_reversed(&a, Protocol::Rpc).await;
    b.request(a.address(), Protocol::Rpc, Bytes::from_static(b"x")).await.unwrap();
    a.set_gate(Arc::new(Only(vec![])));
    // On the stream that is in the pool, then on a fresh one.
    for _ in 0..2 {
        let refused = b.request(a.address(), Protocol::Rpc, Bytes::from_static(b"x")).await;
        assert!(matches!(refused, Err(NetError::Refused(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn one_peer_takes_its_share_of_streams_and_no_more() {
    let mut limits = quick();
    limits.inbound_streams_per_peer = 3;
    let a = start(1, tcp(), vec![], limits);
    a.set_gate(Arc::new(crate::common::Open));
    let mut streams = a.accept(Protocol::Tensor).await.unwrap();
    let at = addresses(&a).await;
    let (b, c) = (node(2, at.clone()), node(3, at));
    connected(&b, a.address()).await;
    connected(&c, a.address()).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push((b.open(a.address(), Protocol::Tensor).await.unwrap(), streams.recv().await.unwrap()));
    }
    let busy = b.open(a.address(), Protocol::Tensor).await;
    assert!(matches!(busy, Err(NetError::Unreachable { .. })));
    assert_eq!(a.metrics().refused(Refusal::Busy), 1);
    // Another peer has its own share, and a share comes back when its stream is dropped.
    c.open(a.address(), Protocol::Tensor).await.unwrap();
    held.pop();
    b.open(a.address(), Protocol::Tensor).await.unwrap();
}
