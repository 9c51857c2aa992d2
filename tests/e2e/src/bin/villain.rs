//! The honest worker over a corrupted engine. Test-only.

fn main() {}
