//! Villains for the end-to-end tests and the demo: honest code over a corrupted port.

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
