//! The store as its callers see it: peers over a net in memory, and a real IPFS daemon.

mod budget;
mod daemon;
mod hostile;
mod kubo;
mod memory_net;
mod owners;
mod peers;
mod support;
