//! The program as its users meet it: the gateway over HTTP, commands as processes, what is written for others to read.

use std::path::{Path, PathBuf};
use std::process::Command;

mod bench;
mod contract;
mod gateway;
mod hiring;
mod keys;
mod names;
mod native;
mod pipes;
#[allow(dead_code, reason = "shared with the tests of the gateway")]
#[path = "../../../gateway/tests/it/served.rs"]
mod served;
#[allow(dead_code, reason = "shared with the tests of the gateway")]
#[path = "../../../gateway/tests/it/speaker.rs"]
mod speaker;
#[path = "../../../node/tests/support/mod.rs"]
mod support;
mod transformers;

/// `tensorlink` in a folder of somebody's own, with nothing of our environment that would configure it.
fn tensorlink(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensorlink"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TENSORLINK_")) {
        command.env_remove(name);
    }
    command.env("TENSORLINK_HOME", home);
    command
}

/// The project's folder.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
