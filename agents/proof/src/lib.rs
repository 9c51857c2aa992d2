//! Commitments to tensors, programs, states, steps and claims; dissection and the dispute state machine. Pure.
