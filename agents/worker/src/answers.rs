//! Answers requests: users about lanes, auditors about claims.

use std::sync::Arc;

use cid::Cid;
use tensorlink_model::CacheEngine;
use tensorlink_node::interval::Span;
use tensorlink_node::ports::Incoming;
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::{Address, ClaimId, Lane};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::audit_answers::Repeatable;
use crate::quote::quote;
use crate::record::{Interval, LaneRecord};
use crate::role::Worker;

/// Requests answered at once; further ones wait in the net's bounded queue. What may wait for others to act has places
/// of its own, so that evidence and payment never wait for it.
const ANSWERS: usize = 8;

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Answers requests until the net closes or the worker stops.
    pub(crate) async fn answer_all(self: Arc<Self>, mut requests: mpsc::Receiver<Incoming>) {
        let answers = Arc::new(Semaphore::new(ANSWERS));
        let answering = async {
            while let Ok(slot) = answers.clone().acquire_owned().await
                && let Some(request) = requests.recv().await
            {
                tokio::spawn(self.clone().answer(request, slot));
            }
        };
        self.shutdown.run_until_cancelled(answering).await;
    }

    async fn answer(self: Arc<Self>, request: Incoming, slot: OwnedSemaphorePermit) {
        let Incoming { peer, body, reply } = request;
        let response = match decode("request", &body) {
            // Texts wait in the bounded queue of their lane, and keep nobody else waiting.
            Ok(Request::Advance(request)) => {
                drop(slot);
                self.advance(peer, request).await
            }
            // Offers wait for files of who asks.
            Ok(Request::Quote(lane)) => {
                drop(slot);
                self.offer(peer, lane).await
            }
            // The keeper has places of its own, fewer than would keep others waiting.
            Ok(Request::Keep { claim, committed_at, state }) => {
                drop(slot);
                self.keep(peer, (claim, committed_at, state)).await
            }
            Ok(request) => self.respond(peer, request).await,
            Err(error) => Response::Declined(error.to_string()),
        };
        match encode("response", &response) {
            // The peer may be gone; that is its business.
            Ok(body) => drop(reply.send(body)),
            Err(error) => tracing::warn!(%peer, %error, "no answer"),
        }
    }

    async fn respond(&self, peer: Address, request: Request) -> Response {
        match request {
            Request::Quote(lane) => self.offer(peer, lane).await,
            Request::Ready(job) => Response::Ready(self.is_ready(job)),
            Request::Keep { claim, committed_at, state } => self.keep(peer, (claim, committed_at, state)).await,
            Request::EndState(claim) => self.end_state(claim),
            Request::Advance(request) => self.advance(peer, request).await,
            Request::Abandon { lane, text } => self.abandon(peer, lane, text),
            Request::Pay { voucher, signature } => self.pay(peer, voucher, signature).await,
            Request::Receipts { lane, epoch } => self.receipts(lane, epoch),
            Request::Interval(claim)
            | Request::Statements(claim)
            | Request::SentLogs(claim)
            | Request::State { claim, .. }
            | Request::Trace { claim, .. }
            | Request::Output { claim, .. } => match self.repeatable(claim).await {
                // Another replica might ask, to claim the same.
                Ok(claim) if claim.is_hidden() => Response::Declined("the claim is not on chain yet: ask again".into()),
                Ok(claim) if self.is_withheld(peer, &claim, &request).await => {
                    Response::Declined("the chain's auditors must answer without it: ask again later".into())
                }
                Ok(claim) => claim
                    .answer(&self.context, &self.replays, (peer, &request))
                    .await
                    .unwrap_or_else(|error| Response::Declined(error.to_string())),
                Err(declined) => declined,
            },
        }
    }

    /// A binding offer for a lane.
    async fn offer(&self, peer: Address, lane: Lane) -> Response {
        let user = self.context.roster.members(lane.job).map(|members| members.user);
        let posted = self.posted().get(&lane.job).copied();
        let (Some(user), Some(posted)) = (user, posted) else {
            return Response::Declined("the job is not confirmed here yet: ask again".into());
        };
        if user != peer {
            return Response::Declined("only the job's user gets offers".into());
        }
        let Some(_place) = self.quotes.take(peer) else {
            return Response::Declined("as many offers as may be are being prepared: ask again".into());
        };
        let promises = (&self.promises, || self.free_lanes());
        match quote(&self.context, lane, (posted.terms, posted.manifest), promises).await {
            Ok((offer, signature)) => Response::Offer { offer, signature },
            Err(declined) if declined.is_final() => Response::Refused(declined.to_string()),
            Err(declined) => Response::Declined(declined.to_string()),
        }
    }

    /// CID of the state that a claim of ours ends in, or one that we keep.
    fn end_state(&self, claim: ClaimId) -> Response {
        let Some((interval, record)) = self.claimed(claim) else { return self.kept(claim) };
        // Another replica might ask, to claim the same.
        if !interval.confirmed {
            return Response::Declined("the claim is not confirmed on chain yet: ask again".into());
        }
        let file = record.state_after(interval.claim.interval).and_then(|cid| cid.parse::<Cid>().ok());
        let declined = || Response::Declined("the state that the claim ends in is not kept any more".into());
        file.map_or_else(declined, |cid| Response::EndState(cid.to_bytes()))
    }

    /// A claim of ours that is not forgotten, with its lane's record.
    fn claimed(&self, id: ClaimId) -> Option<(Interval, LaneRecord)> {
        let records: Vec<LaneRecord> = self.lanes().values().map(|running| running.log.get()).collect();
        records.into_iter().find_map(|record| {
            let interval = record.intervals.values().find(|i| self.context.ports.contracts.claim_id(&i.claim) == id)?;
            Some((interval.clone(), record))
        })
    }

    /// Finds a claim of ours by its id, with its shard.
    pub(crate) async fn repeatable(&self, id: ClaimId) -> Result<Repeatable, Response> {
        if let Some(receipt) = self.repeatable_receipt(id).await? {
            return Ok(receipt);
        }
        let (interval, record) = self
            .claimed(id)
            .ok_or_else(|| Response::Declined("no such claim of this worker, or it is long final".into()))?;
        let decline = |reason: String| Response::Declined(reason);
        let job = self.context.ports.chain.job(record.lane.job).await.map_err(|e| decline(e.to_string()))?;
        let job = job.ok_or_else(|| decline("no such job".into()))?;
        let shard = self.shard(&record, &job).await.map_err(decline)?;
        let lineage = record.lineage.ok_or_else(|| decline("the job has not started".into()))?;
        let steps = job.steps_per_interval;
        let span = Span { first_step: interval.claim.interval.saturating_mul(steps), steps };
        Ok(Repeatable { id, interval, shard, lineage, span })
    }
}
