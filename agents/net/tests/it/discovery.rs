//! Finding a peer by its Ethereum address.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use libp2p::identity::Keypair;
use libp2p::swarm::SwarmEvent;
use libp2p::{SwarmBuilder, identify, tls, yamux};
use tensorlink_net::{Libp2pNet, Limits, Multiaddr, NetConfig};
use tensorlink_node::ports::{Net, NetError, Protocol};

use crate::common::{Open, addresses, ask, connected, eventually, identity, node, quick, serve_reversed, start, tcp};

#[tokio::test]
async fn an_address_is_found_through_a_common_peer() {
    let hub = node(1, vec![]);
    let at = addresses(&hub).await;
    let (b, c) = (node(2, at.clone()), node(3, at));
    connected(&hub, b.address()).await;
    connected(&hub, c.address()).await;
    serve_reversed(&c, Protocol::Rpc).await;
    // b was told of the hub only.
    assert_eq!(ask(&b, c.address(), Protocol::Rpc, Bytes::from_static(b"abc")).await, "cba");
    assert!(b.connected_peers().await.unwrap().contains(&c.address()));
}

#[tokio::test]
async fn a_peer_that_restarts_on_another_port_is_found_again() {
    let hub = node(1, vec![]);
    let at = addresses(&hub).await;
    let (b, c) = (node(2, at.clone()), node(3, at.clone()));
    serve_reversed(&c, Protocol::Rpc).await;
    assert_eq!(ask(&b, c.address(), Protocol::Rpc, Bytes::from_static(b"abc")).await, "cba");
    let before = addresses(&c).await;
    c.shutdown().await;
    drop(c);

    let c = start(3, tcp(), at, quick());
    c.set_gate(Arc::new(Open));
    serve_reversed(&c, Protocol::Rpc).await;
    assert_ne!(addresses(&c).await, before);
    assert_eq!(ask(&b, c.address(), Protocol::Rpc, Bytes::from_static(b"xyz")).await, "zyx");
}

/// Linux has all of 127.0.0.0/8 on the loopback interface.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_node_whose_port_others_have_at_another_address_dials_from_a_fresh_one() {
    use std::net::TcpListener;

    use tensorlink_net::probe;

    let (_elsewhere, at) = loop {
        let elsewhere = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = elsewhere.local_addr().unwrap().port();
        let at = format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap();
        // Another test may have it there.
        if probe(&at).is_ok() {
            break (elsewhere, at);
        }
    };
    let (hub, other) = (node(1, vec![]), node(2, vec![]));
    let b = start(3, at, [addresses(&hub).await, addresses(&other).await].concat(), quick());
    b.set_gate(Arc::new(Open));
    connected(&b, hub.address()).await;
    connected(&b, other.address()).await;
    serve_reversed(&other, Protocol::Rpc).await;
    assert_eq!(ask(&b, other.address(), Protocol::Rpc, Bytes::from_static(b"abc")).await, "cba");
}

#[tokio::test]
async fn an_address_nobody_knows_is_unknown_and_asking_again_at_once_does_not_dial() {
    let hub = node(1, vec![]);
    let minute = Duration::from_secs(60);
    let b = start(2, tcp(), addresses(&hub).await, Limits { redial: (minute, minute), ..quick() });
    b.set_gate(Arc::new(Open));
    connected(&b, hub.address()).await;
    let nobody = identity(99).address();
    let unknown = b.request(nobody, Protocol::Rpc, Bytes::new()).await;
    assert!(matches!(unknown, Err(NetError::Unknown(p)) if p == nobody), "{unknown:?}");
    let again = b.request(nobody, Protocol::Rpc, Bytes::new()).await.unwrap_err().to_string();
    assert!(again.contains("it is dialled again in"), "{again}");
}

#[tokio::test]
async fn a_peer_that_stopped_is_unreachable_in_bounded_time() {
    let hub = node(1, vec![]);
    let at = addresses(&hub).await;
    let (b, c) = (node(2, at.clone()), node(3, at));
    serve_reversed(&c, Protocol::Rpc).await;
    ask(&b, c.address(), Protocol::Rpc, Bytes::from_static(b"x")).await;
    c.shutdown().await;
    let before = tokio::time::Instant::now();
    let gone = b.request(c.address(), Protocol::Rpc, Bytes::new()).await;
    assert!(matches!(gone, Err(NetError::Unreachable { .. })), "{gone:?}");
    assert!(before.elapsed() < Duration::from_secs(8), "{:?}", before.elapsed());
}

