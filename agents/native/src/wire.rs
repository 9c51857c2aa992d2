//! Questions and answers of [`Protocol::Native`](tensorlink_node::ports::Protocol::Native).
//!
//! There is one question: an interval. It may be asked again and again: the worker begins with it when it is idle, and
//! answers from then on how far it is. So neither a lost answer nor an interval that takes hours needs a connection
//! that holds.

use cid::Cid;
use serde::{Deserialize, Serialize};

use crate::class::{DeviceClass, Precision};

/// Most steps of an interval. Tolerances were measured up to here: floats drift apart step by step.
pub const MAX_STEPS: u32 = 16;

/// Steps of a task from a state on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// The task's file.
    #[serde(with = "as_bytes")]
    pub task: Cid,
    /// The file of the state before.
    #[serde(with = "as_bytes")]
    pub state: Cid,
    /// First step, absolute.
    pub first: u32,
    /// How many, 1 to [`MAX_STEPS`].
    pub steps: u32,
    /// In which precision.
    pub precision: Precision,
}

/// A worker's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// It is at it: ask again.
    Working,
    /// It is at another's interval: ask again, or another worker.
    Busy,
    /// It has done it.
    Done(Done),
    /// It cannot; the reason is for people.
    Declined(String),
}

/// What an interval came to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// The file of the state after, which the worker gives.
    #[serde(with = "as_bytes")]
    pub state: Cid,
    /// Mean cross entropy of each step's rows, in nats.
    pub losses: Vec<f64>,
    /// What the worker says it computed by.
    pub class: DeviceClass,
}

/// CIDs in messages: as bytes.
mod as_bytes {
    use cid::Cid;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(cid: &Cid, serializer: S) -> Result<S::Ok, S::Error> {
        cid.to_bytes().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cid, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        Cid::try_from(bytes.as_slice()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tensorlink_node::wire::{decode, encode};

    use super::*;
    use crate::Task;

    proptest! {
        /// Whatever a peer sends is a message or an error.
        #[test]
        fn bytes_of_any_kind(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(interval) = decode::<Interval>("interval", &bytes) {
                let written = encode("interval", &interval).unwrap();
                prop_assert_eq!(decode::<Interval>("interval", &written).unwrap(), interval);
            }
            if let Ok(answer) = decode::<Answer>("answer", &bytes) {
                prop_assert!(encode("answer", &answer).unwrap().len() <= bytes.len());
            }
            if let Ok(task) = Task::from_bytes(&bytes) {
                prop_assert!(task.graph.nodes().all(|(id, node)| node.inputs.iter().all(|input| *input < id)));
            }
        }
    }
}
