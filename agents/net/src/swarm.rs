//! The event loop: owns the swarm, answers [`Command`]s, and turns events into routes, connections and gossip.
//!
//! Streams do not pass through here: [`crate::inbound`] and [`crate::outbound`] drive them in their own tasks.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::StreamExt;
use libp2p::core::transport::ListenerId;
use libp2p::kad::{self, InboundRequest, QueryResult};
use libp2p::swarm::{DialError, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Swarm, identify, ping};
use tensorlink_node::ports::NetError;
use tensorlink_node::wire::gossip::{SPEEDS, WORKERS};
use tensorlink_types::Address;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::behaviour::{Behaviour, BehaviourEvent, KAD};
use crate::circuits::Circuits;
use crate::config::NetConfig;
use crate::dial::{Dials, Step};
use crate::directory::{self, Route};
use crate::gate::SharedGate;
use crate::gossip::Gossip;
use crate::identity::{Identity, address_of};
use crate::listening::Listening;
use crate::metrics::Metrics;
use crate::neighbours::Neighbours;
use crate::ports::{Ports, Whom};
use crate::records::{self, KeepError, Kept};
use crate::relays::{Relays, is_circuit, routable};

/// How often time-driven work is looked at.
const TICK: Duration = Duration::from_millis(250);
/// First and longest wait between two publications of our own record.
const PUBLISH: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(600));
/// First and longest wait between two rounds of dialling bootstrap peers.
const BOOTSTRAP: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What the rest of the node asks of the loop.
pub(crate) enum Command {
    /// Be connected to a peer.
    Connect(Address, oneshot::Sender<Result<PeerId, NetError>>),
    /// Publish to a topic.
    Publish(&'static str, Bytes, oneshot::Sender<Result<(), NetError>>),
    /// Listen to a topic.
    Subscribe(&'static str, oneshot::Sender<broadcast::Receiver<(Address, Bytes)>>),
    /// Addresses we listen on, with `/p2p`.
    ListenAddresses(oneshot::Sender<Vec<Multiaddr>>),
    /// Who is connected.
    Peers(oneshot::Sender<Vec<Address>>),
    /// Who is connected through relays only.
    Relayed(oneshot::Sender<Vec<Address>>),
}

pub(crate) struct EventLoop {
    pub(crate) swarm: Swarm<Behaviour>,
    identity: Identity,
    pub(crate) config: NetConfig,
    gate: Arc<SharedGate>,
    metrics: Arc<Metrics>,
    commands: mpsc::Receiver<Command>,
    pub(crate) dials: Dials,
    gossip: Gossip,
    publish: Publication,
    listening: Listening,
    bootstrap: (Instant, Duration),
    pub(crate) neighbours: Neighbours,
    pub(crate) ports: Ports,
    /// Connected peers that have said what they speak: others may have closed at once.
    pub(crate) met: HashSet<PeerId>,
    pub(crate) relays: Relays,
    pub(crate) circuits: Circuits,
}

/// When our own record is published next.
struct Publication {
    /// Something changed since the last time.
    stale: bool,
    last: Option<Instant>,
    gap: Duration,
}

impl EventLoop {
    pub(crate) fn new(
        (swarm, listeners): (Swarm<Behaviour>, HashSet<ListenerId>),
        identity: Identity,
        config: NetConfig,
        (gate, metrics): (Arc<SharedGate>, Arc<Metrics>),
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let mut relays = Relays::new(config.behind_nat, config.limits.redial.1);
        if config.upnp {
            relays.wait_for_router(Instant::now());
        }
        Self {
            dials: Dials::new(&config.limits),
            gossip: Gossip::new(&config.limits),
            publish: Publication { stale: true, last: None, gap: PUBLISH.0 },
            listening: Listening::new(listeners, Instant::now()),
            bootstrap: (Instant::now(), BOOTSTRAP.0),
            neighbours: Neighbours::new(Instant::now()),
            ports: Ports::default(),
            met: HashSet::new(),
            relays,
            circuits: Circuits::new(config.limits.punch, config.limits.idle),
            swarm,
            identity,
            config,
            gate,
            metrics,
            commands,
        }
    }

    /// Runs until `stop`, or until nobody can ask any more.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Users look for workers that they have not met, and hear from users whom nobody knows.
        for topic in [WORKERS, SPEEDS] {
            Gossip::relay(&mut self.swarm.behaviour_mut().gossip, topic);
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = tick.tick() => self.on_tick(),
                command = self.commands.recv() => match command {
                    Some(command) => self.on_command(command),
                    None => break,
                },
                event = self.swarm.select_next_some() => self.on_event(event),
            }
        }
        self.dials.fail_all();
    }

