//! See `tensorlink_fuzz::models::weights`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::models::weights(data));
