//! Writes the vectors that lie beside this crate.

fn main() {}
