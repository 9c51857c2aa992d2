//! One binary for all targets: the one that `TENSORLINK_FUZZ` names. Eighteen binaries would be linked eighteen times.

#![no_main]

use std::sync::LazyLock;

use tensorlink_fuzz::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("TENSORLINK_FUZZ").unwrap_or_default();
    let target = TARGETS.into_iter().find(|(known, _)| *known == name);
    target.unwrap_or_else(|| panic!("TENSORLINK_FUZZ is {name:?}, which is no target; run script/fuzz"))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET.1(data));
