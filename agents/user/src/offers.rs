//! Offers of workers: asked for, checked, and waited for until their workers are ready.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tensorlink_node::Ports;
use tensorlink_node::ports::Protocol;
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_proof::commit::verify_signer;
use tensorlink_types::abi::Offer;
use tensorlink_types::{B256, Bytes, JobId};

use crate::hire::{HireError, Wanted};

/// Longest wait for a worker that does not answer: it may be starting.
const ANSWER: Duration = Duration::from_secs(120);
/// Longest wait for an offer of one that does: the job has to be confirmed there, and its shard fetched and checked.
const OFFER: Duration = Duration::from_secs(300);
/// Wait between two questions.
const PAUSE: Duration = Duration::from_millis(500);

/// Asks for offers.
pub(crate) struct Offers {
    ports: Ports,
}

impl Offers {
    /// Of this node's peers.
    pub(crate) const fn new(ports: Ports) -> Self {
        Self { ports }
    }

    /// Asks each worker for a binding offer on its lane; lanes in order (`replica · stages + stage`). Where one does
    /// not offer, `instead` names the next to ask for its lane, if there is one. Returns who offered, in the order
    /// of lanes. `terms`: the hash that the job was posted with (P-40).
    ///
    /// # Errors
    /// [`HireError`] of a worker that does not offer, and whom nobody replaces.
    pub(crate) async fn collect(
        &self,
        terms: B256,
        lanes: &[Wanted],
        mut instead: impl FnMut(&Wanted, &HireError) -> Option<Wanted>,
    ) -> Result<Vec<(Wanted, Offer, Bytes)>, HireError> {
        let ask = |place: usize, wanted: Wanted| async move { (place, wanted, self.ask(terms, wanted).await) };
        let mut asked: FuturesUnordered<_> =
            lanes.iter().enumerate().map(|(place, wanted)| ask(place, *wanted)).collect();
        let mut offers = BTreeMap::new();
        while let Some((place, wanted, answer)) = asked.next().await {
            match answer {
                Ok((offer, signature)) => drop(offers.insert(place, (wanted, offer, signature))),
                Err(error) => match instead(&wanted, &error) {
                    Some(other) => asked.push(ask(place, other)),
                    None => return Err(error),
                },
            }
        }
        Ok(offers.into_values().collect())
    }

    async fn ask(&self, terms: B256, wanted: Wanted) -> Result<(Offer, Bytes), HireError> {
        let Wanted { lane, worker, .. } = wanted;
        let malformed = |source| HireError::Malformed { worker, source };
        let question = encode("request", &Request::Quote(lane)).map_err(malformed)?;
        let begun = self.ports.clock.now();
        loop {
            let waited = self.ports.clock.now().saturating_sub(begun);
            let late = waited >= OFFER.as_secs();
            let reason = match self.ports.net.request(worker, Protocol::Rpc, question.clone()).await {
                Ok(answer) => match decode("response", &answer).map_err(malformed)? {
                    Response::Offer { offer, signature } => return self.check(terms, wanted, offer, signature),
                    // It may not have confirmed the job yet, or not have found us yet.
                    Response::Declined(reason) => reason,
                    Response::Refused(reason) => return Err(HireError::Declined { worker, lane, reason }),
                    other => format!("answers {other:?}"),
                },
                Err(error) if waited >= ANSWER.as_secs() => return Err(error.into()),
                Err(error) => error.to_string(),
            };
            if late {
                return Err(HireError::Declined { worker, lane, reason });
            }
            tracing::debug!(%worker, %lane, %reason, "no offer yet");
            self.ports.clock.sleep(PAUSE).await;
        }
    }

    fn check(
        &self,
        terms: B256,
        Wanted { lane, worker, limit }: Wanted,
        offer: Offer,
        signature: Vec<u8>,
    ) -> Result<(Offer, Bytes), HireError> {
        let named = (offer.job, offer.terms, offer.stage, offer.replica, offer.worker);
        if named != (lane.job.0, terms, lane.stage, lane.replica, worker) {
            return Err(HireError::Mismatch { worker, lane, offer: Box::new(offer) });
        }
        if offer.pricePerInterval > limit {
            return Err(HireError::Price { worker, lane, limit, asked: offer.pricePerInterval });
        }
        verify_signer(&signature, self.ports.contracts.offer(&offer), worker)
            .map_err(|source| HireError::Signature { worker, source })?;
        Ok((offer, signature.into()))
    }

    /// Waits until all workers of an accepted job are ready to run it.
    ///
    /// # Errors
    /// [`HireError`] if one does not become ready in time.
    pub(crate) async fn wait_until_ready(&self, job: JobId, lanes: &[Wanted]) -> Result<(), HireError> {
        let ready = lanes.iter().map(|&Wanted { lane, worker, .. }| async move {
            let malformed = |source| HireError::Malformed { worker, source };
            let question = encode("request", &Request::Ready(job)).map_err(malformed)?;
            let deadline = self.ports.clock.now().saturating_add(OFFER.as_secs());
            loop {
                let reason = match self.ports.net.request(worker, Protocol::Rpc, question.clone()).await {
                    Ok(answer) => match decode("response", &answer).map_err(malformed)? {
                        Response::Ready(true) => return Ok(()),
                        other => format!("answers {other:?}"),
                    },
                    Err(error) => error.to_string(),
                };
                if self.ports.clock.now() >= deadline {
                    return Err(HireError::Declined { worker, lane, reason });
                }
                self.ports.clock.sleep(PAUSE).await;
            }
        });
        futures::future::try_join_all(ready).await.map(|_| ())
    }
}
