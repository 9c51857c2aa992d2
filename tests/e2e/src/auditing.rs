//! Who cheats about audits: a validator that looks at nothing, and a worker that accuses those who did.

use tensorlink_node::ports::chain::{Event, EventAt};
use tensorlink_node::ports::{AuditMove, Call, ChainError, Ports};
use tensorlink_proof::sortition::sealed_answer;
use tensorlink_types::abi::AuditAnswer;
use tensorlink_types::{B256, Bytes};

use crate::crooked::Twist;

/// What stands for a trace that nobody computed.
const MADE_UP: B256 = B256::repeat_byte(0x13);

/// Answers whatever comes to its mind.
pub struct Lazy(pub Ports);

impl Lazy {
    fn answer(step: u32) -> AuditAnswer {
        AuditAnswer { step, preState: MADE_UP, trace: MADE_UP }
    }
}

impl Twist for Lazy {
    fn said(&self, mut call: Call) -> Result<Call, ChainError> {
        let Call::Audit(step) = &mut call else { return Ok(call) };
        match &mut **step {
            AuditMove::Commit { audited, sealed } => {
                let claim = self.0.contracts.claim_id(&audited.claim);
                // Its numbers are as good as any.
                *sealed = sealed_answer(claim, &Self::answer(0), self.0.identity.address(), B256::ZERO);
            }
            AuditMove::Reveal { answer, salt, .. } => (*answer, *salt) = (Self::answer(0), B256::ZERO),
            _ => {}
        }
        Ok(call)
    }
}

/// Finds that every auditor is wrong, and signs something to show it.
pub struct Framer(pub Ports);

impl Twist for Framer {
    fn heard(&self, mut at: EventAt) -> EventAt {
        if let Event::AuditRevealed { answer, .. } = &mut at.event {
            answer.trace = MADE_UP;
        }
        at
    }

    fn said(&self, mut call: Call) -> Result<Call, ChainError> {
        let Call::Audit(step) = &mut call else { return Ok(call) };
        if let AuditMove::Accuse { statement, signature, .. } = &mut **step {
            statement.trace = MADE_UP;
            let digest = self.0.contracts.statement(statement);
            let signed = self.0.identity.sign(digest).map_err(|error| ChainError::Unavailable(error.to_string()))?;
            *signature = Bytes::from(signed);
        }
        Ok(call)
    }
}
