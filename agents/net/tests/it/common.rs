//! Nodes on the loopback interface with made-up keys.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tensorlink_net::{Identity, Libp2pNet, Limits, Multiaddr, NetConfig};
use tensorlink_node::ports::{Gate, Net, NetError, Protocol};
use tensorlink_types::Address;
use tokio::task::JoinHandle;

/// Lets everybody do everything.
pub(crate) struct Open;

impl Gate for Open {
    fn allows(&self, _: Address, _: Protocol) -> bool {
        true
    }
}

/// Lets some peers use some protocols.
pub(crate) struct Only(pub(crate) Vec<(Address, Protocol)>);

impl Gate for Only {
    fn allows(&self, peer: Address, protocol: Protocol) -> bool {
        self.0.contains(&(peer, protocol))
    }
}

/// Lets everybody do everything, and knows who has stake.
pub(crate) struct Staked(pub(crate) Vec<Address>);

impl Gate for Staked {
    fn allows(&self, _: Address, _: Protocol) -> bool {
        true
    }

    fn has_stake(&self, peer: Address) -> Option<bool> {
        Some(self.0.contains(&peer))
    }
}

pub(crate) fn identity(n: u8) -> Identity {
    Identity::from_secret([n; 32]).expect("small numbers are keys")
}

/// Waits that fit a test: everything else as in production.
pub(crate) fn quick() -> Limits {
    Limits {
        handshake: Duration::from_secs(2),
        answer: Duration::from_secs(5),
        idle: Duration::from_secs(4),
        queue_wait: Duration::from_millis(300),
        redial: (Duration::from_millis(50), Duration::from_millis(400)),
        punch: Duration::from_secs(1),
        ..Limits::default()
    }
}

pub(crate) fn tcp() -> Multiaddr {
    "/ip4/127.0.0.1/tcp/0".parse().expect("an address")
}

pub(crate) fn quic() -> Multiaddr {
    "/ip4/127.0.0.1/udp/0/quic-v1".parse().expect("an address")
}

pub(crate) fn start(n: u8, listen: Multiaddr, bootstrap: Vec<Multiaddr>, limits: Limits) -> Arc<Libp2pNet> {
    let config = NetConfig { listen: vec![listen], bootstrap, external: vec![], limits, ..NetConfig::default() };
    Arc::new(Libp2pNet::start(identity(n), config).expect("a node starts"))
}

/// An open node.
pub(crate) fn node(n: u8, bootstrap: Vec<Multiaddr>) -> Arc<Libp2pNet> {
    let node = start(n, tcp(), bootstrap, quick());
    node.set_gate(Arc::new(Open));
    node
}

/// Where a node listens: told at once, however soon it is asked.
pub(crate) async fn addresses(node: &Libp2pNet) -> Vec<Multiaddr> {
    let addresses = node.listen_addresses().await.expect("it runs");
    assert!(!addresses.is_empty(), "it told before it knew");
    addresses
}

/// Two open nodes that know each other: the second joined through the first.
pub(crate) async fn pair() -> (Arc<Libp2pNet>, Arc<Libp2pNet>) {
    let a = node(1, vec![]);
    let b = node(2, addresses(&a).await);
    connected(&a, b.address()).await;
    (a, b)
}

pub(crate) async fn connected(node: &Libp2pNet, peer: Address) {
    eventually("they connect", async || node.connected_peers().await.ok().filter(|p| p.contains(&peer))).await;
}

/// Answers every request with its body reversed.
pub(crate) async fn serve_reversed(node: &Libp2pNet, protocol: Protocol) -> JoinHandle<()> {
    let mut requests = node.serve(protocol).await.expect("serves");
    tokio::spawn(async move {
        while let Some(request) = requests.recv().await {
            let mut body = request.body.to_vec();
            body.reverse();
            // The asker may have given up.
            let _ = request.reply.send(body.into());
        }
    })
}

/// Tries until there is a value; a minute at most, on a machine that is busy.
pub(crate) async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(tokio::time::Instant::now() < end, "in a minute not: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Repeats a request until it passes, as a role does.
pub(crate) async fn ask(node: &Libp2pNet, peer: Address, protocol: Protocol, body: Bytes) -> Bytes {
    let mut last = None;
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    while tokio::time::Instant::now() < end {
        match node.request(peer, protocol, body.clone()).await {
            Ok(answer) => return answer,
            Err(NetError::Refused(_)) => panic!("refused"),
            Err(e) => last = Some(e),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no answer: {last:?}");
}
