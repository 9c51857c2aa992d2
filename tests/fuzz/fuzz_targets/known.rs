//! See `tensorlink_fuzz::trees::known`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::trees::known(data));
