//! What the kernel knows of a process.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::param::clock_ticks_per_second;

/// Bytes of memory that a process holds now, and the most that it has held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Memory {
    pub(crate) now: u64,
    pub(crate) peak: u64,
}

/// Resident memory of a process.
pub(crate) fn memory(process: u32) -> Result<Memory> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).with_context(|| path.clone())?;
    let bytes = |name: &str| -> Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib =
            line.and_then(|line| line.split_whitespace().next()).with_context(|| format!("no {name} in {path}"))?;
        Ok(kib.parse::<u64>()? << 10)
    };
    Ok(Memory { now: bytes("VmRSS:")?, peak: bytes("VmHWM:")? })
}

/// Processor time of all threads of a process, those that ended among them.
pub(crate) fn processor_time(process: u32) -> Result<Duration> {
    let path = format!("/proc/{process}/stat");
    let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
    // The second field is a name in parentheses that may hold anything; user and system time are fields 14 and 15.
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().skip(11).take(2));
    let ticks: u64 = fields.context("no fields")?.map(|field| field.parse::<u64>().unwrap_or_default()).sum();
    Ok(Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second().max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_has_taken_time() {
        let own = std::process::id();
        let held = memory(own).unwrap();
        assert!(held.now > 1 << 20 && held.peak >= held.now, "{held:?}");
        assert!(processor_time(own).unwrap() < Duration::from_secs(1 << 20));
        assert!(memory(u32::MAX).is_err() && processor_time(u32::MAX).is_err());
    }
}
