//! The ports of one node, as its roles get them.

use std::sync::Arc;

use tensorlink_proof::commit::Contracts;
use tokio::sync::Mutex;

use super::{Chain, Clock, Net, Store};
use crate::{Identity, Journal};

/// The world of a node: every port, and what goes with them.
#[derive(Clone)]
pub struct Ports {
    /// The node's key.
    pub identity: Identity,
    /// The contracts.
    pub chain: Arc<dyn Chain>,
    /// Peers.
    pub net: Arc<dyn Net>,
    /// Files.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Domains of signatures.
    pub contracts: Contracts,
    /// Records.
    pub journal: Journal,
    /// Held while a file is stored and the record written that names it, and while an owner lets go of one: equal files
    /// of one owner are one file.
    pub pins: Arc<Mutex<()>>,
}
