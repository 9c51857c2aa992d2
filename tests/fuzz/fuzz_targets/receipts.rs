//! See `tensorlink_fuzz::wire::receipts`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::wire::receipts(data));
