//! The reference page of the command line, `docs/src/reference/cli.md`, written from what clap knows, so that it is
//! what `--help` says.
//!
//! `TENSORLINK_WRITE_REFERENCE=1 cargo test -p tensorlink reference_page` writes it again.

use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};

use crate::args::Cli;

const HEAD: &str = "\
# Command line

<!-- Written from the program's own help by a test of agents/cli/src/reference.rs; edits are overwritten. -->

`tensorlink COMMAND --help` prints the same. A flag beats the environment, which beats the
[configuration file](configuration.md).
";

/// The page.
fn markdown() -> String {
    let mut program = Cli::command();
    program.build();
    let mut page = HEAD.to_owned();
    page.push_str("\n## Options of every command\n");
    let globals: Vec<&Arg> = program.get_arguments().filter(|arg| shown(arg)).collect();
    table(&mut page, "option", &globals);
    commands(&mut page, &program);
    page
}

/// A section for each command that does something, after one line for each that only has others below it; one that has
/// both comes first.
fn commands(page: &mut String, parent: &Command) {
    for command in parent.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set()) {
        let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
        let about = command.get_long_about().or_else(|| command.get_about());
        write!(page, "\n## {name}\n\n{}\n", about.map(prose).unwrap_or_default()).unwrap();
        let below = command.get_subcommands().next().is_some();
        if below && command.is_subcommand_required_set() {
            commands(page, command);
            continue;
        }
        let usage = command.clone().render_usage().to_string();
        write!(page, "\n```text\n{}\n```\n", usage.trim_start_matches("Usage:").trim()).unwrap();
        let own = || command.get_arguments().filter(|arg| shown(arg) && !arg.is_global_set());
        table(page, "argument", &own().filter(|arg| arg.is_positional()).collect::<Vec<_>>());
        table(page, "option", &own().filter(|arg| !arg.is_positional()).collect::<Vec<_>>());
        if let Some(after) = command.get_after_long_help().or_else(|| command.get_after_help()) {
            write!(page, "\n```text\n{}\n```\n", after.to_string().trim()).unwrap();
        }
        if below {
            commands(page, command);
        }
    }
}

/// Whether an argument is shown; help explains itself.
fn shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str())
}

fn table(page: &mut String, what: &str, args: &[&Arg]) {
    if args.is_empty() {
        return;
    }
    write!(page, "\n| {what} | meaning | environment |\n|---|---|---|\n").unwrap();
    for arg in args {
        let environment = arg.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
        writeln!(page, "| {} | {} | {environment} |", spelling(arg), meaning(arg)).unwrap();
    }
}

/// As it is typed, with the names of its values.
fn spelling(arg: &Arg) -> String {
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let long = arg.get_long().map(|word| format!("--{word}"));
    let typed: Vec<String> = short.into_iter().chain(long).collect();
    let values = if arg.get_action().takes_values() { arg.get_value_names().unwrap_or_default() } else { &[] };
    let values: Vec<String> = values.iter().map(|name| format!("<{name}>")).collect();
    let all: Vec<String> = [typed.join(", "), values.join(" ")].into_iter().filter(|part| !part.is_empty()).collect();
    format!("`{}`", all.join(" "))
}

/// What it does, whether it must be given, what it may be, and what it is where it is not given.
fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_long_help().or_else(|| arg.get_help()).map(prose).unwrap_or_default();
    if arg.is_required_set() {
        text.push_str(" [required]");
    }
    if arg.get_action().takes_values() {
        let values: Vec<String> =
            arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        if !values.is_empty() {
            write!(text, " [one of {}]", values.join(", ")).unwrap();
        }
        let defaults: Vec<String> =
            arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
        if !defaults.is_empty() {
            write!(text, " [default: {}]", defaults.join(", ")).unwrap();
        }
    }
    text.trim().replace('|', "\\|")
}

/// Help as a line of Markdown.
fn prose(help: &StyledStr) -> String {
    let text = help.to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('<', "&lt;")
}

#[test]
fn options_of_other_commands_come_last_in_help() {
    let mut program = Cli::command();
    program.build();
    for path in [&["serve"][..], &["model", "inspect"], &["model", "quantize"], &["check"]] {
        let command = path.iter().try_fold(&program, |command, name| command.find_subcommand(name));
        let help = command.unwrap().clone().render_long_help().to_string();
        let at = |what: &str| help.find(what).unwrap_or_else(|| panic!("{path:?} has no {what}:\n{help}"));
        let (own, chain, network) =
            (at("\nOptions:"), at("\nOptions of commands that use"), at("that join the network:"));
        for (least, most, options) in [
            (own, chain, &["--config", "--data-dir", "--json", "--verbose"][..]),
            (chain, network, &["--rpc", "--deployment", "--keystore", "--max-fee", "--confirmations"]),
            (network, help.len(), &["--listen", "--bootstrap", "--ipfs"]),
        ] {
            for option in options {
                assert!((least..most).contains(&at(option)), "{path:?} {option}:\n{help}");
            }
        }
    }
}

#[test]
fn reference_page_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/cli.md");
    let page = markdown();
    if std::env::var_os("TENSORLINK_WRITE_REFERENCE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/src/reference/cli.md is not what the program says: run \
         TENSORLINK_WRITE_REFERENCE=1 cargo test -p tensorlink reference_page"
    );
}
