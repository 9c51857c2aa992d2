//! What this machine gives: room on its disk, and the time.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use crate::config::LOCAL;
use crate::when;

/// Bytes that a node should find free, at least: less is full within a job.
const ROOM: u64 = 1 << 30;
/// Seconds by which this machine may be behind a block, and ahead of the newest.
const BEHIND: u64 = 5;
const AHEAD: u64 = 300;

/// What is free where a folder is, or will be.
pub(super) fn disk(folder: &Path) -> Result<String> {
    let free = crate::disk::free(folder)?;
    let gibibytes = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    ensure!(
        free >= ROOM,
        "{:.2} GiB are free for {}: a node wants 1 GiB at least; make room, or name another folder by --data-dir",
        gibibytes(free),
        folder.display()
    );
    Ok(format!("{:.0} GiB free for {}", gibibytes(free), folder.display()))
}

/// Whether this machine's clock agrees with the newest block's time. A local chain may have any.
pub(super) fn clock(block: u64, chain_id: u64) -> Result<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("this machine's clock is before 1970")?.as_secs();
    agrees(now, block, chain_id)
}

fn agrees(now: u64, block: u64, chain_id: u64) -> Result<String> {
    if chain_id == LOCAL {
        return Ok("not compared with a local chain's".to_owned());
    }
    let (behind, old) = (block.saturating_sub(now), now.saturating_sub(block));
    ensure!(
        behind <= BEHIND,
        "this machine is {} behind the chain: set its clock, for instance by NTP",
        when::duration(behind)
    );
    ensure!(
        old <= AHEAD,
        "the newest block is {} old: the endpoint has fallen behind, or this machine's clock is ahead",
        when::duration(old)
    );
    Ok(format!("the newest block is {} old", when::duration(old)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_wrong_is_told_from_a_chain_that_stands() {
        assert!(agrees(1_000, 1_005, 1).is_ok() && agrees(1_300, 1_000, 1).is_ok());
        assert!(agrees(1_000, 1_006, 1).unwrap_err().to_string().contains("behind the chain"));
        assert!(agrees(1_301, 1_000, 1).unwrap_err().to_string().contains("endpoint"));
        assert!(agrees(1_000, 99_000, LOCAL).is_ok());
    }

    #[test]
    fn room_is_looked_for_where_a_folder_will_be() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("not/yet/there");
        let found = disk(&deep).unwrap_or_else(|error| error.to_string());
        assert!(found.contains("GiB") && found.contains("not/yet/there"), "{found}");
    }
}
