//! See `tensorlink_fuzz::models::table`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::models::table(data));
