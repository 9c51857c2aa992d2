//! `tensorlink completions|man`: what a shell and its manual know of this program.
#![allow(missing_docs, reason = "clap shows the arguments by name")]

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

use crate::output;

const NAME: &str = "tensorlink";

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    pub shell: Shell,
}

#[derive(Args, Debug)]
pub struct ManArgs {
    pub folder: PathBuf,
}

/// Prints the completions of the program for a shell.
pub fn completions(program: &mut Command, args: &CompletionsArgs) -> Result<()> {
    // In memory first: it panics where nobody reads any more.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, program, NAME, &mut script);
    output::write(&script)
}

/// Writes a page of the manual for every command to a folder.
pub fn man(program: Command, args: &ManArgs) -> Result<()> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    clap_mangen::generate_to(program, folder)
        .with_context(|| format!("cannot write the manual to {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let man = folder.path().join("man1");
        super::man(Cli::command(), &ManArgs { folder: man.clone() }).unwrap();
        for page in ["tensorlink.1", "tensorlink-key-import.1", "tensorlink-worker-run.1", "tensorlink-job-post.1"] {
            let text = std::fs::read_to_string(man.join(page)).unwrap();
            assert!(text.contains(".SH NAME") && text.contains("tensorlink"), "{page}");
        }
    }

    #[test]
    fn every_shell_completes_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(["localnet", "faucet", "dispute"].iter().all(|command| script.contains(command)), "{shell}");
        }
    }
}