    fn on_command(&mut self, command: Command) {
        // A reply that nobody waits for any more is no error: its asker timed out.
        match command {
            Command::Connect(address, reply) => {
                let step = self.dials.connect(address, reply, Instant::now());
                self.take(address, step);
            }
            Command::Publish(topic, message, reply) => {
                let _ = reply.send(self.gossip.publish(&mut self.swarm.behaviour_mut().gossip, topic, message));
            }
            Command::Subscribe(topic, reply) => {
                let _ = reply.send(self.gossip.subscribe(&mut self.swarm.behaviour_mut().gossip, topic));
            }
            Command::ListenAddresses(reply) => {
                self.listening.ask(reply);
                self.tell_addresses();
            }
            Command::Peers(reply) => {
                let _ = reply.send(self.swarm.connected_peers().filter_map(|p| address_of(p).ok()).collect());
            }
            Command::Relayed(reply) => {
                let _ = reply.send(self.circuits.peers().filter_map(|p| address_of(p).ok()).collect());
            }
        }
    }

    /// Tells whoever waits for them where we listen, if that is known.
    fn tell_addresses(&mut self) {
        let me = *self.swarm.local_peer_id();
        let with_peer = |a: &Multiaddr| a.clone().with_p2p(me).unwrap_or_else(|a| a);
        for asker in self.listening.due(Instant::now()) {
            let _ = asker.send(self.swarm.listeners().map(with_peer).collect());
        }
    }

    /// Carries out what the dialling state machine asks for, and what follows from its failure at once.
    fn take(&mut self, address: Address, mut step: Step) {
        loop {
            step = match step {
                Step::Wait => return,
                Step::Dial(route) => {
                    match self.dial(Whom::Peer(route.peer, route.addresses)) {
                        // Somebody else's dial of the same peer ends in the same events.
                        Ok(()) | Err(DialError::DialPeerConditionFalse(_)) => return,
                        Err(e) => self.dials.dial_failed(address, &e, Instant::now()),
                    }
                }
                Step::LookUp => {
                    let query = self.swarm.behaviour_mut().kad.get_record(directory::record_key(address));
                    self.dials.looking_up(address, query);
                    return;
                }
            };
        }
    }

