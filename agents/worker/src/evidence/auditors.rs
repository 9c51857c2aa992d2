//! Who audits the auditors: whoever made a claim knows what its drawn auditors must answer, tells them nothing before
//! they have, and accuses those that answer something else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorlink_model::CacheEngine;
use tensorlink_node::ports::chain::Parameters;
use tensorlink_node::ports::{AuditMove, Call, ChainError, Event, EventAt};
use tensorlink_node::wire::rpc::Request;
use tensorlink_proof::commit::is_receipt;
use tensorlink_proof::sortition::Quarters;
use tensorlink_types::abi::{AuditAnswer, AuditedClaim, Claim, StepStatement};
use tensorlink_types::{Address, Bytes, ClaimId, Lane};
use thiserror::Error;

use super::error::AuditError;
use super::own_claims::{OwnClaims, reason};
use super::repeatable::Repeatable;
use super::replays::Replays;
use crate::context::{BACK_OFF, Context};
use crate::record::Interval;
use crate::serving::Serving;
use crate::state::{Jobs, Lanes};

/// Attempts at an accusation or a penalty while the chain fails us: some hours.
const ATTEMPTS: u32 = 4_000;

/// Why an auditor is not accused.
#[derive(Debug, Error)]
enum Unaccused {
    #[error("{0}")]
    Unknown(String),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// What we know of the auditors of our claims.
pub(crate) struct Auditors<E> {
    context: Arc<Context<E>>,
    lanes: Arc<Lanes>,
    jobs: Arc<Jobs>,
    serving: Arc<Serving<E>>,
    claims: Arc<OwnClaims<E>>,
    replays: Arc<Replays<E>>,
    /// Of the deployment.
    parameters: Parameters,
    /// Auditors that we have accused, by claim: they are penalised once it stands for good.
    accused: Mutex<HashMap<(ClaimId, Address), Claim>>,
    /// When our epochs were redeemed, which fixes their receipts.
    redeemed: Mutex<HashMap<(Lane, u32), u64>>,
}

impl<E> Auditors<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    pub(crate) fn new(
        context: Arc<Context<E>>,
        parameters: Parameters,
        lanes: Arc<Lanes>,
        jobs: Arc<Jobs>,
        serving: Arc<Serving<E>>,
        claims: Arc<OwnClaims<E>>,
        replays: Arc<Replays<E>>,
    ) -> Self {
        let (accused, redeemed) = (Mutex::default(), Mutex::default());
        Self { context, lanes, jobs, serving, claims, replays, parameters, accused, redeemed }
    }

    fn accused(&self) -> MutexGuard<'_, HashMap<(ClaimId, Address), Claim>> {
        self.accused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn redeemed(&self) -> MutexGuard<'_, HashMap<(Lane, u32), u64>> {
        self.redeemed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a confirmed event: whom we have accused, and which epochs of ours are redeemed.
    pub(crate) fn apply(&self, at: &EventAt) {
        match &at.event {
            Event::AuditorAccused { claim, auditor, statement, .. }
                if statement.auditor == self.context.ports.identity.address() =>
            {
                if let Some((made, _)) = self.lanes.find(*claim, &self.context.ports.contracts) {
                    self.accused().insert((*claim, *auditor), made.claim);
                }
            }
            Event::VoucherRedeemed { lane, epoch, .. } if self.lanes.contains(*lane) => {
                self.redeemed().insert((*lane, *epoch), at.timestamp);
            }
            // Nothing of it is drawn for any more.
            Event::JobSettled { job, .. } => self.redeemed().retain(|(lane, _), _| lane.job != *job),
            _ => {}
        }
    }

    /// Whether a question's answer would save an auditor its work, while it can still commit to it.
    /// The job's user, who pays for the auditors, is told at once.
    pub(crate) async fn is_withheld(&self, peer: Address, claim: &Repeatable, question: &Request) -> bool {
        let user = self.context.roster.members(claim.interval.claim.lane().job).map(|members| members.user);
        if self.parameters.audits_per_claim_bps == 0
            || matches!(question, Request::Interval(_) | Request::SentLogs(_))
            || user == Some(peer)
        {
            return false;
        }
        // A receipt whose epoch is not redeemed yet will be drawn for.
        let Some(quarters) = self.quarters_of(claim) else { return true };
        match self.context.ports.chain.head().await {
            Ok(head) => head.timestamp < quarters.end(1),
            // Whoever asks comes again.
            Err(_) => true,
        }
    }

