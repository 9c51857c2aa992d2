//! Commitments and proofs as others use them.

mod audit;
mod challenge;
mod fraud;
mod merkle;
mod receipts;
mod scenario;
mod texts;
