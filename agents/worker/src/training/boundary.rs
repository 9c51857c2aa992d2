//! The worker's neighbours at its boundaries, and the exchange of signed logs that ends an interval.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tensorlink_node::Identity;
use tensorlink_node::interval::Boundaries;
use tensorlink_node::wire::frame::SignedLog;
use tensorlink_proof::commit::logs::BoundaryLists;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::commit::{Boundary, Contracts, SenderSignatures, edge_log, verify_signer};
use tensorlink_types::abi::EdgeLog;
use tensorlink_types::{Address, B256, Lane};
use thiserror::Error;

use super::link::{Link, LinkError};
use crate::evidence::awaited::{Awaited, Side};

/// A neighbour: who, and the stream to it.
#[derive(Debug)]
pub struct Neighbour {
    /// Its address.
    pub address: Address,
    /// The stream.
    pub link: Link,
}

/// The neighbours of a stage.
#[derive(Debug, Default)]
pub struct Neighbours {
    /// The previous stage's worker.
    pub previous: Option<Neighbour>,
    /// The next stage's worker.
    pub next: Option<Neighbour>,
    /// For which of them we wait.
    pub awaited: Arc<Awaited>,
}

/// Why the neighbours' logs and ours do not go together.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The stream failed. Reconnect.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The neighbour's signature is not its own. Not ours to pay for: the interval is not claimed.
    #[error("{neighbour} signs badly: {source}")]
    Signature {
        /// Who.
        neighbour: Address,
        /// What is wrong.
        source: SignatureError,
    },
    /// The neighbour signed something else than it sent. The interval is not claimed.
    #[error("{neighbour} sent tensors with log root {received} and signed {signed:?}")]
    Different {
        /// Who.
        neighbour: Address,
        /// What we received.
        received: B256,
        /// What it signed.
        signed: Box<EdgeLog>,
    },
    /// A neighbour sent something else than the first time that this interval was worked on, and what we computed then
    /// is signed. Nothing else is signed about it: two logs for one interval would convict us.
    #[error("a neighbour sends other tensors for interval {0} than it did before")]
    Changed(u32),
    /// We could not sign.
    #[error(transparent)]
    Sign(#[from] SignatureError),
}

impl Boundaries for Neighbours {
    type Error = LinkError;

    fn receive(&mut self, boundary: Boundary, step: u32, micro_batch: u32) -> Result<Bytes, LinkError> {
        let side = Side::of(boundary);
        let neighbour = match side {
            Side::Previous => &mut self.previous,
            Side::Next => &mut self.next,
        };
        let link = &mut neighbour.as_mut().ok_or(LinkError::Gone)?.link;
        self.awaited.begin(side, Instant::now());
        let tensor = link.receive_tensor(step, micro_batch)?;
        self.awaited.tensor(side, (step, micro_batch), Instant::now());
        Ok(tensor)
    }

    fn must_wait(&self, boundary: Boundary) -> bool {
        self.at(boundary).is_some_and(|neighbour| neighbour.link.is_idle())
    }

    fn send(&mut self, boundary: Boundary, step: u32, micro_batch: u32, data: Bytes) -> Result<(), LinkError> {
        let link = &self.at(boundary).ok_or(LinkError::Gone)?.link;
        // Who does not take what we send keeps us waiting, too.
        self.awaited.begin(Side::of(boundary), Instant::now());
        link.send_tensor(step, micro_batch, data)?;
        self.awaited.pause(Instant::now());
        Ok(())
    }
}

impl Neighbours {
    const fn at(&self, boundary: Boundary) -> Option<&Neighbour> {
        match Side::of(boundary) {
            Side::Previous => self.previous.as_ref(),
            Side::Next => self.next.as_ref(),
        }
    }

    /// Takes in and drops what neighbours have sent before they knew that we go no further, up to `most` tensors each,
    /// until one of them leaves; why.
    pub(crate) async fn until_one_leaves(&mut self, most: u32) -> LinkError {
        async fn leaves(neighbour: Option<&mut Neighbour>, most: u32) -> LinkError {
            match neighbour {
                Some(neighbour) => neighbour.link.until_it_ends(most).await,
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            error = leaves(self.previous.as_mut(), most) => error,
            error = leaves(self.next.as_mut(), most) => error,
        }
    }

    /// Signs what we sent, checks what the neighbours sign, so that each holds the other to what it sent. Returns what
    /// they signed, and the time that signing and checking took, without the wait for the neighbours. Blocks; only from
    /// a blocking thread.
    ///
    /// # Errors
    /// [`ExchangeError`].
    pub fn exchange_logs(
        &mut self,
        lane: Lane,
        interval: u32,
        logs: &BoundaryLists,
        identity: &Identity,
        contracts: &Contracts,
    ) -> Result<(SenderSignatures, Duration), ExchangeError> {
        let roots = logs.roots();
        let sides = [
            (self.previous.as_mut(), Boundary::ToPrevious, Boundary::FromPrevious),
            (self.next.as_mut(), Boundary::ToNext, Boundary::FromNext),
        ];
        let mut awaited = Vec::new();
        let mut signing = Duration::ZERO;
        for (neighbour, sent, received) in sides {
            let sent = edge_log(lane, interval, sent, &roots);
            let received = edge_log(lane, interval, received, &roots).map(|log| (received, log));
            let Some(((neighbour, sent), received)) = neighbour.zip(sent).zip(received) else { continue };
            let start = Instant::now();
            let signature = identity.sign(contracts.edge_log(&sent))?.to_vec();
            signing += start.elapsed();
            neighbour.link.send_log(SignedLog { log: sent, signature })?;
            awaited.push((neighbour, received));
        }
        let mut signatures = SenderSignatures::default();
        for (neighbour, (boundary, received)) in awaited {
            self.awaited.begin(Side::of(boundary), Instant::now());
            let SignedLog { log, signature } = neighbour.link.receive_log(self.awaited.on_chain(&received))?;
            self.awaited.attestation(Side::of(boundary), Instant::now());
            let address = neighbour.address;
            if log != received {
                let received = received.root;
                return Err(ExchangeError::Different { neighbour: address, received, signed: Box::new(log) });
            }
            let start = Instant::now();
            verify_signer(&signature, contracts.edge_log(&log), address)
                .map_err(|source| ExchangeError::Signature { neighbour: address, source })?;
            signing += start.elapsed();
            match boundary {
                Boundary::FromPrevious => signatures.previous = signature.into(),
                _ => signatures.next = signature.into(),
            }
        }
        Ok((signatures, signing))
    }
}