    fn on_event(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(BehaviourEvent::Identify(identify::Event::Received { peer_id, info, .. })) => {
                self.on_identified(peer_id, info);
            }
            SwarmEvent::Behaviour(BehaviourEvent::Kad(event)) => self.on_kad(event),
            SwarmEvent::Behaviour(BehaviourEvent::Gossip(event)) => {
                let watch = (&*self.gate, &*self.metrics);
                self.gossip.on_event(&mut self.swarm.behaviour_mut().gossip, event, watch);
            }
            SwarmEvent::Behaviour(BehaviourEvent::Ping(ping::Event {
                peer,
                connection,
                result: Err(ping::Failure::Timeout),
            })) => {
                tracing::debug!(%peer, "no answer to a ping: disconnecting");
                self.swarm.close_connection(connection);
            }
            SwarmEvent::Behaviour(BehaviourEvent::Punch(event)) => self.on_punched(&event),
            SwarmEvent::Behaviour(BehaviourEvent::Circuits(event)) => self.on_place(&event),
            SwarmEvent::Behaviour(BehaviourEvent::Local(found)) => self.on_found(found),
            SwarmEvent::Behaviour(BehaviourEvent::Router(event)) => self.on_router(&event),
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => match address_of(&peer_id) {
                Ok(address) => self.on_connected((address, peer_id), connection_id, &endpoint),
                Err(e) => {
                    tracing::debug!("disconnecting: {e}");
                    // An error means that it is gone already.
                    let _ = self.swarm.disconnect_peer_id(peer_id);
                }
            },
            SwarmEvent::ConnectionClosed { peer_id, connection_id, num_established, .. } => {
                let was_held = self.circuits.closed(peer_id, connection_id);
                if num_established == 0
                    && let Ok(address) = address_of(&peer_id)
                {
                    self.on_disconnected(address, peer_id, was_held);
                }
            }
            SwarmEvent::OutgoingConnectionError { peer_id, connection_id, error } => {
                self.ports.failed(connection_id);
                // Where a relay connects us, no more than an attempt at something better has failed.
                if let Some(peer) = peer_id
                    && !self.circuits.waits(peer)
                    && let Ok(address) = address_of(&peer)
                {
                    let step = self.dials.dial_failed(address, &error, Instant::now());
                    self.take(address, step);
                }
            }
            SwarmEvent::NewListenAddr { address, listener_id } => {
                self.on_listening(&address);
                self.publish.stale = true;
                self.listening.heard(listener_id);
                self.tell_addresses();
            }
            SwarmEvent::ExpiredListenAddr { .. } => self.publish.stale = true,
            // Among them places at relays. Until others are told, nobody new reaches us.
            SwarmEvent::ExternalAddrConfirmed { address } | SwarmEvent::ExternalAddrExpired { address } => {
                (self.publish.stale, self.publish.gap) = (true, PUBLISH.0);
                self.tell_peers(&address);
            }
            SwarmEvent::ListenerClosed { addresses, reason, listener_id } => {
                if !self.is_place(listener_id, &reason)
                    && let Err(e) = reason
                {
                    tracing::error!(?addresses, "a listener failed: {e}");
                }
                self.listening.heard(listener_id);
                self.tell_addresses();
            }
            _ => {}
        }
    }

    fn on_identified(&mut self, peer: PeerId, info: identify::Info) {
        let Ok(address) = address_of(&peer) else { return };
        self.look_for_relays(peer, &info);
        let routable = routable(info.listen_addrs);
        if info.protocols.contains(&KAD) {
            for at in directory::preferred(&routable) {
                self.swarm.behaviour_mut().kad.add_address(&peer, at);
            }
        }
        if !routable.is_empty() {
            self.dials.book.learn(address, Route { peer, addresses: routable, since: now() });
        }
    }

    /// The last connection to a peer has ended. If it `was_held` back, who asked for the peer still waits.
    fn on_disconnected(&mut self, address: Address, peer: PeerId, was_held: bool) {
        tracing::debug!(%address, "disconnected");
        self.relays.gone(peer);
        self.neighbours.disconnected(peer, Instant::now());
        self.dials.disconnected(address);
        if was_held {
            let step = self.dials.dial_failed(address, &"the relay's connection has ended", Instant::now());
            self.take(address, step);
        }
        if self.met.remove(&peer) && self.swarm.connected_peers().next().is_none() {
            self.bootstrap = (Instant::now(), BOOTSTRAP.0);
        }
    }

    fn on_kad(&mut self, event: kad::Event) {
        match event {
            kad::Event::InboundRequest { request: InboundRequest::PutRecord { record: Some(record), .. } } => {
                self.keep_record(record);
            }
            kad::Event::OutboundQueryProgressed { id, result: QueryResult::GetRecord(result), step, .. } => {
                if let Ok(kad::GetRecordOk::FoundRecord(found)) = &result {
                    match directory::check_record(&found.record, now()) {
                        Ok((address, route)) => self.dials.found(id, address, route),
                        Err(e) => self.on_bad_record(&e),
                    }
                }
                if step.last
                    && let Some((address, next)) = self.dials.looked_up(id, Instant::now())
                {
                    self.take(address, next);
                }
            }
            kad::Event::RoutingUpdated { is_new_peer: true, .. } => self.publish.stale = true,
            _ => {}
        }
    }

    /// Stores a record for the DHT.
    fn keep_record(&mut self, record: kad::Record) {
        let (own, gate) = (self.identity.address(), &self.gate);
        let staked = |address| address == own || gate.has_stake(address) == Some(true);
        let store = self.swarm.behaviour_mut().kad.store_mut();
        match records::keep(store, record, (own, self.config.limits.records), staked, now()) {
            Ok(Kept::Yes | Kept::Older) => {}
            Ok(Kept::NoRoom) => tracing::debug!("a record of a key without stake is not kept: there is no room"),
            Err(KeepError::Bad(e)) => self.on_bad_record(&e),
            Err(e) => tracing::debug!("a record is not kept: {e}"),
        }
    }

    fn on_bad_record(&self, e: &directory::RecordError) {
        Metrics::count(&self.metrics.bad_records, 1);
        tracing::debug!("a record is refused: {e}");
    }

    fn on_tick(&mut self) {
        let at = Instant::now();
        self.gossip.on_tick(at);
        self.dials.on_tick(at);
        self.keep_reachable(at);
        self.dial_neighbours(at);
        self.tell_addresses();
        let due = self.publish.last.is_none_or(|last| at - last >= self.publish.gap);
        let old = self.publish.last.is_some_and(|last| at - last >= PUBLISH.1);
        if (self.publish.stale && due) || old {
            self.publish_record(at);
        }
        if at >= self.bootstrap.0 {
            self.dial_bootstrap();
            self.bootstrap = (at + self.bootstrap.1, (self.bootstrap.1 * 2).min(BOOTSTRAP.1));
        }
    }

    /// Puts our own record into the DHT. Without peers it waits in our own store for the next time.
    fn publish_record(&mut self, at: Instant) {
        let hidden = self.config.behind_nat || !self.config.external.is_empty();
        // Of a place at a relay the address counts where we reached that, which is among the external ones.
        let local = self.swarm.listeners().filter(|address| !hidden && !is_circuit(address));
        let addresses = routable(self.swarm.external_addresses().chain(local).cloned());
        if addresses.is_empty() {
            return;
        }
        self.publish.stale = false;
        self.publish.last = Some(at);
        self.publish.gap = (self.publish.gap * 2).min(PUBLISH.1);
        match directory::sign_record(&self.identity, addresses) {
            Ok(record) => {
                if let Err(e) = self.swarm.behaviour_mut().kad.put_record(record, kad::Quorum::One) {
                    tracing::warn!("our record cannot be published: {e}");
                }
            }
            Err(e) => tracing::warn!("our record cannot be signed: {e}"),
        }
    }

    pub(crate) fn dial(&mut self, whom: Whom) -> Result<(), DialError> {
        let dial = self.ports.dial(whom);
        let id = dial.connection_id();
        self.swarm.dial(dial).inspect_err(|_| self.ports.not_begun(id))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
