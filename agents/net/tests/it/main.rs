//! Real nodes over real sockets on the loopback interface.

mod access;
mod common;
mod discovery;
mod gossip;
mod hostile;
mod messages;
mod security;
