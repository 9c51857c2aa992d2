//! Real nodes over real sockets on the loopback interface.

mod access;
mod common;
mod crowd;
mod discovery;
mod gossip;
mod hostile;
mod messages;
mod relays;
mod security;
