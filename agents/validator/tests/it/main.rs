//! The validator's role over doubles of the ports.

mod audit;
mod challenges;
#[path = "../../../../tests/e2e/src/corrupted.rs"]
#[allow(unreachable_pub, reason = "the module is public where it is at home")]
mod corrupted;
mod drawn;
mod receipts;
#[path = "../../../node/tests/support/mod.rs"]
mod support;
mod world;
