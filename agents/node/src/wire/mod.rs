//! Messages between roles, all versioned by the protocol's name, all bounded. `WIRE.md` in `agents/types`
//! describes them.

mod blobs;
pub mod frame;
pub mod gossip;
pub mod manifest;
pub mod packing;
pub mod rpc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tensorlink_model::Plan;
use tensorlink_model::plan::OlderPlan;
use thiserror::Error;

/// Bytes that are not the message they should be.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("malformed {what}: {reason}")]
pub struct Malformed {
    /// What was expected.
    pub what: &'static str,
    /// What is wrong.
    pub reason: String,
}

/// Encodes a message (postcard).
///
/// # Errors
/// [`Malformed`] if the value has no encoding, which no message type of ours causes.
pub fn encode<T: Serialize>(what: &'static str, message: &T) -> Result<bytes::Bytes, Malformed> {
    postcard::to_stdvec(message).map(Into::into).map_err(|e| Malformed { what, reason: e.to_string() })
}

/// Decodes a plan, also one that was published by an older version.
///
/// # Errors
/// [`Malformed`].
pub fn decode_plan(bytes: &[u8]) -> Result<Plan, Malformed> {
    let older = |error| decode::<OlderPlan>("plan", bytes).map(Plan::from).map_err(|_| error);
    decode("plan", bytes).or_else(older)
}

/// Decodes a message; every byte must be used.
///
/// # Errors
/// [`Malformed`] if the bytes are not exactly one message.
pub fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, Malformed> {
    let fail = |reason: String| Malformed { what, reason };
    let (message, rest) = postcard::take_from_bytes(bytes).map_err(|e| fail(e.to_string()))?;
    if rest.is_empty() { Ok(message) } else { Err(fail(format!("{} bytes too many", rest.len()))) }
}
