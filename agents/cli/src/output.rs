//! Data on stdout: for people, or as one JSON value a line.

use anyhow::Result;
use serde::Serialize;

/// Prints a value as JSON, or its text for people.
pub fn print<T: Serialize>(json: bool, value: &T, text: impl FnOnce() -> String) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(value)?);
    } else {
        println!("{}", text());
    }
    Ok(())
}

/// Aligns `name: value` lines.
pub fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = rows.iter().map(|(name, value)| format!("{name:<width$}  {value}")).collect();
    lines.join("\n")
}
