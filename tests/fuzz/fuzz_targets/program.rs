//! See `tensorlink_fuzz::files::program`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::files::program(data));
