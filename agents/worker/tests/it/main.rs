//! The worker's role over doubles of the ports.

mod answers;
mod bench;
mod bounded;
mod claims;
mod damage;
mod disk;
mod fixtures;
mod lanes;
mod quote;
mod replicas;
mod serving;
#[path = "../../../node/tests/support/mod.rs"]
mod support;
