//! Room on a disk.

use std::path::Path;

use anyhow::{Context, Result};

/// Bytes that are free where a folder is, or will be.
///
/// # Errors
/// When the disk cannot be looked at.
pub fn free(folder: &Path) -> Result<u64> {
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or_else(|| Path::new("."));
    let about = rustix::fs::statvfs(there).with_context(|| format!("{} cannot be looked at", there.display()))?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}
