//! Data on stdout: for people, or as one JSON value a line.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use thiserror::Error;

/// Whoever read the data has read enough, as in `tensorlink job list | head`. It ends the program, and is no failure.
#[derive(Clone, Copy, Debug, Error)]
#[error("nobody reads what is printed")]
pub struct Unread;

/// Writes data as they are.
///
/// # Errors
/// [`Unread`], or when they go to a file that takes no more.
pub fn write(data: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(data).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Unread.into()),
        written => written.context("cannot write to standard output"),
    }
}

/// Prints a line.
///
/// # Errors
/// As [`write()`].
pub fn line(text: &str) -> Result<()> {
    write(format!("{text}\n").as_bytes())
}

/// Prints a value as JSON, or its text for people.
///
/// # Errors
/// As [`write()`].
pub fn print<T: Serialize>(json: bool, value: &T, text: impl FnOnce() -> String) -> Result<()> {
    if json { line(&serde_json::to_string(value)?) } else { line(&text()) }
}

/// Aligns `name: value` lines.
pub fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = rows.iter().map(|(name, value)| format!("{name:<width$}  {value}")).collect();
    lines.join("\n")
}

/// Seconds as people read them.
pub fn duration(seconds: f64) -> String {
    // Workers report what they like.
    let whole = Duration::try_from_secs_f64(seconds).map_or(u64::MAX, |duration| duration.as_secs());
    match whole {
        0..=119 => format!("{whole} s"),
        120..=7199 => format!("{} min", whole / 60),
        _ => format!("{} h {} min", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_down() {
        let shown = [0.4, 119.9, 120.0, 7199.0, 7200.0, 90_061.0].map(duration);
        assert_eq!(shown, ["0 s", "119 s", "2 min", "119 min", "2 h 0 min", "25 h 1 min"]);
        assert!(duration(f64::INFINITY).ends_with("min") && duration(f64::NAN).ends_with("min"));
    }
}
