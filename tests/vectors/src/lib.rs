//! Test vectors: one JSON case per rule id, written here and read by Rust and by forge.
