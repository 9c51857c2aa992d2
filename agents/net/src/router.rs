//! Asks the router to let others in at the ports that are listened on (UPnP), again and again: a router may come later,
//! restart, forget, and get another address of its provider.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, ListenAddresses, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use libp2p::{Multiaddr, PeerId};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::gateway::{self, Failure};
use crate::mdns;

/// How long after a listen address came or went the router is asked, for others to come or go with it.
const SETTLE: Duration = Duration::from_secs(1);
/// How often the router is asked. A port that it opened stays open over several times that it does not answer.
const AGAIN: Duration = Duration::from_secs(600);
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where so many times in a row no router answers, its ports count as closed: half of their lease is over then.
const MAX_SILENT: u32 = 3;
/// Ports that are asked for; on more, the router lets nobody in.
const MAX_PORTS: usize = 16;

/// What became of the ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Others reach us here.
    Opened(Multiaddr),
    /// Not any more.
    Closed(Multiaddr),
    /// No port is opened, for another reason than before.
    Failed(Failure),
}

/// Where others reach us, as the router says.
type Answer = Result<BTreeSet<Multiaddr>, Failure>;
/// Asks a router.
type Ask = Box<dyn Fn(Vec<Multiaddr>) -> AbortOnDropHandle<Answer> + Send>;

/// Keeps ports open.
pub(crate) struct Router {
    ask: Ask,
    asked: Option<AbortOnDropHandle<Answer>>,
    due: Pin<Box<Sleep>>,
    listening: ListenAddresses,
    open: BTreeSet<Multiaddr>,
    /// How many times no router has answered since one did.
    silent: u32,
    failure: Option<Failure>,
    events: VecDeque<ToSwarm<Event, THandlerInEvent<Self>>>,
}

impl Router {
    /// Begins once there is something to listen on. Must be called in a tokio runtime.
    pub(crate) fn new() -> Self {
        Self::with(Box::new(|ports| {
            // A task of its own: what strangers answer is read there.
            AbortOnDropHandle::new(tokio::spawn(async {
                timeout(PATIENCE, gateway::open(ports)).await.unwrap_or(Err(Failure::NotFound))
            }))
        }))
    }

    fn with(ask: Ask) -> Self {
        Self {
            ask,
            asked: None,
            due: Box::pin(sleep(AGAIN)),
            listening: ListenAddresses::default(),
            open: BTreeSet::new(),
            silent: 0,
            failure: None,
            events: VecDeque::new(),
        }
    }

    /// Whether others reach us through a port that is open.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// A router answered, or none did.
    fn on_answer(&mut self, answer: Answer) {
        self.silent = if answer == Err(Failure::NotFound) { self.silent.saturating_add(1) } else { 0 };
        let (open, failure) = match answer {
            Ok(open) => (open, None),
            // It may be busy, or the question lost.
            Err(Failure::NotFound) if self.is_open() && self.silent < MAX_SILENT => return,
            Err(failure) => (BTreeSet::new(), Some(failure)),
        };
        for gone in self.open.difference(&open) {
            self.events.push_back(ToSwarm::ExternalAddrExpired(gone.clone()));
            self.events.push_back(ToSwarm::GenerateEvent(Event::Closed(gone.clone())));
        }
        for new in open.difference(&self.open) {
            self.events.push_back(ToSwarm::ExternalAddrConfirmed(new.clone()));
            self.events.push_back(ToSwarm::GenerateEvent(Event::Opened(new.clone())));
        }
        self.open = open;
        if let Some(failure) = failure.clone().filter(|_| failure != self.failure) {
            self.events.push_back(ToSwarm::GenerateEvent(Event::Failed(failure)));
        }
        self.failure = failure;
    }

    /// What a router is asked to open. It translates private addresses only.
    fn ports(&self) -> Vec<Multiaddr> {
        let is_private = |address: &&Multiaddr| mdns::told(address).is_some_and(|host| host.is_private());
        self.listening.iter().filter(is_private).take(MAX_PORTS).cloned().collect()
    }
}

