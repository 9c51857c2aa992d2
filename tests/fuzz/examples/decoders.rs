//! One binary for all targets: the one that `TENSORLINK_FUZZ` names. A binary each would be linked as often.

#![no_main]

use std::panic;
use std::sync::LazyLock;

use tensorlink_fuzz::{TARGETS, Target};

/// Engines of others that panic over some inputs, as their sources are called. Whoever calls them catches that.
const CAUGHT: [&str; 2] = ["/minijinja-", "/tokenizers-"];

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    // libFuzzer's own hook ends the process at every panic, caught or not; what nobody catches ends it anyway.
    let fatal = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let caught = |file: &str| CAUGHT.iter().any(|engine| file.contains(engine));
        if !panic.location().is_some_and(|at| caught(at.file())) {
            fatal(panic);
        }
    }));
    let name = std::env::var("TENSORLINK_FUZZ").unwrap_or_default();
    let target = TARGETS.into_iter().find(|(known, _)| *known == name);
    target.unwrap_or_else(|| panic!("TENSORLINK_FUZZ is {name:?}, which is no target; run script/fuzz"))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET.1(data));
