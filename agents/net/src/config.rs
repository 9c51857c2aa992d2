//! Where a node listens, whom it asks first, and every bound on what others can make it do.

use std::time::Duration;

use libp2p::Multiaddr;

/// How to start a node.
#[derive(Clone, Debug)]
pub struct NetConfig {
    /// Addresses to listen on. Port 0 lets the system choose.
    pub listen: Vec<Multiaddr>,
    /// Peers to join the network through, with or without `/p2p/<id>`. Dialled again while not connected.
    pub bootstrap: Vec<Multiaddr>,
    /// Addresses under which others reach us: a forwarded port, a DNS name. Where there are any, others are told these
    /// and not those we listen on, which nobody outside could reach.
    pub external: Vec<Multiaddr>,
    /// Nobody reaches what we listen on: others are told the relays through which we are reached, and no other address
    /// of ours. Without this, relays are told of beside our addresses where peers see us under one that we do not
    /// listen on, and there is none in [`Self::external`].
    pub behind_nat: bool,
    /// Look for peers in the local network (mDNS), and be found there, at the IPv4 addresses of it that are listened
    /// on. Whoever is in it can have us dial addresses, eight a second at most.
    pub mdns: bool,
    /// Ask the router to let others in at the ports that are listened on (UPnP), every ten minutes, until the node ends
    /// and up to an hour beyond. While it does, no places at relays are taken, unless [`Self::behind_nat`].
    pub upnp: bool,
    /// Carry connections of peers that nobody reaches. Others must reach us.
    pub relay: bool,
    /// Bounds.
    pub limits: Limits,
}

impl Default for NetConfig {
    /// All interfaces, TCP and QUIC, any port, no bootstrap peer.
    fn default() -> Self {
        let any = Multiaddr::empty().with(libp2p::multiaddr::Protocol::Ip4([0, 0, 0, 0].into()));
        Self {
            listen: vec![
                any.clone().with(libp2p::multiaddr::Protocol::Tcp(0)),
                any.with(libp2p::multiaddr::Protocol::Udp(0)).with(libp2p::multiaddr::Protocol::QuicV1),
            ],
            bootstrap: Vec::new(),
            external: Vec::new(),
            behind_nat: false,
            mdns: false,
            upnp: false,
            relay: false,
            limits: Limits::default(),
        }
    }
}

/// Bounds on queues, sizes, waits and retries.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Established connections in all; half as many handshakes may be under way, in each direction.
    pub connections: u32,
    /// How many of these are kept for peers with stake and for those that we dial.
    pub reserved: u32,
    /// Connections from one address (IPv6: one /64) that is not of the loopback interface, handshakes included. Peers
    /// with stake do not count.
    pub connections_per_host: u32,
    /// The same for an address of the loopback interface: the nodes of one machine.
    pub connections_per_loopback: u32,
    /// Established connections to one peer.
    pub connections_per_peer: u32,
    /// Streams that peers hold open to us, in all.
    pub inbound_streams: usize,
    /// Streams that one peer holds open to us.
    pub inbound_streams_per_peer: usize,
    /// Streams that one peer may have us hold for requests of one protocol; more requests wait for a free one.
    pub request_streams_per_peer: usize,
    /// Bytes of request bodies in memory, in all, from their arrival until they are answered, beyond the first 64 KiB
    /// of each. One peer may hold no more than a third of what is then left for others.
    pub inbound_bytes: usize,
    /// Requests and streams waiting for a role to take them, a protocol.
    pub queue: usize,
    /// How long a role may let its queue stay full before the peer hears that we are busy.
    pub queue_wait: Duration,
    /// From dialling or the first byte of a stream to its verdict.
    pub handshake: Duration,
    /// From the last byte of a request to the first byte of its answer.
    pub answer: Duration,
    /// How long a stream for requests is kept without any. The opener closes it after half of that.
    pub idle: Duration,
    /// Least bytes a second while a frame is under way, on top of [`Self::handshake`].
    pub slowest: u32,
    /// First and longest wait before a peer that could not be reached is dialled again.
    pub redial: (Duration, Duration),
    /// Addresses whose routes are remembered.
    pub routes: usize,
    /// Records that we keep for the DHT; more push out the oldest of keys without stake.
    pub records: usize,
    /// Gossip messages a second from one source; more are lost.
    pub gossip_per_second: u32,
    /// Gossip messages that wait for a slow reader; more push out the oldest.
    pub gossip_queue: usize,
    /// Of a relay: peers that are reached through it.
    pub relayed: usize,
    /// Of a relay: connections that it carries, in all and of one peer.
    pub circuits: (usize, usize),
    /// Of a relay: how long it carries one, and how many bytes in all. The peers connect anew then.
    pub circuit: (Duration, u64),
    /// How long two peers that are connected through a relay have to connect directly before the relay is used.
    pub punch: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            reserved: 128,
            connections_per_host: 16,
            connections_per_loopback: 256,
            connections_per_peer: 4,
            inbound_streams: 2048,
            inbound_streams_per_peer: 64,
            request_streams_per_peer: 16,
            inbound_bytes: 512 << 20,
            queue: 256,
            queue_wait: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            answer: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            slowest: 256 << 10,
            redial: (Duration::from_millis(250), Duration::from_secs(10)),
            routes: 8192,
            records: 16384,
            gossip_per_second: 64,
            gossip_queue: 256,
            relayed: 128,
            circuits: (64, 16),
            circuit: (Duration::from_secs(3600), 1 << 30),
            punch: Duration::from_secs(5),
        }
    }
}

impl Limits {
    /// How long a frame of this many bytes may take.
    pub(crate) fn transfer(&self, bytes: usize) -> Duration {
        self.handshake + Duration::from_secs_f64(bytes as f64 / f64::from(self.slowest.max(1)))
    }
}
