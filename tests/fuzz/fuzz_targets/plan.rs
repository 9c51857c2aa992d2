//! See `tensorlink_fuzz::models::plan`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::models::plan(data));
