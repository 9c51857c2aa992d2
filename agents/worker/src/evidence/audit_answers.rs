//! Answers auditors about our claims: data from disk, and signed statements computed anew when asked, so that honest
//! work costs nothing more.

use std::sync::Arc;

use tensorlink_model::CacheEngine;
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_proof::commit::{Boundary, state_root, trace_root};
use tensorlink_types::abi::StepStatement;
use tensorlink_types::{Address, ClaimId, TensorRoot};

use super::auditors::Auditors;
use super::error::AuditError;
use super::own_claims::OwnClaims;
use super::repeatable::Repeatable;
use super::replays::Replays;
use crate::context::Context;

/// What answers auditors.
pub(crate) struct AuditAnswers<E> {
    context: Arc<Context<E>>,
    claims: Arc<OwnClaims<E>>,
    replays: Arc<Replays<E>>,
    auditors: Arc<Auditors<E>>,
}

impl<E> AuditAnswers<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    pub(crate) fn new(
        context: Arc<Context<E>>,
        claims: Arc<OwnClaims<E>>,
        replays: Arc<Replays<E>>,
        auditors: Arc<Auditors<E>>,
    ) -> Self {
        Self { context, claims, replays, auditors }
    }

    /// Answers a question about a claim of ours, if who asks may know it now.
    pub(crate) async fn respond(&self, peer: Address, claim: ClaimId, question: &Request) -> Response {
        match self.claims.repeatable(claim).await {
            // Another replica might ask, to claim the same.
            Ok(claim) if claim.is_hidden() => Response::Declined("the claim is not on chain yet: ask again".into()),
            Ok(claim) if self.auditors.is_withheld(peer, &claim, question).await => {
                Response::Declined("the chain's auditors must answer without it: ask again later".into())
            }
            Ok(claim) => self
                .answer(&claim, (peer, question))
                .await
                .unwrap_or_else(|error| Response::Declined(error.to_string())),
            Err(declined) => declined,
        }
    }

    async fn answer(
        &self,
        claim: &Repeatable,
        (auditor, question): (Address, &Request),
    ) -> Result<Response, AuditError> {
        match *question {
            Request::Interval(_) => claim.record().map(Response::Interval),
            Request::Statements(_) => {
                // A reorganisation could still change the job's key under what we sign (rule P-15).
                if !claim.interval.confirmed {
                    return Err(AuditError::Unconfirmed);
                }
                let roots = self.replays.roots(claim).await?;
                let mut signed = Vec::with_capacity(roots.traces.len());
                let ends = roots.states.iter().zip(roots.states.iter().skip(1));
                for ((step, trace), (before, after)) in (claim.span.first_step..).zip(&roots.traces).zip(ends) {
                    signed.push(self.sign((claim.id, auditor), step, (before, trace, after))?);
                }
                Ok(Response::Statements(signed))
            }
            Request::SentLogs(_) => {
                let roots = self.replays.roots(claim).await?;
                let sent = |boundary| {
                    roots.logs.get(boundary).map(|log| log.items().iter().copied().map(TensorRoot).collect())
                };
                let to_previous = sent(Boundary::ToPrevious).unwrap_or_default();
                Ok(Response::SentLogs { to_previous, to_next: sent(Boundary::ToNext).unwrap_or_default() })
            }
            Request::Trace { step, .. } => {
                let roots = self.replays.roots(claim).await?;
                roots.traces.get(claim.local(step)?).cloned().map(Response::Roots).ok_or(AuditError::NoStep(step))
            }
            Request::State { step, .. } => {
                let roots = self.replays.roots(claim).await?;
                let after = claim.local(step)?.saturating_add(1);
                roots.states.get(after).cloned().map(Response::Roots).ok_or(AuditError::NoStep(step))
            }
            Request::Output { step, operator, from, .. } => {
                Ok(Response::Output(self.replays.piece(claim, (step, operator), from).await?))
            }
            Request::Quote(_)
            | Request::Ready(_)
            | Request::Keep { .. }
            | Request::Mirror { .. }
            | Request::EndState(_)
            | Request::Advance(_)
            | Request::Abandon { .. }
            | Request::Pay { .. }
            | Request::Receipts { .. } => Err(AuditError::OffTopic),
        }
    }

    fn sign(
        &self,
        (claim, auditor): (ClaimId, Address),
        step: u32,
        (before, trace, after): (&[TensorRoot], &[TensorRoot], &[TensorRoot]),
    ) -> Result<(StepStatement, Vec<u8>), AuditError> {
        let statement = StepStatement {
            claimId: claim.0,
            auditor,
            step,
            preState: state_root(before),
            postState: state_root(after),
            trace: trace_root(trace),
        };
        let ports = &self.context.ports;
        let signature = ports.identity.sign(ports.contracts.statement(&statement))?;
        Ok((statement, signature.to_vec()))
    }
}
