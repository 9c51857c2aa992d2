//! Villains for the end-to-end tests and the demo: honest code over a corrupted port.
//!
//! | port | villains |
//! |---|---|
//! | engine | [`corrupted`]: one kind of operator is computed wrongly |
//! | net | [`forked`], [`hearsay`], [`forger`], [`cooked`]: other tensors are sent, heard, or shown to auditors |
//! | net | [`hush`], [`mute`]: attestations are kept back, or some get no answer |
//! | chain | [`crooked`], [`copier`]: something else is said or heard; what others revealed is revealed again |
//! | chain | [`inconsistent`], [`tongue`]: challenges and demands are answered badly |
//! | chain, store | [`posting`]: a user posts what its own checks would not let through |
//! | several | [`auditing`]: who cheats about audits; [`pressed`]: a store that takes files in a way of its own |

pub mod auditing;
pub mod cooked;
pub mod copier;
pub mod corrupted;
pub mod crooked;
pub mod forger;
pub mod forked;
pub mod hearsay;
pub mod hush;
pub mod inconsistent;
pub mod mute;
pub mod posting;
#[path = "../../../agents/node/tests/support/pressed.rs"]
pub mod pressed;
pub mod tongue;
