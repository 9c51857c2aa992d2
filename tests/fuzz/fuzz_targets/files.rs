//! See `tensorlink_fuzz::files::files`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::files::files(data));
