//! Who may talk to us. The rule is the role's ([`Gate`]); here is where it is kept, and what holds before there is one.

use std::sync::{Arc, PoisonError, RwLock};

use tensorlink_node::ports::{Gate, Protocol};
use tensorlink_types::Address;

/// The rule before a role sets one: blocks for everybody, nothing else for anybody.
pub(crate) struct Blocks;

impl Gate for Blocks {
    fn allows(&self, _: Address, protocol: Protocol) -> bool {
        protocol == Protocol::Block
    }
}

/// The gate in force; can be replaced while it is asked.
pub(crate) struct SharedGate(RwLock<Arc<dyn Gate>>);

impl SharedGate {
    pub(crate) fn new(gate: Arc<dyn Gate>) -> Self {
        Self(RwLock::new(gate))
    }

    pub(crate) fn set(&self, gate: Arc<dyn Gate>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = gate;
    }

    pub(crate) fn allows(&self, peer: Address, protocol: Protocol) -> bool {
        // Cloned, so that a gate may itself replace the gate.
        let gate = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        gate.allows(peer, protocol)
    }

    pub(crate) fn has_stake(&self, peer: Address) -> Option<bool> {
        let gate = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        gate.has_stake(peer)
    }

    pub(crate) fn may_publish(&self, peer: Address, topic: &str) -> Option<bool> {
        let gate = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        gate.may_publish(peer, topic)
    }
}
