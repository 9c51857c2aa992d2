//! A proof that convicts a worker goes to the chain, and whoever copied its lie is penalised.

use tensorlink_node::Ports;
use tensorlink_node::ports::{AuditMove, Call, ChainError};
use tensorlink_proof::fraud::ElementProof;
use tensorlink_proof::sortition::answer_of;
use tensorlink_types::{Address, ClaimId};

use crate::answers::Answers;
use crate::ask::transact;

/// Tries the proof locally, then sends it. Returns the gas used.
///
/// # Errors
/// The contract's refusal, or the chain's failure.
pub(crate) async fn convict(ports: &Ports, answers: &Answers, call: Box<Call>) -> Result<u64, ChainError> {
    let estimate = ports.chain.simulate(&call).await?;
    tracing::info!(estimate, "the proof holds in a local execution of the contracts");
    let gas = ports.chain.send((*call).clone()).await?.gas;
    if let Call::Prove(proof) = *call {
        penalise_copies(ports, answers, &proof).await;
    }
    Ok(gas)
}

/// Penalises who answered just what a proof has shown to be wrong: it copied the liar. What the day's budget for
/// gas holds back is sent later; nobody waits for it.
async fn penalise_copies(ports: &Ports, answers: &Answers, proof: &ElementProof) {
    let wrong = answer_of(&proof.statement);
    for auditor in answers.who_answered(ClaimId(proof.statement.claimId), &wrong) {
        let call = Call::Audit(Box::new(AuditMove::PenaliseCopy { proof: Box::new(proof.clone()), auditor }));
        match transact(ports, call.clone()).await {
            Err(ChainError::OverBudget { .. }) => {
                let ports = ports.clone();
                tokio::spawn(async move {
                    penalised(auditor, ports.send_within_budget(call).await.map(|receipt| receipt.gas));
                });
            }
            done => penalised(auditor, done),
        }
    }
}

fn penalised(auditor: Address, done: Result<u64, ChainError>) {
    match done {
        Ok(gas) => tracing::warn!(%auditor, gas, "an auditor that copied a lie is penalised"),
        Err(error) => tracing::warn!(%auditor, %error, "an auditor that copied a lie is not penalised"),
    }
}
