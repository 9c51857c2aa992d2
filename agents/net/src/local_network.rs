//! Finds peers of the local network, and is found there (mDNS), on every interface that a listen address is of.
//!
//! Whoever is there can send anything, so all is bounded: messages that are read, answers to them, and nothing is
//! remembered of them here. What is found is told to the event loop alone, and is no address for other dials.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::task::{Context, Poll};
use std::time::Duration;

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, ListenAddresses, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use libp2p::{Multiaddr, PeerId};
use socket2::{Domain, Socket, Type};
use tokio::io::ReadBuf;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::mdns::{GROUP, MAX_MESSAGE, Message, answer, question, read, told};

/// How often it is looked what to say.
const TICK: Duration = Duration::from_millis(250);
/// Messages that are read between two ticks; more are lost.
const MESSAGES: u32 = 16;
/// First and longest wait between two questions. With every question we also say that we are there.
const ASK: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(300));
/// Least time between two answers: all hear each.
const ANSWER: Duration = Duration::from_secs(1);
/// Interfaces that are used; on more, nobody finds us.
const MAX_INTERFACES: usize = 16;

/// A peer that says that it is in the local network, and its addresses there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found(pub(crate) PeerId, pub(crate) Vec<Multiaddr>);

/// What to say, and when.
#[derive(Debug)]
struct Talk {
    /// When the next question is, and the wait after it.
    ask: (Instant, Duration),
    was_asked: bool,
    answered: Option<Instant>,
    /// Messages to be read until the next tick.
    unread: u32,
}

/// What to say now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Say {
    Nothing,
    Answer,
    QuestionAndAnswer,
}

impl Talk {
    fn new(now: Instant) -> Self {
        Self { ask: (now, ASK.0), was_asked: false, answered: None, unread: MESSAGES }
    }

    /// We can be found at other addresses than before.
    fn begin_anew(&mut self, now: Instant) {
        self.ask = (now, ASK.0);
    }

    fn tick(&mut self, now: Instant) -> Say {
        self.unread = MESSAGES;
        let may_answer = self.answered.is_none_or(|last| now >= last + ANSWER);
        let say = if now >= self.ask.0 {
            self.ask = (now + self.ask.1, (self.ask.1 * 2).min(ASK.1));
            Say::QuestionAndAnswer
        } else if self.was_asked && may_answer {
            Say::Answer
        } else {
            return Say::Nothing;
        };
        (self.was_asked, self.answered) = (false, Some(now));
        say
    }

    /// Whether one more message may be read.
    const fn may_read(&self) -> bool {
        self.unread > 0
    }

    /// A message came: whom it tells of, other than this node.
    fn heard(&mut self, message: &[u8], from: SocketAddr, me: PeerId) -> Option<Found> {
        self.unread = self.unread.saturating_sub(1);
        let SocketAddr::V4(from) = from else { return None };
        match read(message, *from.ip())? {
            Message::Question => {
                self.was_asked = true;
                None
            }
            Message::Answer(peer, addresses) => (peer != me).then_some(Found(peer, addresses)),
        }
    }
}

/// Finds peers of the local network.
pub(crate) struct LocalNetwork {
    me: PeerId,
    listening: ListenAddresses,
    talk: Talk,
    ticks: Interval,
    /// Hears all interfaces; there once there is one.
    ear: Option<tokio::net::UdpSocket>,
    /// Speaks on the interface of an address of ours.
    mouths: BTreeMap<Ipv4Addr, UdpSocket>,
    buffer: Vec<u8>,
}

impl LocalNetwork {
    /// Begins once there is something to listen on. Must be called in a tokio runtime.
    pub(crate) fn new(me: PeerId) -> Self {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (listening, talk) = (ListenAddresses::default(), Talk::new(Instant::now()));
        Self { me, listening, talk, ticks, ear: None, mouths: BTreeMap::new(), buffer: vec![0; MAX_MESSAGE] }
    }

    /// Uses the interfaces that are listened on now, also those that went and came back.
    fn open(&mut self) {
        let hosts = self.listening.iter().filter_map(told).filter(|host| !host.is_loopback());
        let hosts: BTreeSet<_> = hosts.collect::<BTreeSet<_>>().into_iter().take(MAX_INTERFACES).collect();
        for gone in self.mouths.extract_if(.., |host, _| !hosts.contains(host)) {
            if let Some(ear) = &self.ear {
                // An error means that the interface is gone, too.
                let _ = ear.leave_multicast_v4(*GROUP.ip(), gone.0);
            }
        }
        for host in hosts {
            if let Err(e) = self.join(host) {
                tracing::warn!(%host, "nodes of this local network are not found (mDNS): {e}");
            }
        }
    }

    fn join(&mut self, host: Ipv4Addr) -> io::Result<()> {
        let ear = match self.ear.take() {
            Some(ear) => ear,
            None => ear()?,
        };
        match self.ear.insert(ear).join_multicast_v4(*GROUP.ip(), host) {
            Err(e) if e.kind() != ErrorKind::AddrInUse => return Err(e),
            _ => {}
        }
        if let Entry::Vacant(place) = self.mouths.entry(host) {
            place.insert(mouth(host)?);
        }
        Ok(())
    }

