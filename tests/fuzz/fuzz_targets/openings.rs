//! See `tensorlink_fuzz::trees::openings`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::trees::openings(data));
