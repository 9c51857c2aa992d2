//! A net over which some get no answer.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tensorlink_node::ports::{Duplex, Gate, Incoming, Net, NetError, Protocol};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::Address;
use tokio::sync::mpsc;

/// Requests between the real net and the worker.
const QUEUE: usize = 16;

/// An honest net, mute to some questions.
pub struct Mute {
    net: Arc<dyn Net>,
    unanswered: fn(&Bytes) -> bool,
}

impl Mute {
    /// Mute towards auditors.
    pub fn about_claims(net: Arc<dyn Net>) -> Self {
        Self { net, unanswered: of_auditor }
    }

    /// Mute about what the work comes to.
    pub fn about_results(net: Arc<dyn Net>) -> Self {
        Self { net, unanswered: |body| matches!(decode("request", body), Ok(Request::EndState(_))) }
    }
}

/// Whether it is a question about a claim.
fn of_auditor(body: &Bytes) -> bool {
    matches!(
        decode("request", body),
        Ok(Request::Interval(_)
            | Request::Statements(_)
            | Request::SentLogs(_)
            | Request::Trace { .. }
            | Request::State { .. }
            | Request::Output { .. })
    )
}

#[async_trait]
impl Net for Mute {
    fn address(&self) -> Address {
        self.net.address()
    }

    async fn request(&self, peer: Address, protocol: Protocol, body: Bytes) -> Result<Bytes, NetError> {
        self.net.request(peer, protocol, body).await
    }

    async fn serve(&self, protocol: Protocol) -> Result<mpsc::Receiver<Incoming>, NetError> {
        let mut requests = self.net.serve(protocol).await?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        let unanswered = self.unanswered;
        tokio::spawn(async move {
            while let Some(request) = requests.recv().await {
                if unanswered(&request.body) {
                    if let Ok(declined) = encode("response", &Response::Declined("no".to_owned())) {
                        let _ = request.reply.send(declined);
                    }
                } else if sender.send(request).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    async fn open(&self, peer: Address, protocol: Protocol) -> Result<Box<dyn Duplex>, NetError> {
        self.net.open(peer, protocol).await
    }

    async fn accept(&self, protocol: Protocol) -> Result<mpsc::Receiver<(Address, Box<dyn Duplex>)>, NetError> {
        self.net.accept(protocol).await
    }

    async fn publish(&self, topic: &'static str, message: Bytes) -> Result<(), NetError> {
        self.net.publish(topic, message).await
    }

    async fn subscribe(&self, topic: &'static str) -> Result<mpsc::Receiver<(Address, Bytes)>, NetError> {
        self.net.subscribe(topic).await
    }

    fn set_gate(&self, gate: Arc<dyn Gate>) {
        self.net.set_gate(gate);
    }

    fn bytes_moved(&self) -> (u64, u64) {
        self.net.bytes_moved()
    }
}
