//! A proof that convicts a worker goes to the chain, and whoever copied its lie is penalised.

use tensorlink_node::ports::{AuditMove, Call, ChainError};
use tensorlink_program::engine::Engine;
use tensorlink_proof::fraud::ElementProof;
use tensorlink_proof::sortition::answer_of;
use tensorlink_types::{Address, ClaimId};

use crate::auditor::Auditor;

/// Tries the proof locally, then sends it. Returns the gas used.
///
/// # Errors
/// The contract's refusal, or the chain's failure.
pub async fn convict<E: Engine + Send + 'static>(auditor: &Auditor<E>, call: Box<Call>) -> Result<u64, ChainError> {
    let estimate = auditor.ports.chain.simulate(&call).await?;
    tracing::info!(estimate, "the proof holds in a local execution of the contracts");
    let gas = auditor.ports.chain.send((*call).clone()).await?.gas;
    if let Call::Prove(proof) = *call {
        auditor.penalise_copies(&proof).await;
    }
    Ok(gas)
}

impl<E> Auditor<E>
where
    E: Engine + Send + 'static,
{
    /// Penalises who answered just what a proof has shown to be wrong: it copied the liar. What the day's budget for
    /// gas holds back is sent later; nobody waits for it.
    async fn penalise_copies(&self, proof: &ElementProof) {
        let wrong = answer_of(&proof.statement);
        for auditor in self.answers.who_answered(ClaimId(proof.statement.claimId), &wrong) {
            let call = Call::Audit(Box::new(AuditMove::PenaliseCopy { proof: Box::new(proof.clone()), auditor }));
            match self.transact(call.clone()).await {
                Err(ChainError::OverBudget { .. }) => {
                    let ports = self.ports.clone();
                    tokio::spawn(async move {
                        penalised(auditor, ports.send_within_budget(call).await.map(|receipt| receipt.gas));
                    });
                }
                done => penalised(auditor, done),
            }
        }
    }
}

fn penalised(auditor: Address, done: Result<u64, ChainError>) {
    match done {
        Ok(gas) => tracing::warn!(%auditor, gas, "an auditor that copied a lie is penalised"),
        Err(error) => tracing::warn!(%auditor, %error, "an auditor that copied a lie is not penalised"),
    }
}
