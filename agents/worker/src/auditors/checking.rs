//! What auditors answer about our claims is withheld from them before, and checked afterwards.

use std::sync::Arc;

use tensorlink_model::CacheEngine;
use tensorlink_node::ports::{AuditMove, Call, ChainError};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_proof::commit::is_receipt;
use tensorlink_proof::sortition::Quarters;
use tensorlink_types::abi::{AuditAnswer, AuditedClaim, Claim, StepStatement};
use tensorlink_types::{Address, Bytes, ClaimId, JobId, Lane};
use thiserror::Error;

use crate::audit_answers::{AuditError, Repeatable};
use crate::record::Interval;
use crate::role::{BACK_OFF, Worker};

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

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
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
            let epoch = self.book_of(lane)?.epoch_of(claim.id)?;
            *self.accused.redeemed().get(&(lane, epoch))?
        } else {
            claim.interval.committed_at?
        };
        let window = self.posted().get(&lane.job)?.window;
        Some(Quarters { fixed_at, window, clock: self.parameters.dispute_clock })
    }

    /// An epoch of ours is redeemed.
    pub(crate) fn epoch_redeemed(&self, lane: Lane, epoch: u32, at: u64) {
        self.accused.redeemed().insert((lane, epoch), at);
    }

    /// Compares an auditor's answer about a claim of ours with our own; accuses it if it is another.
    pub(crate) async fn check_answer(self: Arc<Self>, claim: ClaimId, auditor: Address, answer: AuditAnswer) {
        let checking = async {
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
        };
        self.shutdown.run_until_cancelled(checking).await;
    }

    async fn try_check(&self, id: ClaimId, auditor: Address, answer: &AuditAnswer) -> Result<(), Unaccused> {
        let ports = &self.context.ports;
        let unknown = |response| match response {
            Response::Declined(reason) => Unaccused::Unknown(reason),
            _ => Unaccused::Unknown("no claim of this worker".to_owned()),
        };
        let claim = self.repeatable(id).await.map_err(unknown)?;
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
        let own = claim.own_answer(&self.context, &self.replays).await?;
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

    /// An accusation of ours is on chain.
    pub(crate) fn remember_accused(&self, claim: ClaimId, auditor: Address) {
        let contracts = &self.context.ports.contracts;
        let found = self.lanes().values().find_map(|running| {
            let intervals = running.log.get().intervals.into_values();
            intervals.map(|interval| interval.claim).find(|made| contracts.claim_id(made) == claim)
        });
        if let Some(made) = found {
            self.accused.all().insert((claim, auditor), made);
        }
    }

    /// Claims of a lane are final, up to `to`: those that we accused over them are penalised.
    pub(crate) fn penalise_accused(self: Arc<Self>, lane: Lane, to: u32) {
        let due = |claim: &Claim| claim.lane() == lane && claim.interval < to;
        let due: Vec<_> = self.accused.all().extract_if(|_, claim| due(claim)).collect();
        for ((_, auditor), claim) in due {
            self.tasks.spawn(self.clone().penalise(auditor, claim));
        }
    }

    /// A job is settled: nothing of it is drawn for any more.
    pub(crate) fn forget_epochs(&self, job: JobId) {
        self.accused.redeemed().retain(|(lane, _), _| lane.job != job);
    }

    async fn penalise(self: Arc<Self>, auditor: Address, claim: Claim) {
        let call = Call::Audit(Box::new(AuditMove::Penalise { claim, auditor }));
        let penalising = async {
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
        };
        self.shutdown.run_until_cancelled(penalising).await;
    }
}

/// A claim on record, as the chain draws for it.
fn on_record(interval: &Interval) -> Option<AuditedClaim> {
    let claim = interval.claim.clone();
    let fixed_at = interval.committed_at.filter(|_| !is_receipt(&claim))?;
    Some(AuditedClaim { claim, fixedAt: fixed_at, ..AuditedClaim::default() })
}
