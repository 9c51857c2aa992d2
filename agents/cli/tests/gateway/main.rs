//! The gateway over real connections, to models made up for the tests.

mod access;
mod api;
mod exact;
mod input;
mod life;
mod limits;
mod local;
mod openai;
mod support;
