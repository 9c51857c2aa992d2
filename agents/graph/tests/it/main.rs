//! Integration tests, one binary.

mod digits;
mod gradient;
mod support;
