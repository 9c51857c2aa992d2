//! Prints what everybody gains and loses, and the parameters that follow.
//!
//! `tensorlink-economics [parameter file]`; from the repository's root the file may be left out.

use std::io::Write;
use std::process::ExitCode;

use tensorlink_economics::{Deployed, Market, Rules, report};

const PARAMETERS: &str = "deploy/parameters.toml";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let path = std::env::args().nth(1).unwrap_or_else(|| PARAMETERS.to_owned());
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}; name the parameter file"))?;
    let deployed = Deployed::parse(&text).map_err(|error| format!("{path}: {error}"))?;
    let report = report::all(&Rules::RECOMMENDED, &Market::REFERENCE, &deployed);
    // A reader such as `head` that has seen enough is no failure.
    match std::io::stdout().write_all(report.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}
