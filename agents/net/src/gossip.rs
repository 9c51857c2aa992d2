//! Publish and subscribe. Every message is signed by its source, whose address is what subscribers see.
//!
//! A message is passed on only if it is what its topic is for, its source may say such things as far as is known here,
//! and has not said too much within the second. A malformed one is held against who sent it ([`crate::scoring`]): an
//! honest peer would not have passed it on. What was merely not wanted is not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use libp2p::gossipsub::{self, IdentTopic, MessageAcceptance, PublishError, TopicHash};
use tensorlink_node::ports::NetError;
use tensorlink_node::wire::gossip::is_well_formed;
use tensorlink_types::Address;
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;

use crate::behaviour::{Gossipsub, MAX_GOSSIP};
use crate::config::Limits;
use crate::gate::SharedGate;
use crate::identity::address_of;
use crate::metrics::Metrics;

/// Sources counted in one second; messages of more are lost.
const MAX_SOURCES: usize = 8192;

/// The topics somebody here listens to, and how much each source has said lately.
pub(crate) struct Gossip {
    topics: HashMap<TopicHash, broadcast::Sender<(Address, Bytes)>>,
    heard: HashMap<Address, u32>,
    second: Instant,
    per_second: u32,
    queue: usize,
}

impl Gossip {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            topics: HashMap::new(),
            heard: HashMap::new(),
            second: Instant::now(),
            per_second: limits.gossip_per_second,
            queue: limits.gossip_queue.max(1),
        }
    }

    pub(crate) fn publish(&self, inner: &mut Gossipsub, topic: &str, message: Bytes) -> Result<(), NetError> {
        let size = message.len();
        if size > MAX_GOSSIP {
            return Err(NetError::TooLarge { size, limit: MAX_GOSSIP });
        }
        match inner.publish(IdentTopic::new(topic), message) {
            Ok(_) => {}
            // The port promises no delivery: nobody to tell, or told already, is no error of the caller's.
            Err(
                e @ (PublishError::NoPeersSubscribedToTopic | PublishError::Duplicate | PublishError::AllQueuesFull(_)),
            ) => {
                tracing::debug!(topic, "not published: {e}");
            }
            Err(e) => tracing::warn!(topic, "not published: {e}"),
        }
        Ok(())
    }

    /// Passes a topic's messages on, whether anybody here listens or not: those who say and those who listen need not
    /// be connected to each other.
    pub(crate) fn relay(inner: &mut Gossipsub, topic: &str) -> TopicHash {
        let topic = IdentTopic::new(topic);
        if let Err(e) = inner.subscribe(&topic) {
            tracing::error!(%topic, "cannot subscribe: {e}");
        }
        topic.hash()
    }

    pub(crate) fn subscribe(&mut self, inner: &mut Gossipsub, topic: &str) -> broadcast::Receiver<(Address, Bytes)> {
        let topic = Self::relay(inner, topic);
        let queue = self.queue;
        self.topics.entry(topic).or_insert_with(|| broadcast::channel(queue).0).subscribe()
    }

    pub(crate) fn on_event(
        &mut self,
        inner: &mut Gossipsub,
        event: gossipsub::Event,
        (gate, metrics): (&SharedGate, &Metrics),
    ) {
        let gossipsub::Event::Message { propagation_source, message_id, message } = event else { return };
        // Strict validation has checked the signature of the source.
        let source = message.source.as_ref().and_then(|peer| address_of(peer).ok());
        let well_formed = message.data.len() <= MAX_GOSSIP && is_well_formed(message.topic.as_str(), &message.data);
        let verdict = match source.filter(|_| well_formed) {
            None => {
                Metrics::count(&metrics.malformed_messages, 1);
                MessageAcceptance::Reject
            }
            // Whoever passed it on may not know yet, or know more.
            Some(source) if gate.may_publish(source, message.topic.as_str()) == Some(false) => {
                Metrics::count(&metrics.unknown_messages, 1);
                MessageAcceptance::Ignore
            }
            // Not the fault of whoever passed it on.
            Some(source) if !self.admit(source) => {
                Metrics::count(&metrics.lost_messages, 1);
                MessageAcceptance::Ignore
            }
            Some(source) => {
                if let Some(topic) = self.topics.get(&message.topic) {
                    // Nobody listening at the moment is no error.
                    let _ = topic.send((source, message.data.into()));
                }
                MessageAcceptance::Accept
            }
        };
        inner.report_message_validation_result(&message_id, &propagation_source, verdict);
    }

    fn admit(&mut self, source: Address) -> bool {
        if self.heard.len() >= MAX_SOURCES && !self.heard.contains_key(&source) {
            return false;
        }
        let count = self.heard.entry(source).or_default();
        *count = count.saturating_add(1);
        *count <= self.per_second
    }

    pub(crate) fn on_tick(&mut self, now: Instant) {
        if now - self.second >= Duration::from_secs(1) {
            self.second = now;
            self.heard.clear();
        }
    }
}

/// Hands a topic's messages to one subscriber. While it is slow they wait in the broadcast, which drops the oldest.
pub(crate) async fn forward(
    mut from: broadcast::Receiver<(Address, Bytes)>,
    to: mpsc::Sender<(Address, Bytes)>,
    metrics: Arc<Metrics>,
) {
    loop {
        let message = tokio::select! {
            () = to.closed() => return,
            message = from.recv() => message,
        };
        match message {
            Ok(message) => {
                if to.send(message).await.is_err() {
                    return;
                }
            }
            Err(broadcast::error::RecvError::Lagged(lost)) => Metrics::count(&metrics.lost_messages, lost),
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_reader_loses_the_oldest() {
        let (send, from) = broadcast::channel(4);
        let (to, mut reader) = mpsc::channel(1);
        let metrics = Arc::new(Metrics::default());
        for n in 0..10_u8 {
            send.send((Address::ZERO, Bytes::copy_from_slice(&[n]))).unwrap();
        }
        drop(send);
        tokio::spawn(forward(from, to, metrics.clone()));
        let mut got = Vec::new();
        while let Some((_, message)) = reader.recv().await {
            got.push(message[0]);
        }
        assert_eq!(got, [6, 7, 8, 9]);
        assert_eq!(metrics.lost_messages(), 6);
    }

    #[test]
    fn a_source_that_floods_is_silenced_for_the_second() {
        let mut gossip = Gossip::new(&Limits { gossip_per_second: 3, ..Limits::default() });
        let (loud, quiet) = (Address::repeat_byte(1), Address::repeat_byte(2));
        let admitted = (0..10).filter(|_| gossip.admit(loud)).count();
        assert_eq!((admitted, gossip.admit(quiet)), (3, true));
        gossip.on_tick(gossip.second + Duration::from_secs(1));
        assert!(gossip.admit(loud));
    }
}
