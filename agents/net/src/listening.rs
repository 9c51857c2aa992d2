//! Where we listen, told to whoever asks, but not before it is known.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::time::Duration;

use libp2p::Multiaddr;
use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol;
use tokio::sync::oneshot::Sender;
use tokio::time::Instant;

/// A listener that has told no address for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many may ask before; others are answered at once.
const ASKED: usize = 64;

/// Who is told our addresses.
type Asker = Sender<Vec<Multiaddr>>;

/// Whether nobody else listens at an address. The transports share a port with whoever shares it, another node of ours
/// for one, and each would get a part of what is meant for the other.
///
/// # Errors
/// What the system says of an address that is taken, or that this machine does not have.
pub fn probe(address: &Multiaddr) -> io::Result<()> {
    let mut parts = address.iter();
    let host: IpAddr = match parts.next() {
        Some(Protocol::Ip4(host)) => host.into(),
        Some(Protocol::Ip6(host)) => host.into(),
        // Whether others can be listened on, the transports say.
        _ => return Ok(()),
    };
    match parts.next() {
        Some(Protocol::Tcp(port)) => TcpListener::bind((host, port)).map(drop),
        Some(Protocol::Udp(port)) => UdpSocket::bind((host, port)).map(drop),
        _ => Ok(()),
    }
}

/// Whether others of the local network may reach what is listened on, and a router may let others in there: an IPv4
/// address other than the loopback interface's.
pub(crate) fn is_of_local_network(address: &Multiaddr) -> bool {
    matches!(address.iter().next(), Some(Protocol::Ip4(host)) if !host.is_loopback())
}

/// Listeners that have told no address yet, and who waits for them.
#[derive(Debug)]
pub(crate) struct Listening {
    silent: HashSet<ListenerId>,
    asked: Vec<Asker>,
    until: Instant,
}

impl Listening {
    pub(crate) fn new(listeners: HashSet<ListenerId>, now: Instant) -> Self {
        Self { silent: listeners, asked: Vec::new(), until: now + PATIENCE }
    }

    /// Somebody wants to know.
    pub(crate) fn ask(&mut self, asker: Asker) {
        self.asked.push(asker);
    }

    /// A listener told an address, or ended.
    pub(crate) fn heard(&mut self, listener: ListenerId) {
        self.silent.remove(&listener);
    }

    /// Who is to be told now.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Asker> {
        let known = self.silent.is_empty() || now >= self.until || self.asked.len() > ASKED;
        if known { std::mem::take(&mut self.asked) } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::channel;

    use super::*;

    #[test]
    fn a_port_that_somebody_has_is_taken() {
        let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        let at = [format!("/ip4/127.0.0.1/tcp/{tcp_port}"), format!("/ip4/127.0.0.1/udp/{udp_port}/quic-v1")];
        let at = at.map(|text| text.parse::<Multiaddr>().unwrap());
        for address in &at {
            assert_eq!(probe(address).unwrap_err().kind(), io::ErrorKind::AddrInUse, "{address}");
        }
        drop((tcp, udp));
        for address in &at {
            probe(address).unwrap();
        }
    }

    #[test]
    fn nobody_of_the_local_network_reaches_the_loopback_interface() {
        for (text, is_reached) in [
            ("/ip4/0.0.0.0/tcp/1", true),
            ("/ip4/10.0.0.1/udp/1/quic-v1", true),
            ("/ip4/127.0.0.1/tcp/1", false),
            ("/ip6/::/tcp/1", false),
        ] {
            assert_eq!(is_of_local_network(&text.parse().unwrap()), is_reached, "{text}");
        }
    }

    #[test]
    fn whoever_asks_waits_for_every_listener_but_not_for_ever() {
        let now = Instant::now();
        let [first, second] = [ListenerId::next(), ListenerId::next()];
        let mut listening = Listening::new([first, second].into(), now);
        listening.ask(channel().0);
        listening.heard(first);
        assert!(listening.due(now).is_empty());
        listening.heard(second);
        assert_eq!(listening.due(now).len(), 1);
        assert!(listening.due(now).is_empty(), "once");

        let mut listening = Listening::new([first].into(), now);
        listening.ask(channel().0);
        assert!(listening.due(now).is_empty());
        assert_eq!(listening.due(now + PATIENCE).len(), 1);
        (0..=ASKED).for_each(|_| listening.ask(channel().0));
        assert_eq!(listening.due(now).len(), ASKED + 1);
    }
}
