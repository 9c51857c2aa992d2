//! A worker that hears, in one step, something else from its neighbour than that said. So that its own honest code
//! takes it, the neighbour's place is held by a puppet, which signs what is heard: the neighbour's own signature fits
//! what it said only.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use tensorlink_node::Identity;
use tensorlink_node::ports::{Duplex, Event, EventAt, Gate, Incoming, Net, NetError, Ports, Protocol};
use tensorlink_proof::commit::Boundary;
use tensorlink_types::Address;
use tokio::io::duplex;
use tokio::sync::mpsc;

use crate::crooked::Twist;
use crate::forger::Forger;

/// Streams between the real net and the worker, and bytes in each.
const QUEUE: usize = 16;
const BUFFER: usize = 1 << 20;

/// Net and chain of a worker of a job of two stages.
pub struct Hearsay {
    ports: Ports,
    step: u32,
    puppet: Identity,
    /// Whose place the puppet holds.
    neighbour: OnceLock<Address>,
}

impl Hearsay {
    /// Over a worker's own ports, with the key of its puppet.
    pub const fn new(ports: Ports, puppet: Identity, step: u32) -> Self {
        Self { ports, step, puppet, neighbour: OnceLock::new() }
    }

    fn bend(&self, stream: Box<dyn Duplex>, said_over: Boundary) -> Box<dyn Duplex> {
        let (worker, ours) = duplex(BUFFER);
        let holders = self.neighbour.get().copied().into_iter().collect();
        let forger = Forger::new(self.ports.clone(), self.puppet.clone(), (self.step, said_over), holders);
        tokio::spawn(forger.pass_on(stream, Box::new(ours)));
        Box::new(worker)
    }
}

impl Twist for Hearsay {
    fn heard(&self, mut at: EventAt) -> EventAt {
        if let Event::JobAccepted { offers, .. } = &mut at.event {
            for offer in offers.iter_mut().filter(|offer| offer.worker != self.ports.identity.address()) {
                self.neighbour.get_or_init(|| offer.worker);
                offer.worker = self.puppet.address();
            }
        }
        at
    }
}

/// Lets everybody in: the neighbour is no member of the job that the worker knows.
struct Open;

impl Gate for Open {
    fn allows(&self, _: Address, _: Protocol) -> bool {
        true
    }
}

/// The net of one that goes by hearsay.
pub struct Ears(pub Arc<Hearsay>);

#[async_trait]
impl Net for Ears {
    fn address(&self) -> Address {
        self.0.ports.net.address()
    }

    async fn request(&self, peer: Address, protocol: Protocol, body: Bytes) -> Result<Bytes, NetError> {
        self.0.ports.net.request(peer, protocol, body).await
    }

    async fn serve(&self, protocol: Protocol) -> Result<mpsc::Receiver<Incoming>, NetError> {
        self.0.ports.net.serve(protocol).await
    }

    async fn open(&self, peer: Address, protocol: Protocol) -> Result<Box<dyn Duplex>, NetError> {
        let neighbour = self.0.neighbour.get().copied().unwrap_or(peer);
        Ok(self.0.bend(self.0.ports.net.open(neighbour, protocol).await?, Boundary::ToPrevious))
    }

    async fn accept(&self, protocol: Protocol) -> Result<mpsc::Receiver<(Address, Box<dyn Duplex>)>, NetError> {
        let mut streams = self.0.ports.net.accept(protocol).await?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        let hearsay = self.0.clone();
        tokio::spawn(async move {
            while let Some((_, stream)) = streams.recv().await {
                let heard = (hearsay.puppet.address(), hearsay.bend(stream, Boundary::ToNext));
                if sender.send(heard).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    async fn publish(&self, topic: &'static str, message: Bytes) -> Result<(), NetError> {
        self.0.ports.net.publish(topic, message).await
    }

    async fn subscribe(&self, topic: &'static str) -> Result<mpsc::Receiver<(Address, Bytes)>, NetError> {
        self.0.ports.net.subscribe(topic).await
    }

    fn set_gate(&self, _: Arc<dyn Gate>) {
        self.0.ports.net.set_gate(Arc::new(Open));
    }

    fn bytes_moved(&self) -> (u64, u64) {
        self.0.ports.net.bytes_moved()
    }
}
