//! What the roles share, over doubles of the ports.

mod budget;
mod custody;
mod forgetting;
mod games;
mod history;
mod link;
mod observed;
mod pipeline;
mod serving;
mod shard;
#[path = "../support/mod.rs"]
mod support;