    fn say(&mut self, say: Say) {
        if say == Say::Nothing {
            return;
        }
        if say == Say::QuestionAndAnswer {
            self.open();
        }
        for (host, mouth) in &self.mouths {
            let ours: Vec<_> = self.listening.iter().filter(|address| told(address) == Some(*host)).collect();
            let question = (say == Say::QuestionAndAnswer).then(question);
            for message in question.into_iter().chain([answer(self.me, ours)]) {
                if let Err(e) = mouth.send_to(&message, GROUP) {
                    tracing::debug!(%host, "nothing is said in the local network: {e}");
                }
            }
        }
    }

    /// Reads one message: whom it tells of.
    fn hear(&mut self, cx: &mut Context<'_>) -> Poll<Option<Found>> {
        let Some(ear) = &self.ear else { return Poll::Pending };
        let mut message = ReadBuf::new(&mut self.buffer);
        ear.poll_recv_from(cx, &mut message).map(|from| match from {
            Ok(from) => self.talk.heard(message.filled(), from, self.me),
            Err(e) => {
                tracing::debug!("nothing is heard of the local network: {e}");
                self.talk.unread = 0;
                None
            }
        })
    }
}

/// What hears messages to all, and none that somebody sends to this host alone.
fn ear() -> io::Result<tokio::net::UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(socket2::Protocol::UDP))?;
    // Others of this machine hear them, too.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    // Only on the interfaces that we joined.
    #[cfg(target_os = "linux")]
    socket.set_multicast_all_v4(false)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from(GROUP).into())?;
    tokio::net::UdpSocket::from_std(socket.into())
}

/// What speaks on the interface of this host's address, and of it.
fn mouth(host: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(socket2::Protocol::UDP))?;
    socket.set_multicast_if_v4(&host)?;
    socket.set_multicast_ttl_v4(255)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((host, 0)).into())?;
    Ok(socket.into())
}

impl NetworkBehaviour for LocalNetwork {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Found;

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if self.listening.on_swarm_event(&event) {
            self.talk.begin_anew(Instant::now());
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<Found, THandlerInEvent<Self>>> {
        while self.ticks.poll_tick(cx).is_ready() {
            let say = self.talk.tick(Instant::now());
            self.say(say);
        }
        while self.talk.may_read() {
            match self.hear(cx) {
                Poll::Ready(Some(found)) => return Poll::Ready(ToSwarm::GenerateEvent(found)),
                Poll::Ready(None) => {}
                Poll::Pending => break,
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)), 40_000);

    #[test]
    fn it_asks_more_and_more_seldom_and_again_where_it_has_a_new_address() {
        let mut now = Instant::now();
        let mut talk = Talk::new(now);
        let mut waits = Vec::new();
        for _ in 0..12 {
            assert_eq!(talk.tick(now), Say::QuestionAndAnswer);
            assert_eq!(talk.tick(now), Say::Nothing);
            waits.push(talk.ask.0 - now);
            now = talk.ask.0;
        }
        assert_eq!((waits[0], waits[11]), ASK);
        assert!(waits.is_sorted());
        talk.tick(now);
        talk.begin_anew(now);
        assert_eq!(talk.tick(now), Say::QuestionAndAnswer);
        assert_eq!(talk.ask.0, now + ASK.0);
    }

    #[test]
    fn however_many_ask_they_are_answered_once_a_second() {
        let now = Instant::now();
        let mut talk = Talk::new(now);
        talk.tick(now);
        talk.ask = (now + ASK.1, ASK.1);
        let me = PeerId::random();
        assert_eq!(talk.tick(now + ANSWER), Say::Nothing, "nobody asked");
        for _ in 0..5 {
            assert_eq!(talk.heard(&question(), FROM, me), None);
        }
        assert_eq!(talk.tick(now + ANSWER / 2), Say::Nothing);
        assert_eq!(talk.tick(now + ANSWER), Say::Answer);
        assert_eq!(talk.tick(now + 2 * ANSWER), Say::Nothing);
    }

    #[test]
    fn others_are_found_and_so_many_messages_are_read_until_the_next_tick() {
        let now = Instant::now();
        let mut talk = Talk::new(now);
        let [me, other] = [(); 2].map(|()| PeerId::random());
        let addresses: Vec<Multiaddr> = vec!["/ip4/10.0.0.7/tcp/4001".parse().unwrap()];
        assert_eq!(talk.heard(&answer(me, &addresses), FROM, me), None, "that is ourselves");
        let found = talk.heard(&answer(other, &addresses), FROM, me);
        assert_eq!(found, Some(Found(other, addresses.clone())));
        assert_eq!(talk.heard(&answer(other, &addresses), "[fe80::1]:5353".parse().unwrap(), me), None);
        while talk.may_read() {
            talk.heard(b"", FROM, me);
        }
        assert_eq!(talk.unread, 0);
        talk.tick(now);
        assert!(talk.may_read());
    }

    #[tokio::test]
    async fn what_is_found_is_no_address_for_other_dials() {
        let peer = PeerId::random();
        let mut network = LocalNetwork::new(PeerId::random());
        let dial = ConnectionId::new_unchecked(1);
        let given = network.handle_pending_outbound_connection(dial, Some(peer), &[], Endpoint::Dialer).unwrap();
        assert!(given.is_empty());
    }
}
