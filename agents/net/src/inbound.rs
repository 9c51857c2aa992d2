//! Streams that peers open to us: gate, limits, then the role.
//!
//! Each stream has a task of its own, so a slow or silent peer holds up nobody but itself; every wait of a task ends by
//! a timeout, and permits bound how many tasks there are.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures::StreamExt;
use libp2p_stream::IncomingStreams;
use tensorlink_node::ports::{Duplex, Gate, Incoming, Protocol};
use tensorlink_types::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::compat::FuturesAsyncReadCompatExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Limits;
use crate::gate::SharedGate;
use crate::identity::address_of;
use crate::metrics::{Counted, Metrics};
use crate::share::{Budget, Seat, Seats};
use crate::wire::{self, Mode, ReadError, Refusal};

/// Bursts under way, in all and of one peer: everybody may send them, so they take little of the memory that requests
/// share.
const BURSTS: (usize, usize) = (8, 1);
/// Streams that have not said what they are for, or are being refused.
const MAX_HANDSHAKES: usize = 512;

/// A stream and who opened it; proven by the transport.
type Opened = (Address, Box<dyn Duplex>);

/// Who takes what arrives.
#[derive(Default)]
struct Roles {
    requests: HashMap<Protocol, mpsc::Sender<Incoming>>,
    streams: HashMap<Protocol, mpsc::Sender<Opened>>,
}

/// What all inbound streams share.
pub(crate) struct Inbound {
    limits: Limits,
    gate: Arc<SharedGate>,
    roles: RwLock<Roles>,
    metrics: Arc<Metrics>,
    handshakes: Seats,
    streams: Seats,
    bursts: Seats,
    budget: Budget,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Inbound {
    pub(crate) fn new(limits: Limits, gate: Arc<SharedGate>, metrics: Arc<Metrics>, stop: CancellationToken) -> Self {
        let each = limits.inbound_streams_per_peer;
        Self {
            gate,
            roles: RwLock::default(),
            handshakes: Seats::new(MAX_HANDSHAKES, each),
            streams: Seats::new(limits.inbound_streams, each),
            bursts: Seats::new(BURSTS.0, BURSTS.1),
            budget: Budget::new(limits.inbound_bytes),
            tasks: TaskTracker::new(),
            limits,
            metrics,
            stop,
        }
    }

    pub(crate) fn set_gate(&self, gate: Arc<dyn Gate>) {
        self.gate.set(gate);
    }

    /// Directs a protocol's requests to a new receiver.
    pub(crate) fn serve(&self, protocol: Protocol) -> mpsc::Receiver<Incoming> {
        let (to, receiver) = mpsc::channel(self.limits.queue);
        self.roles.write().unwrap_or_else(PoisonError::into_inner).requests.insert(protocol, to);
        receiver
    }

    /// Directs a protocol's streams to a new receiver.
    pub(crate) fn accept(&self, protocol: Protocol) -> mpsc::Receiver<Opened> {
        let (to, receiver) = mpsc::channel(self.limits.queue);
        self.roles.write().unwrap_or_else(PoisonError::into_inner).streams.insert(protocol, to);
        receiver
    }

    pub(crate) fn requests_to(&self, protocol: Protocol) -> Option<mpsc::Sender<Incoming>> {
        let roles = self.roles.read().unwrap_or_else(PoisonError::into_inner);
        roles.requests.get(&protocol).filter(|to| !to.is_closed()).cloned()
    }

    pub(crate) fn streams_to(&self, protocol: Protocol) -> Option<mpsc::Sender<Opened>> {
        let roles = self.roles.read().unwrap_or_else(PoisonError::into_inner);
        roles.streams.get(&protocol).filter(|to| !to.is_closed()).cloned()
    }

    /// Takes the streams of a protocol until the node stops.
    pub(crate) async fn run(self: Arc<Self>, protocol: Protocol, mut incoming: IncomingStreams) {
        loop {
            let (peer, stream) = tokio::select! {
                () = self.stop.cancelled() => return,
                next = incoming.next() => match next {
                    Some(next) => next,
                    None => return,
                },
            };
            let hand = address_of(&peer).ok().and_then(|address| Some((address, self.handshakes.take(address)?)));
            let Some((address, hand)) = hand else {
                Metrics::count(&self.metrics.dropped_streams, 1);
                continue;
            };
            let this = self.clone();
            self.tasks.spawn(async move {
                let stop = this.stop.clone();
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = this.handle(address, protocol, stream, hand) => {}
                }
            });
        }
    }

