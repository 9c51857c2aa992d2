//! Integration tests, one binary.

mod check;
mod conformance;
mod digits;
mod executor;
mod gradient;
mod networks;
mod support;
