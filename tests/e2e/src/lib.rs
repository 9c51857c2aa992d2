//! Villains for the end-to-end tests and the demo: honest code over a corrupted port.

pub mod corrupted;
pub mod forked;
pub mod mute;
pub mod tongue;
