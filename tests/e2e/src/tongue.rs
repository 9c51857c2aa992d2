//! A chain over which a worker answers challenges badly, or demands.

use serde::Deserialize;
use tensorlink_node::ports::{Call, ChainError, CustodyMove};
use tensorlink_proof::challenge::{Move, Subject};

use crate::crooked::Twist;
use crate::inconsistent::Inconsistency;

/// How it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tongue {
    /// Everything but the last question: what the wrong output holds.
    SilentAtLast,
    /// With nodes that are none.
    Junk,
    /// With roots that do not fit each other, its claim or its program.
    Inconsistent(Inconsistency),
    /// Shows nothing that is demanded.
    Withholding,
}

impl Twist for Tongue {
    fn said(&self, mut call: Call) -> Result<Call, ChainError> {
        if let (Self::Withholding, Call::Custody(step)) = (*self, &call)
            && matches!(**step, CustodyMove::Deliver { .. } | CustodyMove::DeliverSent { .. })
        {
            return Err(silent());
        }
        let Call::Challenge { step, .. } = &mut call else { return Ok(call) };
        match (*self, &mut **step) {
            (Self::SilentAtLast, Move::AnswerOutput { .. }) => return Err(silent()),
            (Self::SilentAtLast, Move::Answer { position, .. }) if Subject::of(position) == Some(Subject::Output) => {
                return Err(silent());
            }
            (Self::Junk, Move::AnswerSteps { data, .. } | Move::AnswerStatement { data, .. }) => {
                *data = vec![0x5a; data.len()].into();
            }
            (Self::Inconsistent(how), step) => how.twist(step),
            _ => {}
        }
        Ok(call)
    }
}

fn silent() -> ChainError {
    ChainError::Reverted { name: "Silent".to_owned(), arguments: "()".to_owned() }
}
