//! The libp2p protocols a node speaks, and their bounds.

use std::time::Duration;

use libp2p::gossipsub::{self, AllowAllSubscriptionFilter, MaxCountSubscriptionFilter, MessageAuthenticity};
use libp2p::kad::store::{MemoryStore, MemoryStoreConfig};
use libp2p::swarm::NetworkBehaviour;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::{StreamProtocol, Swarm, SwarmBuilder, dcutr, identify, kad, noise, ping, quic, relay, tcp};

use crate::admission::Admission;
use crate::config::{Limits, NetConfig};
use crate::directory::MAX_RECORD_BYTES;
use crate::error::StartError;
use crate::identity::Identity;
use crate::local_network::LocalNetwork;
use crate::muxer::BufferedYamux;
use crate::router::Router;
use crate::scoring;
use crate::tls::Tls;

/// Protocol of the DHT: our own, so that no record of another network comes here.
pub(crate) const KAD: StreamProtocol = StreamProtocol::new("/tensorlink/kad/1");
/// How long a published record lives without being published again.
const RECORD_TTL: Duration = Duration::from_secs(3600);
/// Largest gossip message, by the port's promise, and room for its envelope.
pub(crate) const MAX_GOSSIP: usize = 64 << 10;
const GOSSIP_ENVELOPE: usize = 1 << 10;
/// Records that the store takes beside those of others: our own.
const OWN_RECORDS: usize = 1;
/// Topics one peer may subscribe to.
const MAX_TOPICS: usize = 64;

/// Publish and subscribe.
pub(crate) type Gossipsub =
    gossipsub::Behaviour<gossipsub::IdentityTransform, MaxCountSubscriptionFilter<AllowAllSubscriptionFilter>>;

/// Everything that reacts to connections.
#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    // First, so that the others hear nothing of what is refused.
    admission: Admission,
    pub(crate) identify: identify::Behaviour,
    pub(crate) kad: kad::Behaviour<MemoryStore>,
    pub(crate) gossip: Gossipsub,
    ping: ping::Behaviour,
    pub(crate) streams: libp2p_stream::Behaviour,
    relay: Toggle<relay::Behaviour>,
    circuits: relay::client::Behaviour,
    punch: dcutr::Behaviour,
    local: Toggle<LocalNetwork>,
    pub(crate) router: Toggle<Router>,
}

impl Behaviour {
    fn new(
        identity: &Identity,
        config: &NetConfig,
        (admission, circuits): (Admission, relay::client::Behaviour),
    ) -> Result<Self, StartError> {
        let limits = &config.limits;
        let keypair = identity.keypair();
        let store = MemoryStoreConfig {
            max_records: limits.records.saturating_add(OWN_RECORDS),
            max_value_bytes: MAX_RECORD_BYTES,
            max_provided_keys: 0,
            max_providers_per_key: 0,
        };
        let mut dht = kad::Config::new(KAD);
        dht.set_record_filtering(kad::StoreInserts::FilterBoth)
            .set_record_ttl(Some(RECORD_TTL))
            .set_replication_interval(Some(RECORD_TTL / 2))
            // The event loop signs a fresh record itself.
            .set_publication_interval(None)
            .set_caching(kad::Caching::Disabled)
            .set_max_packet_size(4 * MAX_RECORD_BYTES)
            .set_query_timeout(limits.handshake);
        let peer = identity.peer_id();
        let mut dht = kad::Behaviour::with_config(peer, MemoryStore::with_config(peer, store), dht);
        dht.set_mode(Some(kad::Mode::Server));

        let gossip = gossipsub::ConfigBuilder::default()
            .validation_mode(gossipsub::ValidationMode::Strict)
            .validate_messages()
            .max_transmit_size(MAX_GOSSIP + GOSSIP_ENVELOPE)
            .build()
            .map_err(|e| StartError::Transport(e.to_string()))?;
        let filter = MaxCountSubscriptionFilter {
            filter: AllowAllSubscriptionFilter {},
            max_subscribed_topics: MAX_TOPICS,
            max_subscriptions_per_request: MAX_TOPICS,
        };
        let mut gossip =
            Gossipsub::new_with_subscription_filter(MessageAuthenticity::Signed(keypair.clone()), gossip, filter)
                .map_err(|e| StartError::Transport(e.to_string()))?;
        gossip.with_peer_score(scoring::params(), scoring::thresholds()).map_err(StartError::Transport)?;

        Ok(Self {
            admission,
            identify: identify::Behaviour::new(
                identify::Config::new("/tensorlink/1".into(), keypair.public())
                    .with_agent_version(concat!("tensorlink/", env!("CARGO_PKG_VERSION")).into())
                    .with_push_listen_addr_updates(true)
                    .with_hide_listen_addrs(config.behind_nat || !config.external.is_empty()),
            ),
            kad: dht,
            gossip,
            // The event loop closes connections whose pings time out: a peer that lost its power sends no goodbye.
            // The first failure is not reported, so silence lasts six times this long at most.
            ping: ping::Behaviour::new(
                ping::Config::new().with_interval(limits.handshake).with_timeout(2 * limits.handshake),
            ),
            streams: libp2p_stream::Behaviour::new(),
            relay: config.relay.then(|| relay::Behaviour::new(peer, carrying(limits))).into(),
            circuits,
            punch: dcutr::Behaviour::new(peer),
            local: config.mdns.then(|| LocalNetwork::new(peer)).into(),
            router: config.upnp.then(Router::new).into(),
        })
    }
}

