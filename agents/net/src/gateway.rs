//! One conversation with a router that opens ports (UPnP).

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use igd_next::aio::tokio::search_gateway;
use igd_next::{PortMappingProtocol, SearchOptions};
use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use thiserror::Error;
use tokio::net::UdpSocket;

/// How long the router keeps a port open unless it is asked again, seconds.
pub(crate) const LEASE: u32 = 3600;
/// What the router shows its owner.
const WHO: &str = "tensorlink";

/// Why no port is open.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum Failure {
    /// Nobody answers, or the answer is cut off.
    #[error("no router opens ports by UPnP: others are not let in by it")]
    NotFound,
    /// What it opens, nobody reaches.
    #[error("the router is behind another one, which calls it {0}: a port that it opens lets nobody in")]
    Private(IpAddr),
    /// The port would lead to an address that nobody listens on.
    #[error(
        "the router knows this node as {0}, and the node does not listen there: say --listen /ip4/0.0.0.0/tcp/4001"
    )]
    Elsewhere(IpAddr),
    /// It says no.
    #[error("the router does not open the port: {0}")]
    Refused(String),
}

/// Has a router open the ports of these listen addresses: where others reach us then. Those of other networks of this
/// machine, such as a container's bridge, lead the router nowhere.
pub(crate) async fn open(listening: Vec<Multiaddr>) -> Result<BTreeSet<Multiaddr>, Failure> {
    let not_found = |e: &dyn std::fmt::Display| {
        tracing::debug!("no router: {e}");
        Failure::NotFound
    };
    let router = search_gateway(SearchOptions::default()).await.map_err(|e| not_found(&e))?;
    let outside = match router.get_external_ip().await.map_err(|e| not_found(&e))? {
        IpAddr::V4(outside) if is_public(outside) => outside,
        outside => return Err(Failure::Private(outside)),
    };
    let inside = seen_by(router.addr).await.map_err(|e| not_found(&e))?;
    let ports: Vec<_> = listening.iter().filter_map(port).filter(|(_, at)| IpAddr::V4(*at.ip()) == inside).collect();
    if ports.is_empty() {
        return Err(Failure::Elsewhere(inside));
    }
    let (mut opened, mut refused) = (BTreeSet::new(), None);
    for (protocol, at) in ports {
        match router.add_port(protocol, at.port(), at.into(), LEASE, WHO).await {
            Ok(()) => _ = opened.insert(reached(protocol, SocketAddrV4::new(outside, at.port()))),
            Err(e) => refused = Some(Failure::Refused(format!("{protocol} {}: {e}", at.port()))),
        }
    }
    match refused {
        Some(refused) if opened.is_empty() => Err(refused),
        Some(refused) => {
            tracing::warn!("{refused}");
            Ok(opened)
        }
        None => Ok(opened),
    }
}

/// The address under which a router sees us.
async fn seen_by(router: SocketAddr) -> std::io::Result<IpAddr> {
    let socket = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)).await?;
    // Nothing is sent.
    socket.connect(router).await?;
    Ok(socket.local_addr()?.ip())
}

/// The port of a listen address by TCP or QUIC.
fn port(listening: &Multiaddr) -> Option<(PortMappingProtocol, SocketAddrV4)> {
    let mut parts = listening.iter();
    match (parts.next()?, parts.next()?) {
        (Protocol::Ip4(host), Protocol::Tcp(port)) => Some((PortMappingProtocol::TCP, SocketAddrV4::new(host, port))),
        (Protocol::Ip4(host), Protocol::Udp(port)) => Some((PortMappingProtocol::UDP, SocketAddrV4::new(host, port))),
        _ => None,
    }
}

/// What others dial.
fn reached(protocol: PortMappingProtocol, at: SocketAddrV4) -> Multiaddr {
    let host = Multiaddr::empty().with(Protocol::Ip4(*at.ip()));
    match protocol {
        PortMappingProtocol::TCP => host.with(Protocol::Tcp(at.port())),
        PortMappingProtocol::UDP => host.with(Protocol::Udp(at.port())).with(Protocol::QuicV1),
    }
}

/// Whether everybody reaches an address.
fn is_public(host: Ipv4Addr) -> bool {
    let [first, second, third, _] = host.octets();
    let is_shared = first == 100 && second & 0xc0 == 64;
    let is_of_protocols = [first, second, third] == [192, 0, 0];
    let is_of_benchmarks = first == 198 && second & 0xfe == 18;
    let is_special = first == 0 || first >= 224 || is_shared || is_of_protocols || is_of_benchmarks;
    !(is_special || host.is_private() || host.is_loopback() || host.is_link_local() || host.is_documentation())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    #[test]
    fn what_the_provider_translates_again_is_not_public() {
        for text in ["8.8.8.8", "100.63.255.255", "100.128.0.0", "192.0.1.1", "198.17.0.1", "198.20.0.1", "223.1.1.1"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "0.1.1.1",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "169.254.1.1",
            "172.16.0.1",
            "192.0.0.8",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn others_dial_the_port_by_the_protocol_that_is_listened_by() {
        for (listening, outside) in [
            ("/ip4/10.0.0.5/tcp/4001", "/ip4/203.0.114.9/tcp/4001"),
            ("/ip4/10.0.0.5/udp/4001/quic-v1", "/ip4/203.0.114.9/udp/4001/quic-v1"),
        ] {
            let (protocol, inside) = port(&at(listening)).unwrap();
            assert_eq!(inside, "10.0.0.5:4001".parse().unwrap());
            assert_eq!(reached(protocol, "203.0.114.9:4001".parse().unwrap()), at(outside));
        }
        assert_eq!(port(&at("/ip6/::1/tcp/1")), None);
    }

    #[tokio::test]
    async fn a_router_sees_us_under_the_address_that_leads_to_it() {
        assert_eq!(seen_by("127.0.0.1:5000".parse().unwrap()).await.unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
}
