//! Contract bindings, generated from the compiled contracts.
