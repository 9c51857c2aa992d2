//! `cargo run -p tensorlink-vectors` writes the vector files beside this crate; `-- --check` says whether they are as
//! it would write them and whether the reference agrees with them.

use std::process::ExitCode;

use tensorlink_vectors::{FILES, VectorError, file};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let action = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => write,
        ["--check"] => check,
        _ => {
            eprintln!("usage: tensorlink-vectors [--check]");
            return ExitCode::from(2);
        }
    };
    let failures: Vec<VectorError> = FILES.iter().filter_map(|file| action(file).err()).collect();
    for failure in &failures {
        eprintln!("{failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write(file: &file::VectorFile) -> Result<(), VectorError> {
    let bytes = file.write()?;
    println!("{}: {bytes} bytes", file.name);
    Ok(())
}

fn check(file: &file::VectorFile) -> Result<(), VectorError> {
    let coverage = file.check()?;
    println!("{}: {} cases of {} rules", file.name, coverage.cases, coverage.rules.len());
    Ok(())
}
