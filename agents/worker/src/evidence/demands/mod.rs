//! Demands on chain (rule P-35): what is demanded of us is shown, and what others do not show in time is ended, one
//! after another.

mod open;

use std::sync::Arc;

use tensorlink_model::CacheEngine;
use tensorlink_node::custody::KeepError;
use tensorlink_node::files::{self, FileError};
use tensorlink_node::ports::{Call, ChainError, CustodyMove, Event, Owner, StoreError};
use tensorlink_node::wire::frame::SignedLog;
use tensorlink_node::{Keeper, blocking};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::Boundary;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::custody::{Undeliverable, attested_log, deliver, deliver_sent, sent_over};
use tensorlink_types::abi::Demand;
use tensorlink_types::{ClaimId, JobId, Lane, U256};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use self::open::{Open, OpenDemands};
use super::error::AuditError;
use super::own_claims::{OwnClaims, reason};
use super::replays::Replays;
use super::withheld::Withheld;
use crate::context::{BACK_OFF, Context};
use crate::keeping::Shards;
use crate::state::Lanes;

/// Seconds after which what was done about a demand is done again, if it is still open.
const AGAIN: u64 = 30;

/// Why nothing is shown yet.
#[derive(Debug, Error)]
enum Unshown {
    #[error("{0}")]
    Unknown(String),
    #[error(transparent)]
    Keep(#[from] KeepError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Undeliverable(#[from] Undeliverable),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error(transparent)]
    Sign(#[from] SignatureError),
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// Demands in jobs of ours.
pub(crate) struct Demands<E> {
    context: Arc<Context<E>>,
    lanes: Arc<Lanes>,
    keeper: Arc<Keeper>,
    shards: Arc<Shards<E>>,
    claims: Arc<OwnClaims<E>>,
    replays: Arc<Replays<E>>,
    withheld: Arc<Withheld>,
    open: OpenDemands,
}

impl<E> Demands<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    pub(crate) fn new(
        context: Arc<Context<E>>,
        lanes: Arc<Lanes>,
        keeper: Arc<Keeper>,
        shards: Arc<Shards<E>>,
        claims: Arc<OwnClaims<E>>,
        replays: Arc<Replays<E>>,
        withheld: Arc<Withheld>,
    ) -> Self {
        Self { context, lanes, keeper, shards, claims, replays, withheld, open: OpenDemands::default() }
    }

    /// Takes in a confirmed event: what is demanded in jobs of ours, and what was shown.
    pub(crate) fn apply(&self, event: &Event) {
        match event {
            Event::Demanded { id, demand } if self.lanes.has_any(JobId(demand.job)) => {
                tracing::warn!(%id, holder = %demand.holder, deadline = %demand.deadline, "data is demanded in a job of ours");
                self.open.open(*id, demand.as_ref().clone());
            }
            Event::AttestationGiven { id, root, signature } => {
                let log = self.open.get(*id).and_then(|demand| attested_log(&demand, *root));
                if let Some(log) = log {
                    self.withheld.attested(SignedLog { log, signature: signature.to_vec() });
                }
            }
            Event::DemandEnded { id, .. } => self.open.end(*id),
            Event::JobSettled { job, .. } => self.open.forget(*job),
            _ => {}
        }
    }

    /// Shows what is demanded of us, and ends what others do not show in time, until `end`. One at a time: a state may
    /// be large.
    pub(crate) async fn tend(self: Arc<Self>, end: CancellationToken) {
        let own = self.context.ports.identity.address();
        loop {
            let now = self.context.ports.clock.now();
            let Some((id, open)) = self.open.due(now, own) else {
                if !self.open.ask_for_sent(own) {
                    self.replays.forget_sent().await;
                }
                tokio::select! {
                    () = end.cancelled() => return,
                    () = self.open.more() => {}
                    () = self.context.ports.clock.sleep(BACK_OFF) => {}
                }
                continue;
            };
            let done = async {
                if open.demand.holder == own { self.show(id, &open).await } else { self.expire(id, &open.demand).await }
            };
            let Some(done) = end.run_until_cancelled(done).await else { return };
            // The event that says it is done comes later, and a reorganisation may undo it.
            let again = now.saturating_add(if done.is_ok() { AGAIN } else { BACK_OFF.as_secs() });
            match done {
                Ok(answer) => self.open.put_off(id, again, answer),
                Err(error) => {
                    tracing::warn!(%id, deadline = %open.demand.deadline, %error, "what is demanded is not shown yet");
                    self.open.put_off(id, again, None);
                }
            }
        }
    }

    /// Shows what is demanded; by what it did.
    async fn show(&self, id: U256, open: &Open) -> Result<Option<CustodyMove>, Unshown> {
        let answer = match &open.answer {
            Some(answer) => answer.clone(),
            None => {
                let answer = self.answer_to(id, open.demand.clone()).await?;
                // Worked out once, however often it takes to send it.
                self.open.put_off(id, 0, Some(answer.clone()));
                answer
            }
        };
        if let Some(gas) = self.attempt(Call::Custody(Box::new(answer.clone()))).await? {
            tracing::info!(%id, gas, "what was demanded is shown");
        }
        Ok(Some(answer))
    }

    async fn answer_to(&self, id: U256, demand: Demand) -> Result<CustodyMove, Unshown> {
        if let Some(boundary) = sent_over(&demand) {
            return self.answer_sent(id, demand, boundary).await;
        }
        let tensors = self.demanded(&demand).await?;
        let (demand, delivery) = blocking(move || {
            let delivery = deliver(&tensors, &demand);
            (demand, delivery)
        })
        .await;
        Ok(CustodyMove::Deliver { id, demand, delivery: delivery? })
    }

    /// What we sent is not kept: it is computed again, from what we received. Our attestation of it is the one
    /// that we gave the neighbour.
    async fn answer_sent(&self, id: U256, demand: Demand, boundary: Boundary) -> Result<CustodyMove, Unshown> {
        let unknown = |reason: &str| Unshown::Unknown(reason.to_owned());
        let claim = self.claims.repeatable(ClaimId(demand.claimId)).await;
        let claim = claim.map_err(|declined| Unshown::Unknown(reason(declined)))?;
        // A reorganisation could still change the job's key under what we show.
        if !claim.interval.confirmed {
            return Err(AuditError::Unconfirmed.into());
        }
        let logs = &claim.interval.logs;
        let log = attested_log(&demand, boundary.root(logs)).ok_or_else(|| unknown("there is no such neighbour"))?;
        let ports = &self.context.ports;
        let signature = ports.identity.sign(ports.contracts.edge_log(&log))?.into();
        let place = (boundary, demand.part.tensor);
        let (lists, tensor) = self.replays.sent_in_turn(&claim, place).await?;
        let (demand, delivery) = blocking(move || {
            let delivery = deliver_sent(&lists, &tensor, &demand);
            (demand, delivery)
        })
        .await;
        Ok(CustodyMove::DeliverSent { id, demand, delivery: delivery?, logs: logs.clone(), signature })
    }

    /// Ends a demand that was not met: it holds back a claim of the job.
    async fn expire(&self, id: U256, demand: &Demand) -> Result<Option<CustodyMove>, Unshown> {
        let now = self.context.ports.chain.head().await?.timestamp;
        if now > demand.deadline.to::<u64>() {
            let call = Call::Custody(Box::new(CustodyMove::Expire { id, demand: demand.clone() }));
            if let Some(gas) = self.attempt(call).await? {
                tracing::warn!(%id, holder = %demand.holder, gas, "a demand that was not met is ended");
            }
        }
        Ok(None)
    }

    /// Sends a call if it would be carried out; what it took. None if it is not time, or somebody was faster.
    async fn attempt(&self, call: Call) -> Result<Option<u64>, ChainError> {
        match self.context.ports.chain.attempt(call).await {
            Ok(receipt) => Ok(Some(receipt.gas)),
            Err(ChainError::Reverted { name, .. }) if name == "UnknownDemand" || name == "StillOpen" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The tensors of a state or file of which a part is demanded.
    async fn demanded(&self, demand: &Demand) -> Result<Vec<Tensor>, Unshown> {
        let unknown = |reason: &str| Unshown::Unknown(reason.to_owned());
        let lane = Lane { job: JobId(demand.job), stage: demand.stage, replica: demand.replica };
        let Some(log) = self.lanes.log(lane) else {
            return Ok(self.keeper.tensors_of(ClaimId(demand.claimId)).await?);
        };
        let record = log.get();
        let job = self.context.ports.chain.job(lane.job).await?.ok_or_else(|| unknown("no such job"))?;
        let shard = self.shards.of(&record, &job).await.map_err(Unshown::Unknown)?;
        if demand.claimId.is_zero() {
            let initial = self.context.ports.chain.initial_state(lane.job, lane.stage).await? == demand.list;
            return Ok(if initial { shard.initial_state.to_vec() } else { shard.constants.to_vec() });
        }
        let state = record.state_after(demand.interval).and_then(|cid| cid.parse().ok());
        let state = state.ok_or_else(|| unknown("the state is not on disk any more"))?;
        let types = || shard.program.state.iter().map(|slot| &slot.ty);
        let store = self.context.ports.store.of(Owner::Nobody);
        let bytes = store.get(&state, &[], files::file_len(types())).await?;
        Ok(files::split(&bytes, types())?)
    }
}
