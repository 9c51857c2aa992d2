//! The program as its users meet it: the gateway over HTTP, commands as processes, what is written for others to read.

use std::process::Command;

mod bench;
mod contract;
mod gateway;
mod keys;
mod names;
mod native;
mod pipes;
mod remote;
#[path = "../../../node/tests/support/mod.rs"]
mod support;
mod transformers;

/// `tensorlink` in a folder of somebody's own, with nothing of our environment that would configure it.
fn tensorlink(home: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tensorlink"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TENSORLINK_")) {
        command.env_remove(name);
    }
    command.env("TENSORLINK_HOME", home);
    command
}
