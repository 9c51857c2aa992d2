//! Integration tests, one binary.

mod agreement;
mod cheating;
mod money;
mod parameters;
mod validating;
