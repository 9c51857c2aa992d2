//! Peers that nobody can dial: reached through relays, and directly as soon as that works.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tensorlink_net::{Libp2pNet, Limits, Multiaddr, NetConfig};
use tensorlink_node::ports::{Net, Protocol};
use tensorlink_types::Address;

use crate::common::{Open, addresses, ask, eventually, identity, node, quic, quick, serve_reversed, tcp};

fn with(n: u8, config: NetConfig) -> Arc<Libp2pNet> {
    let node = Arc::new(Libp2pNet::start(identity(n), config).expect("a node starts"));
    node.set_gate(Arc::new(Open));
    node
}

fn relay(n: u8, bootstrap: Vec<Multiaddr>, limits: Limits) -> Arc<Libp2pNet> {
    with(n, NetConfig { listen: vec![tcp()], bootstrap, relay: true, limits, ..NetConfig::default() })
}

/// Nobody dials it. One that listens by QUIC alone is seen by its relay under a TCP port that takes no connection.
fn hidden(n: u8, listen: Multiaddr, bootstrap: Vec<Multiaddr>) -> Arc<Libp2pNet> {
    with(n, NetConfig { listen: vec![listen], bootstrap, behind_nat: true, limits: quick(), ..NetConfig::default() })
}

/// Waits until a node is reached through so many relays.
async fn placed(node: &Libp2pNet, relays: usize) {
    let through = async || {
        let addresses = node.listen_addresses().await.ok()?;
        let circuits = addresses.iter().filter(|address| address.to_string().contains("p2p-circuit")).count();
        (circuits >= relays).then_some(())
    };
    eventually("it has places at relays", through).await;
}

async fn is_relayed(node: &Libp2pNet, peer: Address) -> bool {
    node.relayed_peers().await.expect("it runs").contains(&peer)
}

#[tokio::test]
async fn who_is_reached_through_a_relay_is_connected_directly_as_soon_as_that_works() {
    let hub = relay(1, vec![], quick());
    let at = addresses(&hub).await;
    let (a, b) = (hidden(2, tcp(), at.clone()), node(3, at));
    serve_reversed(&a, Protocol::Rpc).await;
    placed(&a, 1).await;
    assert_eq!(ask(&b, a.address(), Protocol::Rpc, Bytes::from_static(b"abc")).await, "cba");
    assert!(!is_relayed(&b, a.address()).await, "nothing is sent through the relay while both try");
    eventually("the relay is left at both ends", async || (!is_relayed(&a, b.address()).await).then_some(())).await;
}

#[tokio::test]
async fn two_that_nobody_can_dial_talk_through_a_relay() {
    let hub = relay(1, vec![], quick());
    let at = addresses(&hub).await;
    let (a, b) = (hidden(2, quic(), at.clone()), hidden(3, quic(), at));
    serve_reversed(&a, Protocol::Rpc).await;
    placed(&a, 1).await;
    let body = Bytes::from(vec![7; 1 << 20]);
    assert_eq!(ask(&b, a.address(), Protocol::Rpc, body.clone()).await, body);
    assert!(is_relayed(&b, a.address()).await && is_relayed(&a, b.address()).await);
    assert!(!is_relayed(&a, hub.address()).await);
}

#[tokio::test]
async fn where_a_relay_dies_another_is_used() {
    let first = relay(1, vec![], quick());
    let at = addresses(&first).await;
    let second = relay(4, at.clone(), quick());
    let all = [at, addresses(&second).await].concat();
    let (a, b) = (hidden(2, quic(), all.clone()), hidden(3, quic(), all));
    serve_reversed(&a, Protocol::Rpc).await;
    placed(&a, 2).await;
    ask(&b, a.address(), Protocol::Rpc, Bytes::from_static(b"abc")).await;
    first.shutdown().await;
    assert_eq!(ask(&b, a.address(), Protocol::Rpc, Bytes::from_static(b"xyz")).await, "zyx");
    assert!(is_relayed(&b, a.address()).await);
}

/// It comes back at the same address, and is asked again.
#[tokio::test]
async fn a_place_is_taken_again_at_a_relay_that_was_restarted() {
    let hub = relay(1, vec![], quick());
    let at = addresses(&hub).await;
    let a = hidden(2, quic(), at.clone());
    serve_reversed(&a, Protocol::Rpc).await;
    placed(&a, 1).await;
    hub.shutdown().await;
    drop(hub);
    let listen = at[0].iter().filter(|part| !matches!(part, libp2p::multiaddr::Protocol::P2p(_))).collect();
    let limits = quick();
    let _hub = with(1, NetConfig { listen: vec![listen], relay: true, limits, ..NetConfig::default() });
    let b = hidden(3, quic(), at);
    assert_eq!(ask(&b, a.address(), Protocol::Rpc, Bytes::from_static(b"abc")).await, "cba");
}

#[tokio::test]
async fn a_relay_gives_no_more_places_than_it_has_and_ends_what_it_carried_for_long() {
    let limits = Limits { relayed: 1, circuit: (Duration::from_secs(4), 1 << 20), ..quick() };
    let hub = relay(1, vec![], limits);
    let at = addresses(&hub).await;
    let a = hidden(2, quic(), at.clone());
    placed(&a, 1).await;
    let (c, b) = (hidden(4, quic(), at.clone()), hidden(3, quic(), at));
    serve_reversed(&a, Protocol::Rpc).await;
    ask(&b, a.address(), Protocol::Rpc, Bytes::from_static(b"abc")).await;
    eventually("the circuit ends", async || (!is_relayed(&b, a.address()).await).then_some(())).await;
    assert_eq!(ask(&b, a.address(), Protocol::Rpc, Bytes::from_static(b"xyz")).await, "zyx");
    let listened = c.listen_addresses().await.unwrap();
    assert!(listened.iter().all(|address| !address.to_string().contains("p2p-circuit")), "{listened:?}");
}

#[tokio::test]
async fn nobody_carries_connections_unasked() {
    let hub = node(1, vec![]);
    let a = hidden(2, quic(), addresses(&hub).await);
    eventually("they connect", async || a.connected_peers().await.ok().filter(|peers| !peers.is_empty())).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let listened = a.listen_addresses().await.unwrap();
    assert!(listened.iter().all(|address| !address.to_string().contains("p2p-circuit")), "{listened:?}");
}
