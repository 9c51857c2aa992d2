//! See `tensorlink_fuzz::wire::gossip`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::wire::gossip(data));
