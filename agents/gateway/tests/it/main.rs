//! The gateway over real connections: to models made up for the tests, and to the workers of a serving job.

mod access;
mod api;
mod batch;
mod browsers;
mod chat;
mod classify;
mod completions;
mod input;
mod life;
mod limits;
mod local;
mod receipts;
mod remote;
mod rerank;
mod served;
mod speaker;
mod streams;
#[path = "../../../node/tests/support/mod.rs"]
mod support;
