//! See `tensorlink_fuzz::wire::native`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::wire::native(data));
