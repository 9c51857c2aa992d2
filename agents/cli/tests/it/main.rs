//! The program as its users meet it: the gateway over HTTP, commands as processes, what is written for others to read.

mod bench;
mod contract;
mod gateway;
mod keys;
mod names;
mod native;
mod pipes;
mod remote;
#[path = "../../../node/tests/support/mod.rs"]
mod support;
mod transformers;
