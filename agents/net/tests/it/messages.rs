//! Requests and streams between nodes that allow each other everything.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tensorlink_node::link::{Link, answer_all};
use tensorlink_node::ports::{Net, NetError, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::{Open, addresses, ask, connected, node, pair, quic, quick, serve_reversed, start};

fn pattern(n: usize) -> Bytes {
    (0..n).map(|i| (i * 31 % 251) as u8).collect()
}

fn reversed(body: &Bytes) -> Bytes {
    body.iter().rev().copied().collect()
}

#[tokio::test]
async fn requests_of_all_sizes_are_answered_both_ways() {
    let (a, b) = pair().await;
    serve_reversed(&a, Protocol::Rpc).await;
    serve_reversed(&b, Protocol::Block).await;
    for size in [0, 1, 1000, 70_000, 3 << 20] {
        let body = pattern(size);
        assert_eq!(b.request(a.address(), Protocol::Rpc, body.clone()).await.unwrap(), reversed(&body));
    }
    let cid = pattern(Protocol::Block.max_request());
    assert_eq!(a.request(b.address(), Protocol::Block, cid.clone()).await.unwrap(), reversed(&cid));
    let too_long = a.request(b.address(), Protocol::Block, pattern(cid.len() + 1)).await;
    assert!(matches!(too_long, Err(NetError::TooLarge { limit, .. }) if limit == cid.len()), "{too_long:?}");
    let (sent, received) = b.bytes_moved();
    assert!(sent > 3 << 20 && received > 3 << 20, "{sent} {received}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_requests_at_once_are_all_answered() {
    let (a, b) = pair().await;
    serve_reversed(&a, Protocol::Rpc).await;
    let mut all = tokio::task::JoinSet::new();
    for n in 0..300_usize {
        let (a, b) = (a.address(), b.clone());
        all.spawn(async move {
            let body = pattern(n * 17);
            assert_eq!(b.request(a, Protocol::Rpc, body.clone()).await.unwrap(), reversed(&body));
        });
    }
    while let Some(done) = all.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn a_links_bandwidth_is_measured_where_the_peer_lets_it_be() {
    let (a, b) = pair().await;
    let measure = async || Link::measure(b.as_ref(), a.address()).await;
    assert_eq!(measure().await, None, "nobody answers bursts");
    tokio::spawn(answer_all(a.serve(Protocol::Burst).await.unwrap()));
    let link = measure().await.expect("it is measured");
    assert!(link.to > 1e5 && link.from > 1e5, "{link:?}");
}

#[tokio::test]
async fn a_stream_carries_bytes_both_ways_and_its_end() {
    let (a, b) = pair().await;
    let mut streams = a.accept(Protocol::Tensor).await.unwrap();
    let sent = pattern(5 << 20);
    let copy = sent.clone();
    let me = b.address();
    let echo = tokio::spawn(async move {
        let (peer, mut stream) = streams.recv().await.unwrap();
        assert_eq!(peer, me);
        let mut got = Vec::new();
        stream.read_to_end(&mut got).await.unwrap();
        assert!(got == copy);
        stream.write_all(b"thanks").await.unwrap();
        stream.shutdown().await.unwrap();
    });
    let mut stream = b.open(a.address(), Protocol::Tensor).await.unwrap();
    stream.write_all(&sent).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut thanks = Vec::new();
    stream.read_to_end(&mut thanks).await.unwrap();
    assert_eq!(thanks, b"thanks");
    echo.await.unwrap();
}

#[tokio::test]
async fn quic_carries_the_same() {
    let a = start(1, quic(), vec![], quick());
    a.set_gate(Arc::new(Open));
    serve_reversed(&a, Protocol::Rpc).await;
    let b = start(2, quic(), addresses(&a).await, quick());
    connected(&b, a.address()).await;
    let body = pattern(1 << 20);
    assert_eq!(b.request(a.address(), Protocol::Rpc, body.clone()).await.unwrap(), reversed(&body));
}

#[tokio::test]
async fn what_nobody_serves_is_an_error_that_says_so() {
    let (a, b) = pair().await;
    let refused = b.request(a.address(), Protocol::Rpc, Bytes::new()).await.unwrap_err();
    assert!(matches!(&refused, NetError::Unreachable { reason, .. } if reason.contains("serves")), "{refused}");
    assert!(matches!(b.open(a.address(), Protocol::Tensor).await, Err(NetError::Unreachable { .. })));
    // A role that dropped its receiver serves no more.
    drop(a.serve(Protocol::Rpc).await.unwrap());
    assert!(matches!(b.request(a.address(), Protocol::Rpc, Bytes::new()).await, Err(NetError::Unreachable { .. })));
}

#[tokio::test]
async fn a_request_that_the_role_drops_is_declined_and_the_next_one_passes() {
    let (a, b) = pair().await;
    let mut requests = a.serve(Protocol::Rpc).await.unwrap();
    tokio::spawn(async move {
        drop(requests.recv().await);
        while let Some(request) = requests.recv().await {
            let _ = request.reply.send(request.body);
        }
    });
    let declined = b.request(a.address(), Protocol::Rpc, Bytes::from_static(b"x")).await;
    assert!(matches!(declined, Err(NetError::Protocol { .. })), "{declined:?}");
    assert_eq!(b.request(a.address(), Protocol::Rpc, Bytes::from_static(b"y")).await.unwrap(), "y");
}

#[tokio::test]
async fn a_node_talks_to_its_own_roles() {
    let a = node(1, vec![]);
    serve_reversed(&a, Protocol::Rpc).await;
    let body = pattern(1000);
    assert_eq!(a.request(a.address(), Protocol::Rpc, body.clone()).await.unwrap(), reversed(&body));
    let mut streams = a.accept(Protocol::Tensor).await.unwrap();
    let mut ours = a.open(a.address(), Protocol::Tensor).await.unwrap();
    ours.write_all(b"hello").await.unwrap();
    let (peer, mut theirs) = streams.recv().await.unwrap();
    let mut got = [0; 5];
    theirs.read_exact(&mut got).await.unwrap();
    assert_eq!((peer, &got), (a.address(), b"hello"));
}

#[tokio::test]
async fn after_a_shutdown_everything_says_closed() {
    let (a, b) = pair().await;
    serve_reversed(&a, Protocol::Rpc).await;
    b.shutdown().await;
    assert!(matches!(b.request(a.address(), Protocol::Rpc, Bytes::new()).await, Err(NetError::Closed)));
    assert!(matches!(b.publish("t", Bytes::new()).await, Err(NetError::Closed)));
    assert!(matches!(b.serve(Protocol::Rpc).await, Err(NetError::Closed)));
    // The other notices, and takes a new connection of the same key.
    let b = node(2, addresses(&a).await);
    assert_eq!(ask(&b, a.address(), Protocol::Rpc, Bytes::from_static(b"ab")).await, "ba");
}

#[tokio::test]
async fn a_silent_role_times_the_asker_out_in_bounded_time() {
    let (a, b) = pair().await;
    let _kept = a.serve(Protocol::Rpc).await.unwrap();
    let before = tokio::time::Instant::now();
    let failed = b.request(a.address(), Protocol::Rpc, Bytes::from_static(b"x")).await;
    assert!(failed.is_err());
    assert!(before.elapsed() < Duration::from_secs(20));
}
