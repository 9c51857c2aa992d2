//! `tensorlink localnet logs`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use tokio_util::sync::CancellationToken;

use super::LogsArgs;
use super::folder::Folder;
use super::state::State;
use crate::output;

/// Between two looks for new lines.
const LOOK: Duration = Duration::from_millis(200);
/// Most of a log that is read from its end, bytes.
const MOST: u64 = 4 << 20;
/// Lines that explain why something failed.
const SHOWN: usize = 15;

/// Shows the last lines, and those that come.
pub(super) async fn run(args: &LogsArgs, shutdown: &CancellationToken) -> Result<()> {
    let folder = Folder::find()?;
    let state = State::must(&folder)?;
    let names: Vec<String> = match &args.name {
        Some(name) => {
            state.must_know(name)?;
            vec![name.clone()]
        }
        None => state.processes().into_iter().map(|(name, _)| name.to_owned()).collect(),
    };
    let width = names.iter().map(String::len).max().unwrap_or_default();
    let prefix = |name: &str| if args.name.is_some() { String::new() } else { format!("{name:<width$}  ") };
    let mut ends = BTreeMap::new();
    for name in &names {
        let log = folder.log(name);
        ends.insert(name.clone(), size(&log));
        print(&prefix(name), &tail(&log, args.lines))?;
    }
    while args.follow && folder.path().exists() {
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        for name in &names {
            let from = ends.get(name).copied().unwrap_or_default();
            let (text, to) = whole_lines(&folder.log(name), from);
            ends.insert(name.clone(), to);
            print(&prefix(name), &text)?;
        }
    }
    Ok(())
}

fn print(prefix: &str, text: &str) -> Result<()> {
    let plain = !io::stdout().is_terminal();
    let shown = |line: &str| if plain { line.to_owned() } else { printable(line) };
    let lines: String = text.lines().map(|line| format!("{prefix}{}\n", shown(line))).collect();
    output::write(lines.as_bytes())
}

/// Without what would move the cursor of a terminal.
fn printable(line: &str) -> String {
    line.chars().filter(|c| !c.is_control() || *c == '\t').collect()
}

fn size(log: &Path) -> u64 {
    log.metadata().map_or(0, |about| about.len())
}

/// What was written from a place on, at most [`MOST`] bytes of it.
pub(super) fn since(log: &Path, from: u64) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        file.seek(SeekFrom::Start(from))?;
        let mut text = Vec::new();
        file.take(MOST).read_to_end(&mut text)?;
        Ok(text)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// The lines that were ended after a place, and where the next one begins.
fn whole_lines(log: &Path, from: u64) -> (String, u64) {
    // A log that was begun anew is shorter.
    let from = if size(log) < from { 0 } else { from };
    let text = since(log, from);
    let whole = text.rfind('\n').map_or(0, |at| at.saturating_add(1));
    let (whole, _) = text.split_at(whole);
    (whole.to_owned(), from.saturating_add(whole.len() as u64))
}

/// The last lines.
fn tail(log: &Path, lines: usize) -> String {
    let text = since(log, size(log).saturating_sub(MOST));
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}

/// The end of a log for an error, which is kept where the log is not.
pub(super) fn end(folder: &Folder, name: &str) -> String {
    let tail = tail(&folder.log(name), SHOWN);
    if tail.trim().is_empty() {
        return "it has written nothing".to_owned();
    }
    let lines: Vec<String> = tail.lines().map(|line| format!("    {line}")).collect();
    format!("the end of what it wrote:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(tail(&log, 3), "");
        std::fs::write(&log, "a\nb\nc\nhalf").unwrap();
        assert_eq!(tail(&log, 2), "c\nhalf");
        let (text, next) = whole_lines(&log, 2);
        assert_eq!((text.as_str(), next), ("b\nc\n", 6));
        std::fs::write(&log, "a\nb\nc\nhalf is whole\n").unwrap();
        assert_eq!(whole_lines(&log, next).0, "half is whole\n");
        assert_eq!(printable("a\u{1b}[2Jb\tc"), "a[2Jb\tc");
    }
}