    /// Of a claim that is fixed: on record, or a receipt of an epoch that was redeemed.
    fn quarters_of(&self, claim: &Repeatable) -> Option<Quarters> {
        let (said, lane) = (&claim.interval.claim, claim.interval.claim.lane());
        let fixed_at = if is_receipt(said) {
            let epoch = self.serving.epoch_of(lane, claim.id)?;
            *self.redeemed().get(&(lane, epoch))?
        } else {
            claim.interval.committed_at?
        };
        let window = self.jobs.get(lane.job)?.window;
        Some(Quarters { fixed_at, window, clock: self.parameters.dispute_clock })
    }

    /// Compares an auditor's answer about a claim of ours with our own; accuses it if it is another.
    pub(crate) async fn check_answer(self: Arc<Self>, claim: ClaimId, auditor: Address, answer: AuditAnswer) {
        for _ in 0..ATTEMPTS {
            match self.try_check(claim, auditor, &answer).await {
                Ok(()) | Err(Unaccused::Unknown(_)) => return,
                Err(Unaccused::Chain(error @ ChainError::Reverted { .. })) => {
                    tracing::warn!(%auditor, %error, "an auditor cannot be accused");
                    return;
                }
                Err(error) => tracing::warn!(%auditor, %error, "an auditor's answer is not checked yet"),
            }
            self.context.ports.clock.sleep(BACK_OFF).await;
        }
    }

    async fn try_check(&self, id: ClaimId, auditor: Address, answer: &AuditAnswer) -> Result<(), Unaccused> {
        let ports = &self.context.ports;
        let claim = self.claims.repeatable(id).await.map_err(|declined| Unaccused::Unknown(reason(declined)))?;
        // Over receipts nobody is accused.
        let Some(audited) = on_record(&claim.interval) else { return Ok(()) };
        let Some(quarters) = self.quarters_of(&claim) else { return Ok(()) };
        if ports.chain.head().await?.timestamp >= quarters.end(3) {
            return Ok(());
        }
        // A reorganisation could still change the job's key under what we sign (rule P-15).
        if !claim.interval.confirmed {
            return Err(AuditError::Unconfirmed.into());
        }
        let own = self.replays.own_answer(&claim).await?;
        let (lane, interval) = (claim.interval.claim.lane(), claim.interval.claim.interval);
        if own == *answer {
            tracing::debug!(%lane, interval, %auditor, "an auditor answers what was claimed");
            return Ok(());
        }
        let statement = StepStatement {
            claimId: id.0,
            auditor: ports.identity.address(),
            step: own.step,
            preState: own.preState,
            postState: claim.interval.claim.newState,
            trace: own.trace,
        };
        let signature = ports.identity.sign(ports.contracts.statement(&statement)).map_err(AuditError::from)?;
        let step = AuditMove::Accuse { audited, auditor, statement, signature: Bytes::from(signature) };
        let call = Call::Audit(Box::new(step));
        ports.chain.simulate(&call).await?;
        let gas = ports.chain.send(call).await?.gas;
        tracing::warn!(%lane, interval, %auditor, gas, "an auditor that answered something else is accused");
        Ok(())
    }

    /// Claims of a lane are final, up to `to`: those that we accused over them, with the claims, are to be penalised.
    pub(crate) fn take_accused(&self, lane: Lane, to: u32) -> Vec<(Address, Claim)> {
        let due = |claim: &Claim| claim.lane() == lane && claim.interval < to;
        self.accused().extract_if(|_, claim| due(claim)).map(|((_, auditor), claim)| (auditor, claim)).collect()
    }

    /// Penalises an auditor that we accused over a claim that is final.
    pub(crate) async fn penalise(self: Arc<Self>, auditor: Address, claim: Claim) {
        let call = Call::Audit(Box::new(AuditMove::Penalise { claim, auditor }));
        for _ in 0..ATTEMPTS {
            let done = match self.context.ports.chain.simulate(&call).await {
                Ok(_) => self.context.ports.send_within_budget(call.clone()).await.map(|_| ()),
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => return tracing::info!(%auditor, "an auditor that we accused is penalised"),
                // Somebody was faster, or the claim is void.
                Err(ChainError::Reverted { .. }) => return,
                Err(error) => tracing::warn!(%auditor, %error, "an auditor is not penalised yet"),
            }
            self.context.ports.clock.sleep(BACK_OFF).await;
        }
    }
}

/// A claim on record, as the chain draws for it.
fn on_record(interval: &Interval) -> Option<AuditedClaim> {
    let claim = interval.claim.clone();
    let fixed_at = interval.committed_at.filter(|_| !is_receipt(&claim))?;
    Some(AuditedClaim { claim, fixedAt: fixed_at, ..AuditedClaim::default() })
}
