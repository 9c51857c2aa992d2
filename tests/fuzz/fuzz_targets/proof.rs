//! See `tensorlink_fuzz::proofs::proof`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::proofs::proof(data));
