//! Where that lies which the local network uses and this program does not hold: found from the current folder, or from
//! the program's own.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// What this program is called with: itself.
pub(super) fn own() -> Result<PathBuf> {
    env::current_exe().context("this program cannot tell where it lies")
}

/// The first of these in the folders from which we look, or above them.
fn above(relative: &str) -> Option<PathBuf> {
    let from = [env::current_dir().ok(), own().ok()];
    from.iter().flatten().find_map(|from| above_of(from, relative))
}

fn above_of(from: &Path, relative: &str) -> Option<PathBuf> {
    from.ancestors().map(|folder| folder.join(relative)).find(|path| path.exists())
}

/// Anvil: in the path, else where script/setup puts it.
pub(super) fn anvil() -> Result<PathBuf> {
    let found = in_path("anvil").or_else(|| above("node_modules/.bin/anvil"));
    found.context("there is no anvil, which runs the local chain: run script/setup in a checkout, or install Foundry")
}

/// A program in the path.
pub(super) fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The worker that lies: beside this program, where it was built.
pub(super) fn villain() -> Result<PathBuf> {
    let path = own()?.with_file_name("villain");
    path.exists().then(|| path.clone()).with_context(|| {
        let profile = if cfg!(debug_assertions) { "" } else { " --release" };
        format!(
            "there is no {}, the worker that lies: `cargo build --locked --bin villain{profile}` in the checkout builds it",
            path.display()
        )
    })
}

/// The checkout: its root.
pub(super) fn checkout() -> Option<PathBuf> {
    let parameters = above("deploy/local-parameters.toml")?;
    parameters.parent().and_then(Path::parent).map(Path::to_owned)
}

/// The model that script/setup brings.
pub(super) fn model() -> Option<PathBuf> {
    above(".toolchain/models/all-MiniLM-L6-v2/config.json")?.parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_from_below() {
        let root = tempfile::tempdir().unwrap();
        let below = root.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(root.path().join("a/found"), "").unwrap();
        assert_eq!(above_of(&below, "found"), Some(root.path().join("a/found")));
        assert_eq!(above_of(&below, "there is no such file"), None);
    }
}
