//! `AlloyChain` against a real anvil, and the compiled verifier against the reference.

mod clock;
mod congestion;
mod endpoint;
mod events;
mod failover;
mod hostile;
mod proxy;
mod sending;
mod serving;
mod simulation;
mod verifier;
mod world;
