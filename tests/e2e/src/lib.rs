//! Villains for the end-to-end tests and the demo: honest code over a corrupted port.

pub mod auditing;
pub mod corrupted;
pub mod crooked;
pub mod forked;
pub mod mute;
pub mod tongue;
