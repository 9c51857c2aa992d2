//! Peers that break the rules: bare libp2p swarms that speak our protocols wrongly. The node must outlive them all and
//! serve others meanwhile.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::identity::Keypair;
use libp2p::kad::store::MemoryStore;
use libp2p::swarm::NetworkBehaviour;
use libp2p::{PeerId, StreamProtocol, Swarm, SwarmBuilder, kad, tls, yamux};
use libp2p_stream::Control;
use tensorlink_net::{Libp2pNet, Limits, Refusal, address_of};
use tensorlink_node::ports::{Net, Protocol};
use tokio::task::JoinHandle;

use crate::common::{
    Open, addresses, ask, connected, eventually, identity, node, pair, quick, serve_reversed, start, tcp,
};

#[derive(NetworkBehaviour)]
struct Raw {
    streams: libp2p_stream::Behaviour,
    kad: kad::Behaviour<MemoryStore>,
}

fn raw(keypair: Keypair) -> Swarm<Raw> {
    SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(libp2p::tcp::Config::default(), tls::Config::new, yamux::Config::default)
        .unwrap()
        .with_behaviour(|key| {
            let me = key.public().to_peer_id();
            let dht = kad::Config::new(StreamProtocol::new("/tensorlink/kad/1"));
            Raw {
                streams: libp2p_stream::Behaviour::new(),
                kad: kad::Behaviour::with_config(me, MemoryStore::new(me), dht),
            }
        })
        .unwrap()
        .with_swarm_config(|c| c.with_idle_connection_timeout(Duration::from_secs(30)))
        .build()
}

/// A hostile peer connected to `node`: where to open streams, and its task.
async fn attacker(node: &Libp2pNet) -> (Control, PeerId, JoinHandle<()>) {
    let mut swarm = raw(Keypair::generate_secp256k1());
    let (me, control) = (*swarm.local_peer_id(), swarm.behaviour().streams.new_control());
    swarm.dial(addresses(node).await[0].clone()).unwrap();
    let task = tokio::spawn(async move {
        loop {
            swarm.select_next_some().await;
        }
    });
    let attacker = address_of(&me).unwrap();
    let peers = async || node.connected_peers().await.ok().filter(|p| p.contains(&attacker));
    eventually("the attacker connects", peers).await;
    (control, node.peer_id(), task)
}

/// Sends bytes on a fresh stream and returns all that comes back until the node closes it.
async fn send(control: &mut Control, node: PeerId, protocol: Protocol, bytes: &[u8]) -> Vec<u8> {
    let mut stream = control.open_stream(node, StreamProtocol::new(protocol.name())).await.unwrap();
    // The node may close before it has everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.flush().await;
    let mut back = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(8), stream.read_to_end(&mut back)).await;
    read.expect("the node closes the stream in time").ok();
    back
}

#[tokio::test]
async fn malformed_and_oversized_frames_close_their_stream_with_a_reason() {
    let a = node(1, vec![]);
    serve_reversed(&a, Protocol::Rpc).await;
    let (mut control, to, task) = attacker(&a).await;
    // No mode; then the mode of requests and a length over the limit.
    assert_eq!(send(&mut control, to, Protocol::Rpc, &[0xEE]).await, [Refusal::Malformed as u8]);
    let oversized = [&[1], 0xffff_ffff_u32.to_le_bytes().as_slice()].concat();
    assert_eq!(send(&mut control, to, Protocol::Rpc, &oversized).await, [0, Refusal::TooLarge as u8]);
    // What is asked by a CID is refused as a block would be.
    serve_reversed(&a, Protocol::Block).await;
    let block = [&[1], (2_u32 << 20).to_le_bytes().as_slice()].concat();
    assert_eq!(send(&mut control, to, Protocol::Block, &block).await, [0, Refusal::TooLarge as u8]);
    assert_eq!(a.metrics().refused(Refusal::Malformed), 1);
    assert_eq!(a.metrics().refused(Refusal::TooLarge), 2);
    // A proper request still passes, for the attacker as for others.
    let proper = [&[1], 2_u32.to_le_bytes().as_slice(), b"ab"].concat();
    let answer = [&[0, 0], 2_u32.to_le_bytes().as_slice(), b"ba"].concat();
    assert_eq!(send(&mut control, to, Protocol::Rpc, &proper).await, answer);
    task.abort();
}