    /// Waits until the tasks of all streams have ended, after the node was told to stop.
    pub(crate) async fn stopped(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn handle(&self, peer: Address, protocol: Protocol, stream: libp2p::Stream, hand: Seat) {
        let mut stream = stream.compat();
        let Ok(Ok(mode)) = timeout(self.limits.handshake, stream.read_u8()).await else { return };
        let admitted = Mode::decode(mode).ok_or(Refusal::Malformed).and_then(|mode| {
            self.check_gate(peer, protocol)?;
            Ok((mode, self.streams.take(peer).ok_or(Refusal::Busy)?))
        });
        let (mode, seat) = match admitted {
            Ok(admitted) => admitted,
            Err(reason) => return self.refuse(&mut stream, peer, protocol, reason).await,
        };
        match mode {
            Mode::Requests if self.requests_to(protocol).is_none() => {
                self.refuse(&mut stream, peer, protocol, Refusal::NotServed).await;
            }
            Mode::Requests => {
                drop(hand);
                let mut stream = Counted::new(stream, self.metrics.clone(), seat);
                if let Ok(Ok(())) = timeout(self.limits.handshake, wire::write_verdict(&mut stream, Ok(()))).await {
                    while self.answer_one(peer, protocol, &mut stream).await {}
                }
            }
            Mode::Stream => {
                let Some(to) = self.streams_to(protocol) else {
                    return self.refuse(&mut stream, peer, protocol, Refusal::NotServed).await;
                };
                let Ok(Ok(place)) = timeout(self.limits.queue_wait, to.reserve()).await else {
                    return self.refuse(&mut stream, peer, protocol, Refusal::Busy).await;
                };
                if let Ok(Ok(())) = timeout(self.limits.handshake, wire::write_verdict(&mut stream, Ok(()))).await {
                    place.send((peer, Box::new(Counted::new(stream, self.metrics.clone(), seat))));
                }
            }
        }
    }

    fn check_gate(&self, peer: Address, protocol: Protocol) -> Result<(), Refusal> {
        if self.gate.allows(peer, protocol) { Ok(()) } else { Err(Refusal::NotAllowed) }
    }

    /// Tells the peer why, then closes. Counted either way.
    async fn refuse<S: tokio::io::AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        peer: Address,
        protocol: Protocol,
        reason: Refusal,
    ) {
        self.metrics.count_refusal(reason);
        tracing::debug!(%peer, ?protocol, ?reason, "refused");
        let say = async {
            wire::write_verdict(stream, Err(reason)).await?;
            stream.shutdown().await
        };
        // Whether it hears us is its own affair.
        let _ = timeout(self.limits.handshake, say).await;
    }

    /// Reads a request, lets the role answer, writes the answer. False: the stream is finished.
    async fn answer_one<S>(&self, peer: Address, protocol: Protocol, stream: &mut S) -> bool
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let length = match timeout(self.limits.idle, wire::read_length(stream, protocol.max_request())).await {
            Ok(Ok(length)) => length,
            Ok(Err(ReadError::TooLarge(_))) => {
                self.refuse(stream, peer, protocol, Refusal::TooLarge).await;
                return false;
            }
            // Idle, closed or broken: it can open another.
            Ok(Err(ReadError::Io(_) | ReadError::Malformed(_))) | Err(_) => return false,
        };
        match self.ask_role(peer, protocol, length, stream).await {
            Ok(Some(answer)) => {
                let write = wire::write_answer(stream, &answer);
                matches!(timeout(self.limits.transfer(answer.len()), write).await, Ok(Ok(())))
            }
            Ok(None) => false,
            Err(reason) => {
                self.refuse(stream, peer, protocol, reason).await;
                false
            }
        }
    }

    /// The role's answer; `None` if the body did not arrive.
    async fn ask_role<S: tokio::io::AsyncRead + Unpin>(
        &self,
        peer: Address,
        protocol: Protocol,
        length: usize,
        stream: &mut S,
    ) -> Result<Option<bytes::Bytes>, Refusal> {
        // Assignments change while a stream is open.
        self.check_gate(peer, protocol)?;
        let to = self.requests_to(protocol).ok_or(Refusal::NotServed)?;
        let _place = match protocol {
            Protocol::Burst => Some(self.bursts.take(peer).ok_or(Refusal::Busy)?),
            _ => None,
        };
        // Held until the answer is there. Short requests, as those for evidence and of payment are, need none of it.
        let mut memory = self.budget.open(peer);
        let read = wire::read_body(stream, length, |more| memory.grow(more));
        let Ok(Ok(body)) = timeout(self.limits.transfer(length), read).await else {
            return Ok(None);
        };
        let body = body.ok_or(Refusal::Busy)?;
        let (reply, answer) = oneshot::channel();
        let handed = timeout(self.limits.queue_wait, to.send(Incoming { peer, body, reply })).await;
        handed.map_err(|_| Refusal::Busy)?.map_err(|_| Refusal::NotServed)?;
        let answer = timeout(self.limits.answer, answer).await.map_err(|_| Refusal::Busy)?;
        let answer = answer.map_err(|_| Refusal::Declined)?;
        if answer.len() > protocol.max_frame() {
            tracing::error!(?protocol, size = answer.len(), "a role's answer exceeds the protocol's limit");
            return Err(Refusal::Declined);
        }
        Ok(Some(answer))
    }
}
