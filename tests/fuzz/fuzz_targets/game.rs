//! See `tensorlink_fuzz::games::game`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tensorlink_fuzz::games::game(data));
