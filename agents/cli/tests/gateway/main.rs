//! The gateway over real connections, to models made up for the tests.

mod access;
mod api;
#[cfg(unix)]
mod command;
mod exact;
mod input;
mod life;
mod limits;
mod local;
mod openai;
mod receipts;
mod support;