/// How long a place at a relay lasts: as long as its connection, which pings watch. A shorter time would end places
/// whose renewal a full relay denies, and with libp2p-relay 0.22 a late answer to a renewal ends the relay itself.
const PLACE: Duration = Duration::from_secs(10 * 365 * 86_400);

/// What a relay carries. How often it is asked stays bounded as libp2p has it.
fn carrying(limits: &Limits) -> relay::Config {
    relay::Config {
        max_reservations: limits.relayed,
        reservation_duration: PLACE,
        max_circuits: limits.circuits.0,
        max_circuits_per_peer: limits.circuits.1,
        max_circuit_duration: limits.circuit.0,
        max_circuit_bytes: limits.circuit.1,
        ..relay::Config::default()
    }
}

/// The swarm over TCP (TLS or Noise, yamux) and QUIC, with names resolved by DNS, and over relays, which see no more
/// than ciphertext.
pub(crate) fn swarm(
    identity: &Identity,
    config: &NetConfig,
    admission: Admission,
) -> Result<Swarm<Behaviour>, StartError> {
    let limits = &config.limits;
    let streams = limits.inbound_streams_per_peer;
    let idle = limits.idle;
    let swarm = SwarmBuilder::with_existing_identity(identity.keypair().clone())
        .with_tokio()
        // In the order that a dialler proposes them: Noise is for peers that do not speak TLS.
        .with_tcp(tcp::Config::default().nodelay(true), (Tls::new, noise::Config::new), BufferedYamux::default)
        .map_err(|e| StartError::Transport(e.to_string()))?
        .with_quic_config(|mut quic: quic::Config| {
            // A tensor must not wait for credit on a long path: 16 MiB at 20 ms are 800 MB/s.
            quic.max_stream_data = 16 << 20;
            quic.max_connection_data = 64 << 20;
            quic
        })
        .with_dns()
        .map_err(|e| StartError::Transport(format!("the system's DNS configuration: {e}")))?
        .with_relay_client((Tls::new, noise::Config::new), BufferedYamux::default)
        .map_err(|e| StartError::Transport(e.to_string()))?
        .with_behaviour(|_, circuits| Ok(Behaviour::new(identity, config, (admission, circuits))?))
        .map_err(|e| StartError::Transport(e.to_string()))?
        .with_swarm_config(|config| {
            config
                // Names one protocol a stream, so the opener need not wait for it to be confirmed.
                .with_substream_upgrade_protocol_override(libp2p::core::upgrade::Version::V1Lazy)
                .with_max_negotiating_inbound_streams(streams)
                .with_idle_connection_timeout(idle)
        })
        .build();
    Ok(swarm)
}
