//! Against a worker that accuses an auditor, us or another, of what is right: its own signed word convicts it.

use tensorlink_node::Ports;
use tensorlink_node::ports::Call;
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_program::engine::Engine;
use tensorlink_proof::fraud::Signed;
use tensorlink_proof::sortition::answer_of;
use tensorlink_types::abi::{ContradictionProof, StepStatement};
use tensorlink_types::{Address, Bytes};

use crate::ask::{ask, transact};
use crate::challenge::{Cause, ChallengeEnd, Challenges};
use crate::finding::{AuditError, Failed, Gap, fatal};
use crate::target::{Standing, Target};

/// Convicts accusers.
pub(crate) struct Defence<'a, E> {
    ports: &'a Ports,
    challenges: Challenges<'a, E>,
}

impl<'a, E> Defence<'a, E>
where
    E: Engine + Send + 'static,
{
    /// By challenges, where their own word is not enough.
    pub(crate) const fn new(ports: &'a Ports, challenges: Challenges<'a, E>) -> Self {
        Self { ports, challenges }
    }

    /// Convicts the worker of the statement that it accuses by: by what it says about that step when asked by us, or
    /// when made to say it on chain.
    ///
    /// # Errors
    /// [`AuditError`]: something on our side; try again.
    pub(crate) async fn defend(&self, target: &Target, accusation: &Signed) -> Result<ChallengeEnd, AuditError> {
        match self.try_defend(target, accusation).await {
            Ok(ended) => Ok(ended),
            Err(Failed::Gap(gap)) => Ok(ChallengeEnd::Lost(gap.to_string())),
            Err(Failed::Audit(error)) => Err(error),
        }
    }

    async fn try_defend(&self, target: &Target, accusation: &Signed) -> Result<ChallengeEnd, Failed> {
        let (worker, _) = self.ports.chain.assignment(target.claim.lane()).await.map_err(fatal)?;
        match self.other_word(target, worker, accusation).await {
            Ok(Some(call)) => match transact(self.ports, call).await {
                Ok(_) => return Ok(ChallengeEnd::Convicted("it has signed two outcomes of one step".to_owned())),
                // What it says to us is not signed as it should be.
                Err(error) => tracing::warn!(claim = %target.id, %error, "its word against its word is not taken"),
            },
            Ok(None) => tracing::warn!(claim = %target.id, "the worker stands by what it accuses us with"),
            Err(gap) => tracing::warn!(claim = %target.id, %gap, "the worker does not answer whom it accuses"),
        }
        self.challenges.play(target, Cause { may_open: true, accusation: Some(accusation) }).await
    }

    /// What convicts a worker that says to us what it does not say where it accuses us.
    async fn other_word(&self, target: &Target, worker: Address, accusation: &Signed) -> Result<Option<Call>, Gap> {
        let Standing::Committed { at } = target.standing else { return Ok(None) };
        let Response::Statements(signed) = ask(self.ports, worker, &Request::Statements(target.id)).await? else {
            return Err(Gap::OffTopic);
        };
        let differs = |said: &StepStatement| {
            said.step == accusation.statement.step && answer_of(said) != answer_of(&accusation.statement)
        };
        let Some((first, signature)) = signed.into_iter().find(|(said, _)| differs(said)) else { return Ok(None) };
        Ok(Some(Call::ProveContradiction(Box::new(ContradictionProof {
            claim: target.claim.clone(),
            committedAt: at,
            first,
            firstSignature: Bytes::from(signature),
            second: accusation.statement.clone(),
            secondSignature: accusation.signature.clone(),
        }))))
    }
}
