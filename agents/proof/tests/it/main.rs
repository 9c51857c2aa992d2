//! Commitments and proofs as others use them.

mod audit;
mod bytes;
mod challenge;
mod custody;
mod fraud;
mod largest;
mod merkle;
mod receipts;
mod scenario;
mod texts;
