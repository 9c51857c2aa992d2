//! A chain over which a replica reveals what another has revealed, in place of what it sealed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tensorlink_node::ports::chain::{Event, EventAt};
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_types::abi::Claim;

use crate::crooked::Twist;

/// What others have revealed, by interval.
#[derive(Default)]
pub struct Copier(Mutex<BTreeMap<u32, Claim>>);

impl Twist for Copier {
    fn heard(&self, at: EventAt) -> EventAt {
        if let Event::ClaimCommitted { claim, .. } = &at.event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(claim.interval, claim.clone());
        }
        at
    }

    fn said(&self, mut call: Call) -> Result<Call, ChainError> {
        let Call::Reveal { claim, .. } = &mut call else { return Ok(call) };
        let others = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(other) = others.get(&claim.interval) else {
            return Err(ChainError::Reverted { name: "NothingToCopy".to_owned(), arguments: "()".to_owned() });
        };
        (claim.newState, claim.io) = (other.newState, other.io);
        drop(others);
        Ok(call)
    }
}
