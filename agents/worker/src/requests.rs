//! Requests go to whom they concern: users ask about lanes, auditors about claims, workers for custody.

use std::sync::Arc;

use tensorlink_model::CacheEngine;
use tensorlink_node::ports::Incoming;
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::Address;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::custody::Wards;
use crate::evidence::{AuditAnswers, OwnClaims};
use crate::hiring::Hiring;
use crate::serving::Serving;

/// Requests answered at once; further ones wait in the net's bounded queue. What may wait for others to act has places
/// of its own, so that evidence and payment never wait for it.
const ANSWERS: usize = 8;

/// Who answers requests.
pub(crate) struct Requests<E> {
    hiring: Arc<Hiring<E>>,
    serving: Arc<Serving<E>>,
    wards: Arc<Wards>,
    claims: Arc<OwnClaims<E>>,
    audits: AuditAnswers<E>,
}

impl<E> Requests<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    pub(crate) fn new(
        hiring: Arc<Hiring<E>>,
        serving: Arc<Serving<E>>,
        wards: Arc<Wards>,
        claims: Arc<OwnClaims<E>>,
        audits: AuditAnswers<E>,
    ) -> Self {
        Self { hiring, serving, wards, claims, audits }
    }

    /// Answers requests until the net closes or `end`.
    pub(crate) async fn answer_all(self: Arc<Self>, mut requests: mpsc::Receiver<Incoming>, end: CancellationToken) {
        let answers = Arc::new(Semaphore::new(ANSWERS));
        let answering = async {
            while let Ok(slot) = answers.clone().acquire_owned().await
                && let Some(request) = requests.recv().await
            {
                tokio::spawn(self.clone().answer(request, slot));
            }
        };
        end.run_until_cancelled(answering).await;
    }

    async fn answer(self: Arc<Self>, request: Incoming, slot: OwnedSemaphorePermit) {
        let Incoming { peer, body, reply } = request;
        let mut slot = Some(slot);
        let response = match decode("request", &body) {
            Ok(request) => {
                if has_own_places(&request) {
                    slot = None;
                }
                self.respond(peer, request).await
            }
            Err(error) => Response::Declined(error.to_string()),
        };
        match encode("response", &response) {
            // The peer may be gone; that is its business.
            Ok(body) => drop(reply.send(body)),
            Err(error) => tracing::warn!(%peer, %error, "no answer"),
        }
        drop(slot);
    }

    /// The table: which request goes to whom.
    async fn respond(&self, peer: Address, request: Request) -> Response {
        match request {
            Request::Quote(lane) => self.hiring.offer(peer, lane).await,
            Request::Ready(job) => Response::Ready(self.wards.is_ready(job)),
            Request::Keep { claim, committed_at, state } => self.wards.keep(peer, (claim, committed_at, state)).await,
            Request::Mirror { claim, committed_at, state } => {
                self.wards.mirror(peer, (claim, committed_at, state)).await
            }
            Request::EndState(claim) => self.claims.end_state(claim).unwrap_or_else(|| self.wards.kept(claim)),
            Request::Advance(request) => self.serving.advance(peer, request).await,
            Request::Abandon { lane, text } => self.serving.abandon(peer, lane, text),
            Request::Pay { voucher, signature } => self.serving.pay(peer, voucher, signature).await,
            Request::Receipts { lane, epoch } => self.serving.receipts(lane, epoch),
            Request::Interval(claim)
            | Request::Statements(claim)
            | Request::SentLogs(claim)
            | Request::State { claim, .. }
            | Request::Trace { claim, .. }
            | Request::Output { claim, .. } => self.audits.respond(peer, claim, &request).await,
        }
    }
}

/// Whether a request keeps nobody else waiting.
const fn has_own_places(request: &Request) -> bool {
    // Texts wait in the bounded queue of their lane, offers for files of who asks; the keeper has places of its own,
    // fewer than would keep others waiting.
    matches!(request, Request::Advance(_) | Request::Quote(_) | Request::Keep { .. } | Request::Mirror { .. })
}
