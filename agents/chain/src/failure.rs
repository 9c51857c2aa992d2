//! Why an endpoint gives no answer, and what that is to who asked.

use alloy::rpc::json_rpc::ErrorPayload;
use tensorlink_node::ports::ChainError;

use crate::revert::Revert;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The node understood and refuses.
    Refused(ErrorPayload),
    /// No useful answer, again and again.
    Unavailable(String),
    /// It is another chain.
    Foreign { expected: u64, actual: u64 },
    /// We are shutting down.
    Closed,
}

impl Failure {
    /// The refusal as the revert that it is, if it is one.
    pub(crate) fn revert(&self) -> Option<Revert> {
        let Self::Refused(payload) = self else { return None };
        if let Some(data) = payload.as_revert_data() {
            return Some(Revert::decode(&data));
        }
        // Code 3 is "execution error"; some nodes leave its data out.
        (payload.code == 3).then(|| Revert::decode(&[]))
    }

    /// In words, for a log.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Refused(payload) => format!("it refuses: {payload}"),
            Self::Unavailable(reason) => reason.clone(),
            Self::Foreign { expected, actual } => format!("it is chain {actual}, not {expected}"),
            Self::Closed => "the node is shutting down".into(),
        }
    }
}

impl From<Failure> for ChainError {
    fn from(failure: Failure) -> Self {
        match (failure.revert(), failure) {
            (Some(revert), _) => revert.into(),
            (None, Failure::Refused(payload)) => Self::Unavailable(format!("it refuses: {payload}")),
            (None, Failure::Unavailable(reason)) => Self::Unavailable(reason),
            (None, Failure::Foreign { expected, actual }) => Self::WrongChain { expected, actual },
            (None, Failure::Closed) => Self::Closed,
        }
    }
}
