//! Integration tests, one binary.

mod agreement;
mod beacon;
mod cheating;
mod money;
mod parameters;
mod validating;