impl NetworkBehaviour for Router {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Event;

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
        let before = self.ports();
        if self.listening.on_swarm_event(&event) && self.ports() != before {
            self.due.as_mut().reset(Instant::now() + SETTLE);
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ToSwarm<Event, THandlerInEvent<Self>>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Poll::Ready(event);
            }
            if let Some(asked) = &mut self.asked {
                let Poll::Ready(answer) = Pin::new(asked).poll(cx) else { return Poll::Pending };
                self.asked = None;
                // Whoever answers what cannot be read has not answered.
                self.on_answer(answer.unwrap_or(Err(Failure::NotFound)));
            } else if self.due.as_mut().poll(cx).is_ready() {
                self.due.as_mut().reset(Instant::now() + AGAIN);
                match self.ports() {
                    none if none.is_empty() => self.on_answer(Ok(BTreeSet::new())),
                    ports => self.asked = Some((self.ask)(ports)),
                }
            } else {
                return Poll::Pending;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use libp2p::core::transport::ListenerId;
    use libp2p::swarm::{ExpiredListenAddr, NewListenAddr};

    use super::*;

    /// What a router answers, one after the other, and what it was asked.
    type Script = Arc<Mutex<(VecDeque<Answer>, Vec<Vec<Multiaddr>>)>>;

    fn at(text: &str) -> Multiaddr {
        text.parse().unwrap()
    }

    fn open(texts: &[&str]) -> Answer {
        Ok(texts.iter().map(|text| at(text)).collect())
    }

    fn router(answers: impl IntoIterator<Item = Answer>) -> (Router, Script) {
        let script: Script = Arc::new(Mutex::new((answers.into_iter().collect(), Vec::new())));
        let of_router = script.clone();
        let ask = move |ports| {
            let mut script = of_router.lock().unwrap();
            script.1.push(ports);
            let answer = script.0.pop_front().unwrap();
            AbortOnDropHandle::new(tokio::spawn(async move { answer }))
        };
        (Router::with(Box::new(ask)), script)
    }

    fn listen(router: &mut Router, address: &Multiaddr) {
        router
            .on_swarm_event(FromSwarm::NewListenAddr(NewListenAddr { listener_id: ListenerId::next(), addr: address }));
    }

    /// How long it is until the router is asked.
    fn wait(router: &Router) -> Duration {
        router.due.deadline().saturating_duration_since(Instant::now())
    }

    /// Asks now: what the swarm is told of the answer.
    async fn told(router: &mut Router, script: &Script) -> Vec<String> {
        router.due.as_mut().reset(Instant::now());
        let (mut told, before) = (Vec::new(), script.lock().unwrap().1.len());
        std::future::poll_fn(|cx| {
            loop {
                match router.poll(cx) {
                    Poll::Ready(ToSwarm::ExternalAddrConfirmed(address)) => told.push(format!("+ {address}")),
                    Poll::Ready(ToSwarm::ExternalAddrExpired(address)) => told.push(format!("- {address}")),
                    Poll::Ready(ToSwarm::GenerateEvent(Event::Failed(failure))) => told.push(format!("{failure:?}")),
                    Poll::Ready(_) => {}
                    Poll::Pending if router.asked.is_none() && script.lock().unwrap().1.len() > before => {
                        return Poll::Ready(());
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
        told
    }

    #[tokio::test]
    async fn a_router_is_asked_for_the_ports_of_the_local_network_soon_and_then_again() {
        let answers = [open(&["/ip4/1.1.1.1/tcp/1"]), open(&["/ip4/1.1.1.1/tcp/1"]), open(&["/ip4/2.2.2.2/tcp/1"])];
        let (mut router, script) = router(answers);
        assert!(wait(&router) > SETTLE);
        let inside = at("/ip4/10.0.0.5/tcp/1");
        for address in [&inside, &at("/ip4/127.0.0.1/tcp/1"), &at("/ip4/9.9.9.9/tcp/1"), &at("/ip6/fd00::1/tcp/1")] {
            listen(&mut router, address);
        }
        assert!(wait(&router) <= SETTLE);
        assert_eq!(told(&mut router, &script).await, ["+ /ip4/1.1.1.1/tcp/1"]);
        assert!(router.is_open() && wait(&router) > SETTLE && wait(&router) <= AGAIN);
        assert!(told(&mut router, &script).await.is_empty(), "nothing has changed");
        // Its provider gave it another address.
        assert_eq!(told(&mut router, &script).await, ["- /ip4/1.1.1.1/tcp/1", "+ /ip4/2.2.2.2/tcp/1"]);
        assert_eq!(script.lock().unwrap().1, [[inside.clone()], [inside.clone()], [inside]]);
    }

    #[tokio::test]
    async fn a_router_that_comes_later_is_found_and_one_failure_is_told_once() {
        let answers = [Err(Failure::NotFound), Err(Failure::NotFound), open(&["/ip4/1.1.1.1/tcp/1"])];
        let (mut router, script) = router(answers);
        listen(&mut router, &at("/ip4/10.0.0.5/tcp/1"));
        assert_eq!(told(&mut router, &script).await, ["NotFound"]);
        assert!(told(&mut router, &script).await.is_empty());
        assert_eq!(told(&mut router, &script).await, ["+ /ip4/1.1.1.1/tcp/1"]);
    }

    #[tokio::test]
    async fn ports_are_closed_where_the_router_is_silent_for_long_or_says_that_nobody_reaches_them() {
        let silent = || Err(Failure::NotFound);
        let private = Failure::Private([10, 9, 9, 9].into());
        let port = || open(&["/ip4/1.1.1.1/tcp/1"]);
        let (mut router, script) = router([port(), silent(), silent(), silent(), port(), Err(private)]);
        listen(&mut router, &at("/ip4/10.0.0.5/tcp/1"));
        told(&mut router, &script).await;
        for _ in 1..MAX_SILENT {
            assert!(told(&mut router, &script).await.is_empty() && router.is_open());
        }
        assert_eq!(told(&mut router, &script).await, ["- /ip4/1.1.1.1/tcp/1", "NotFound"]);
        assert!(!router.is_open());
        told(&mut router, &script).await;
        assert_eq!(told(&mut router, &script).await, ["- /ip4/1.1.1.1/tcp/1", "Private(10.9.9.9)"]);
    }

    #[tokio::test]
    async fn a_port_that_nobody_listens_at_any_more_is_closed_soon() {
        let (mut router, script) = router([open(&["/ip4/1.1.1.1/tcp/1"])]);
        let inside = at("/ip4/10.0.0.5/tcp/1");
        listen(&mut router, &inside);
        told(&mut router, &script).await;
        let listener_id = ListenerId::next();
        router.on_swarm_event(FromSwarm::ExpiredListenAddr(ExpiredListenAddr { listener_id, addr: &inside }));
        assert!(wait(&router) <= SETTLE);
        let expired = std::future::poll_fn(|cx| router.poll(cx)).await;
        assert!(matches!(expired, ToSwarm::ExternalAddrExpired(address) if address == at("/ip4/1.1.1.1/tcp/1")));
        assert!(!router.is_open());
    }
}
