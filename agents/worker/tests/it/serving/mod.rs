//! Serving lanes: texts and receipts, vouchers and epochs, life and death of a worker.

mod audit;
mod book;
mod decoder;
mod lane;
mod life;
mod thread;
pub(crate) mod world;
