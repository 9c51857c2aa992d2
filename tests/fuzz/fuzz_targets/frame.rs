//! See `tensorlink_fuzz::wire::frame`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::wire::frame(data));
