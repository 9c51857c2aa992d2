//! A node for `script/nat`, which puts it behind routers: one that relays, one that answers, or one that asks and says
//! how long it took to be connected, by what way, and how fast it is, or how long it took after the other was gone for
//! a while. Its key is made of a number from 1.
//!
//! ```text
//! nat relay  NUMBER LISTEN
//! nat answer NUMBER LISTEN BOOTSTRAP
//! nat ask    NUMBER LISTEN BOOTSTRAP PEER
//! nat rejoin NUMBER LISTEN BOOTSTRAP PEER
//! ```
//!
//! In place of a bootstrap address, `mdns` finds the peer in the local network. An address after `upnp,` is used as
//! well as what the router opens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tensorlink_net::{Identity, Libp2pNet, Multiaddr, NetConfig};
use tensorlink_node::ports::{Gate, Net, Protocol};
use tensorlink_types::Address;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "nat (relay|answer|ask|rejoin) NUMBER LISTEN [BOOTSTRAP [PEER'S NUMBER]]";
/// Of a request that is timed: there are 32 of them.
const PIECE: usize = 1 << 20;
const PIECES: usize = 32;
/// Longest time to be connected.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets everybody do everything.
struct Open;

impl Gate for Open {
    fn allows(&self, _: Address, _: Protocol) -> bool {
        true
    }
}

fn identity(number: &str) -> Result<Identity> {
    Ok(Identity::from_secret([number.parse()?; 32])?)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (role, number, listen, bootstrap, peer) = match *arguments.as_slice() {
        [role @ "relay", number, listen] => (role, number, listen, None, None),
        [role @ "answer", number, listen, bootstrap] => (role, number, listen, Some(bootstrap), None),
        [role @ ("ask" | "rejoin"), number, listen, bootstrap, peer] => {
            (role, number, listen, Some(bootstrap), Some(peer))
        }
        _ => return Err(USAGE.into()),
    };
    let mdns = bootstrap == Some("mdns");
    let (upnp, bootstrap) = match bootstrap.and_then(|text| text.strip_prefix("upnp,")) {
        Some(address) => (true, Some(address)),
        None => (false, bootstrap.filter(|_| !mdns)),
    };
    let config = NetConfig {
        listen: vec![listen.parse::<Multiaddr>()?],
        bootstrap: bootstrap.map(str::parse).transpose()?.into_iter().collect(),
        relay: role == "relay",
        mdns,
        upnp,
        ..NetConfig::default()
    };
    let started = Instant::now();
    let node = Arc::new(Libp2pNet::start(identity(number)?, config)?);
    node.set_gate(Arc::new(Open));
    if let Some(peer) = peer {
        let peer = identity(peer)?.address();
        return if role == "ask" { ask(&node, peer, started).await } else { rejoin(&node, peer, started).await };
    }
    for address in node.listen_addresses().await? {
        println!("{address}");
    }
    let mut requests = node.serve(Protocol::Rpc).await?;
    while let Some(request) = requests.recv().await {
        // Who asked may have given up.
        let _ = request.reply.send(Bytes::from_static(b"got it"));
    }
    Ok(())
}

/// Asks until the peer answers: how long it took, and by what way.
async fn answered(node: &Libp2pNet, peer: Address, since: Instant) -> Result<(f64, &'static str)> {
    while let Err(error) = node.request(peer, Protocol::Rpc, Bytes::from_static(b"hello")).await {
        if since.elapsed() > PATIENCE {
            return Err(error.into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let connected = since.elapsed().as_secs_f64();
    let way = if node.relayed_peers().await?.contains(&peer) { "through the relay" } else { "directly" };
    Ok((connected, way))
}

/// Asks until the peer answers, until it is gone, and until it answers again.
async fn rejoin(node: &Libp2pNet, peer: Address, started: Instant) -> Result<()> {
    answered(node, peer, started).await?;
    println!("answered");
    let answered_at = Instant::now();
    while node.connected_peers().await?.contains(&peer) {
        if answered_at.elapsed() > PATIENCE {
            return Err("the peer is not gone".into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (again, way) = answered(node, peer, Instant::now()).await?;
    println!("answered again {again:.1} s after it was gone, {way}");
    Ok(())
}

/// Asks until the peer answers, then as fast as it does.
async fn ask(node: &Libp2pNet, peer: Address, started: Instant) -> Result<()> {
    let (connected, way) = answered(node, peer, started).await?;
    let begun = Instant::now();
    for _ in 0..PIECES {
        node.request(peer, Protocol::Rpc, Bytes::from(vec![7; PIECE])).await?;
    }
    let rate = (PIECES * PIECE) as f64 / begun.elapsed().as_secs_f64() / 1e6;
    println!("answered {connected:.1} s after the start, {way}; {rate:.0} MB/s");
    Ok(())
}