#[tokio::test]
async fn peers_that_trickle_or_say_nothing_are_dropped_and_hold_up_nobody() {
    let a = node(1, vec![]);
    serve_reversed(&a, Protocol::Rpc).await;
    let honest = node(2, addresses(&a).await);
    connected(&honest, a.address()).await;
    let (control, to, task) = attacker(&a).await;
    let open = async |bytes: &[u8]| {
        let protocol = StreamProtocol::new(Protocol::Rpc.name());
        let mut stream = control.clone().open_stream(to, protocol).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.flush().await.unwrap();
        stream
    };
    // Half a length, a body that never comes, and one that comes a byte at a time.
    let mut half = open(&[1, 5]).await;
    let mut missing = open(&[&[1], 100_u32.to_le_bytes().as_slice()].concat()).await;
    let mut slow = open(&[&[1], 100_u32.to_le_bytes().as_slice()].concat()).await;
    let trickle = tokio::spawn(async move {
        let before = tokio::time::Instant::now();
        while before.elapsed() < Duration::from_secs(8) && slow.write_all(&[0]).await.is_ok() {
            let _ = slow.flush().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        before.elapsed()
    });
    for n in 0..20_u8 {
        let answer = honest.request(a.address(), Protocol::Rpc, Bytes::copy_from_slice(&[n, 9])).await;
        assert_eq!(answer.unwrap()[..], [9, n]);
    }
    for stream in [&mut half, &mut missing] {
        let mut back = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(8), stream.read_to_end(&mut back)).await;
        assert!(ended.is_ok(), "the node waits for ever");
        // Accepted, then cut off.
        assert_eq!(back, [0]);
    }
    assert!(trickle.await.unwrap() < Duration::from_secs(8));
    task.abort();
}

#[tokio::test]
async fn what_is_only_announced_leaves_memory_for_others() {
    let a = start(1, tcp(), vec![], Limits { inbound_bytes: 4 << 20, handshake: Duration::from_secs(8), ..quick() });
    a.set_gate(Arc::new(Open));
    serve_reversed(&a, Protocol::Rpc).await;
    let honest = node(2, addresses(&a).await);
    connected(&honest, a.address()).await;
    let (control, to, task) = attacker(&a).await;
    let mut announced = Vec::new();
    for _ in 0..16 {
        let protocol = StreamProtocol::new(Protocol::Rpc.name());
        let mut stream = control.clone().open_stream(to, protocol).await.unwrap();
        // All that there is, and a byte of it.
        stream.write_all(&[&[1], (4_u32 << 20).to_le_bytes().as_slice(), &[7]].concat()).await.unwrap();
        stream.flush().await.unwrap();
        let mut accepted = [9];
        stream.read_exact(&mut accepted).await.unwrap();
        assert_eq!(accepted, [0]);
        announced.push(stream);
    }
    for _ in 0..8 {
        let answer = honest.request(a.address(), Protocol::Rpc, Bytes::from(vec![3; 300_000])).await;
        assert_eq!(answer.unwrap(), vec![3; 300_000]);
    }
    assert_eq!(a.metrics().refused(Refusal::Busy), 0);
    task.abort();
}

#[tokio::test]
async fn keys_without_an_ethereum_address_are_sent_away() {
    let a = node(1, vec![]);
    let mut swarm = raw(Keypair::generate_ed25519());
    swarm.dial(addresses(&a).await[0].clone()).unwrap();
    let closed = async {
        loop {
            if let libp2p::swarm::SwarmEvent::ConnectionClosed { .. } = swarm.select_next_some().await {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(8), closed).await.expect("the node disconnects");
    assert!(a.connected_peers().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_record_for_somebody_else_is_not_stored() {
    let a = node(1, vec![]);
    let victim = identity(77);
    let key = [b"tensorlink/peer/".as_slice(), victim.address().as_slice()].concat();
    let mut swarm = raw(Keypair::generate_secp256k1());
    swarm.behaviour_mut().kad.set_mode(Some(kad::Mode::Server));
    swarm.behaviour_mut().kad.add_address(&a.peer_id(), addresses(&a).await[0].clone());
    // Signed by the attacker, under the key of the victim.
    let mine = Keypair::generate_secp256k1();
    let record = libp2p::core::PeerRecord::new(&mine, vec!["/ip4/6.6.6.6/tcp/6".parse().unwrap()]).unwrap();
    let value = record.into_signed_envelope().into_protobuf_encoding();
    swarm.behaviour_mut().kad.put_record(kad::Record::new(key, value), kad::Quorum::One).unwrap();
    let task = tokio::spawn(async move {
        loop {
            swarm.select_next_some().await;
        }
    });
    eventually("the record is refused", async || (a.metrics().bad_records() > 0).then_some(())).await;
    task.abort();
    let b = node(2, addresses(&a).await);
    connected(&b, a.address()).await;
    let unknown = b.request(victim.address(), Protocol::Rpc, Bytes::new()).await;
    assert!(matches!(unknown, Err(tensorlink_node::ports::NetError::Unknown(_))), "{unknown:?}");
}

#[tokio::test]
async fn a_role_that_never_reads_its_queue_makes_us_busy_not_stuck() {
    let (a, b) = pair().await;
    let queue = a.accept(Protocol::Tensor).await.unwrap();
    let mut held = Vec::new();
    // The peer's share is smaller than the queue, so the share is what runs out.
    let busy = loop {
        match b.open(a.address(), Protocol::Tensor).await {
            Ok(stream) => held.push(stream),
            Err(e) => break e,
        }
    };
    assert!(matches!(busy, tensorlink_node::ports::NetError::Unreachable { .. }), "{busy}");
    drop(queue);
    drop(held);
    serve_reversed(&a, Protocol::Rpc).await;
    assert_eq!(ask(&b, a.address(), Protocol::Rpc, Bytes::from_static(b"ab")).await, "ba");
}