/// Who has lost everybody looks for those that it met, and not only for those that it was told of.
#[tokio::test]
async fn without_its_bootstrap_peer_a_node_finds_those_again_that_it_met() {
    let hub = node(1, vec![]);
    let at = addresses(&hub).await;
    let (b, c) = (node(2, at.clone()), node(3, at));
    serve_reversed(&c, Protocol::Rpc).await;
    ask(&b, c.address(), Protocol::Rpc, Bytes::from_static(b"abc")).await;
    let nameless = |part: &libp2p::multiaddr::Protocol<'_>| !matches!(part, libp2p::multiaddr::Protocol::P2p(_));
    let before: Multiaddr = addresses(&c).await[0].iter().filter(nameless).collect();
    hub.shutdown().await;
    c.shutdown().await;
    eventually("it is alone", async || b.connected_peers().await.ok().filter(Vec::is_empty)).await;
    let c = start(3, before, vec![], quick());
    c.set_gate(Arc::new(Open));
    connected(&b, c.address()).await;
}

#[tokio::test]
async fn a_bootstrap_address_needs_no_name() {
    let hub = node(1, vec![]);
    let nameless = |a: &Multiaddr| a.iter().filter(|p| !matches!(p, libp2p::multiaddr::Protocol::P2p(_))).collect();
    let at: Vec<Multiaddr> = addresses(&hub).await.iter().map(nameless).collect();
    let b = node(2, at);
    connected(&b, hub.address()).await;
}

/// A machine that loses its power says no goodbye: here a node whose runtime nobody drives any more, sockets open.
#[tokio::test]
async fn a_peer_that_falls_silent_is_given_up() {
    let a = start(1, tcp(), vec![], Limits { handshake: Duration::from_secs(1), ..quick() });
    let at = addresses(&a).await;
    let frozen = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let b = runtime.block_on(async {
            let b = node(2, at);
            connected(&b, identity(1).address()).await;
            b
        });
        (runtime, b)
    });
    let silent = identity(2).address();
    connected(&a, silent).await;
    let kept = tokio::task::spawn_blocking(|| frozen.join().unwrap()).await.unwrap();
    let gone = async || a.connected_peers().await.ok().filter(|p| !p.contains(&silent));
    tokio::time::timeout(Duration::from_secs(15), eventually("it is given up", gone)).await.unwrap();
    // A runtime must not be dropped inside another.
    std::thread::spawn(move || drop(kept)).join().unwrap();
}

/// Whoever is behind a forwarded port tells others that port, and not an address that only its own machine can reach.
#[tokio::test]
async fn a_node_with_an_external_address_tells_no_other() {
    let external: Multiaddr = "/ip4/198.51.100.7/tcp/4001".parse().unwrap();
    let config = NetConfig {
        listen: vec![tcp()],
        bootstrap: vec![],
        external: vec![external.clone()],
        limits: quick(),
        ..NetConfig::default()
    };
    let hidden = Libp2pNet::start(identity(1), config).unwrap();
    let asker = SwarmBuilder::with_existing_identity(Keypair::generate_secp256k1()).with_tokio();
    let asker = asker.with_tcp(libp2p::tcp::Config::default(), tls::Config::new, yamux::Config::default).unwrap();
    let asker =
        asker.with_behaviour(|key| identify::Behaviour::new(identify::Config::new("/x".into(), key.public()))).unwrap();
    let mut asker = asker.with_swarm_config(|config| config.with_idle_connection_timeout(quick().idle)).build();
    asker.dial(addresses(&hidden).await[0].clone()).unwrap();
    let told = async {
        loop {
            if let SwarmEvent::Behaviour(identify::Event::Received { info, .. }) = asker.select_next_some().await {
                return info.listen_addrs;
            }
        }
    };
    let told = tokio::time::timeout(Duration::from_secs(8), told).await.unwrap();
    assert_eq!(told, [external]);
}
