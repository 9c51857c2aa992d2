//! `tensorlink`: command line, HTTP API and terminal interface of a node.

fn main() {}
