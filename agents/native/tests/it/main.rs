//! Native mode between a user and workers.

mod driver;
mod peers;
#[path = "../../../node/tests/support/mod.rs"]
mod ports;
mod support;
