//! What secures TCP connections: TLS among ourselves, Noise with peers that know nothing else.

use std::time::Duration;

use bytes::Bytes;
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::identity::Keypair;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, StreamProtocol, Swarm, SwarmBuilder, noise, tcp, yamux};
use tensorlink_net::address_of;
use tensorlink_node::ports::{Net, NetError, Protocol};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::common::{addresses, ask, connected, node, serve_reversed};

const PATIENCE: Duration = Duration::from_secs(8);
/// Bytes of each direction in which the proposals of security surely lie.
const OPENING: usize = 256;

const RPC: StreamProtocol = StreamProtocol::new(Protocol::Rpc.name());

/// A node as libp2p has it, with Noise and without TLS.
fn noise_only() -> Swarm<libp2p_stream::Behaviour> {
    SwarmBuilder::with_existing_identity(Keypair::generate_secp256k1())
        .with_tokio()
        .with_tcp(tcp::Config::default(), noise::Config::new, yamux::Config::default)
        .unwrap()
        .with_behaviour(|_| libp2p_stream::Behaviour::new())
        .unwrap()
        .with_swarm_config(|c| c.with_idle_connection_timeout(Duration::from_secs(30)))
        .build()
}

fn drive(mut swarm: Swarm<libp2p_stream::Behaviour>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            swarm.select_next_some().await;
        }
    })
}

#[tokio::test]
async fn a_peer_that_speaks_only_noise_asks_us() {
    let a = node(1, vec![]);
    serve_reversed(&a, Protocol::Rpc).await;
    let mut swarm = noise_only();
    let mut control = swarm.behaviour().new_control();
    let peer = address_of(swarm.local_peer_id()).unwrap();
    swarm.dial(addresses(&a).await[0].clone()).unwrap();
    let task = drive(swarm);
    connected(&a, peer).await;

    let mut stream = control.open_stream(a.peer_id(), RPC).await.unwrap();
    stream.write_all(&[&[1], 2_u32.to_le_bytes().as_slice(), b"ab"].concat()).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = [0; 8];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer)).await.expect("an answer in time").unwrap();
    assert_eq!(answer[..], [&[0, 0], 2_u32.to_le_bytes().as_slice(), b"ba"].concat());
    task.abort();
}

#[tokio::test]
async fn we_ask_a_peer_that_speaks_only_noise() {
    let mut swarm = noise_only();
    let id = *swarm.local_peer_id();
    let peer = address_of(&id).unwrap();
    let mut streams = swarm.behaviour().new_control().accept(RPC).unwrap();
    swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
    let at = loop {
        if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
            break address;
        }
    };
    let task = drive(swarm);
    let served = tokio::spawn(async move {
        let (_, mut stream) = streams.next().await.unwrap();
        let mut mode = [0; 1];
        stream.read_exact(&mut mode).await.unwrap();
        assert_eq!(mode, [1]);
        stream.write_all(&[0]).await.unwrap();
        stream.flush().await.unwrap();
        let mut request = [0; 6];
        stream.read_exact(&mut request).await.unwrap();
        assert_eq!(request[..], [2_u32.to_le_bytes().as_slice(), b"ab"].concat());
        stream.write_all(&[&[0], 3_u32.to_le_bytes().as_slice(), b"yes"].concat()).await.unwrap();
        stream.flush().await.unwrap();
        stream
    });

    // We dial, and propose TLS before Noise.
    let a = node(1, vec![at.with_p2p(id).unwrap()]);
    connected(&a, peer).await;
    assert_eq!(ask(&a, peer, Protocol::Rpc, Bytes::from_static(b"ab")).await, "yes");
    drop(served.await.unwrap());
    task.abort();
}

/// Workers of two versions of the protocol find each other, and say so at once in place of misreading each other.
#[tokio::test]
async fn a_peer_of_another_version_is_told_apart_at_once() {
    let mut swarm = noise_only();
    let id = *swarm.local_peer_id();
    let peer = address_of(&id).unwrap();
    let later = format!("{}0", Protocol::Rpc.name());
    let _streams = swarm.behaviour().new_control().accept(StreamProtocol::try_from_owned(later).unwrap()).unwrap();
    swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
    let at = loop {
        if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
            break address;
        }
    };
    let task = drive(swarm);
    let a = node(1, vec![at.with_p2p(id).unwrap()]);
    connected(&a, peer).await;
    let asked = a.request(peer, Protocol::Rpc, Bytes::from_static(b"ab"));
    let refused = tokio::time::timeout(PATIENCE, asked).await.expect("an answer in time").unwrap_err();
    let NetError::Unreachable { reason, .. } = &refused else { panic!("{refused}") };
    assert!(reason.contains(Protocol::Rpc.name()) && reason.contains("update"), "{refused}");
    task.abort();
}

/// Copies until the end; returns the first bytes.
async fn tap(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> Vec<u8> {
    let mut seen = Vec::new();
    let mut buffer = vec![0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        let room = OPENING.saturating_sub(seen.len()).min(n);
        seen.extend_from_slice(&buffer[..room]);
        if to.write_all(&buffer[..n]).await.is_err() {
            break;
        }
    }
    // The other end may be gone.
    let _ = to.shutdown().await;
    seen
}

#[tokio::test]
async fn two_nodes_choose_tls_at_the_first_proposal() {
    let a = node(1, vec![]);
    serve_reversed(&a, Protocol::Rpc).await;
    let port = |address: &Multiaddr| {
        address
            .iter()
            .find_map(|part| if let libp2p::multiaddr::Protocol::Tcp(port) = part { Some(port) } else { None })
    };
    let behind = port(&addresses(&a).await[0]).unwrap();
    // A wire on which we listen. The proposals of security are in the clear; what follows is not.
    let wire = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = wire.local_addr().unwrap().port();
    let tapped = tokio::spawn(async move {
        let (dialler, _) = wire.accept().await.unwrap();
        let listener = TcpStream::connect(("127.0.0.1", behind)).await.unwrap();
        let ((from_dialler, to_dialler), (from_listener, to_listener)) = (dialler.into_split(), listener.into_split());
        futures::future::join(tap(from_dialler, to_listener), tap(from_listener, to_dialler)).await
    });

    let through: Multiaddr = format!("/ip4/127.0.0.1/tcp/{front}/p2p/{}", a.peer_id()).parse().unwrap();
    let b = node(2, vec![through]);
    connected(&b, a.address()).await;
    assert_eq!(ask(&b, a.address(), Protocol::Rpc, Bytes::from_static(b"ab")).await, "ba");
    b.shutdown().await;
    a.shutdown().await;

    let (proposed, answered) = tokio::time::timeout(PATIENCE, tapped).await.expect("the wire closes").unwrap();
    let says = |bytes: &[u8], name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    for bytes in [&proposed, &answered] {
        assert!(says(bytes, b"/tls/1.0.0\n"), "{}", bytes.escape_ascii());
        assert!(!says(bytes, b"/noise"), "{}", bytes.escape_ascii());
    }
}
