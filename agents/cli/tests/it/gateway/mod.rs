//! The gateway over real connections, to models made up for the tests.

mod access;
mod api;
mod batch;
mod browsers;
mod chat;
mod classify;
#[cfg(unix)]
mod command;
mod completions;
mod decoder;
mod exact;
mod input;
mod life;
mod limits;
mod local;
mod openai;
mod receipts;
mod rerank;
mod speaker;
mod streams;
mod support;
