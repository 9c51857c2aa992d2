//! Why a node does not start. What happens to messages later is the port's [`tensorlink_node::ports::NetError`].

use libp2p::Multiaddr;
use thiserror::Error;

/// Why a node does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The transports cannot be set up on this machine.
    #[error("the network stack cannot start: {0}")]
    Transport(String),
    /// An address cannot be listened on: choose another, or stop what holds it.
    #[error("cannot listen on {address}: {reason}; stop what listens there, or choose another address by --listen")]
    Listen {
        /// The address.
        address: Multiaddr,
        /// What the system said.
        reason: String,
    },
    /// Nothing to listen on was given.
    #[error("no address to listen on: give at least one, such as /ip4/0.0.0.0/tcp/4001")]
    NoListener,
}
