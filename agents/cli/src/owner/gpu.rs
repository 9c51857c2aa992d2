//! Whether other programs compute on the GPU that this process computes on, as NVIDIA's driver lists it.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// NVIDIA's own program, which comes with the driver.
const PROGRAM: &str = "nvidia-smi";
/// Longest wait for it: a driver in trouble may not answer.
const PATIENCE: Duration = Duration::from_secs(4);
/// Bytes of its answer that are read.
const MOST: u64 = 1 << 18;

/// Whether others compute there now.
///
/// # Errors
/// If the driver does not tell.
pub(super) async fn used_by_others() -> Result<bool> {
    let listed = tokio::time::timeout(PATIENCE, listed()).await;
    let listed = listed.with_context(|| format!("{PROGRAM} does not answer"))??;
    others(&listed, std::process::id()).with_context(|| {
        format!(
            "{PROGRAM} does not list this process among those of a GPU, as in a container that has process ids of its own"
        )
    })
}

/// A line for each process that computes on a GPU.
async fn listed() -> Result<String> {
    let mut child = Command::new(PROGRAM)
        .args(["--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{PROGRAM} does not start"))?;
    let mut listed = String::new();
    if let Some(output) = child.stdout.take() {
        output.take(MOST).read_to_string(&mut listed).await.with_context(|| format!("{PROGRAM} writes no text"))?;
    }
    let status = child.wait().await?;
    ensure!(status.success(), "{PROGRAM} fails: {status}");
    Ok(listed)
}

/// Whether another process than `own` is on a GPU that `own` is on; none if that is on none.
fn others(listed: &str, own: u32) -> Option<bool> {
    let pairs: Vec<(&str, u32)> = listed.lines().filter_map(pair).collect();
    let gpus: Vec<&str> = pairs.iter().filter(|(_, pid)| *pid == own).map(|(gpu, _)| *gpu).collect();
    let is_shared = pairs.iter().any(|(gpu, pid)| *pid != own && gpus.contains(gpu));
    (!gpus.is_empty()).then_some(is_shared)
}

/// A GPU, and a process on it.
fn pair(line: &str) -> Option<(&str, u32)> {
    let (gpu, pid) = line.split_once(',')?;
    Some((gpu.trim(), pid.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_looked_for_on_the_own_gpu() {
        assert_eq!(others("GPU-a, 7\n", 7), Some(false));
        assert_eq!(others("GPU-a, 7\nGPU-a, 8\n", 7), Some(true));
        assert_eq!(others("GPU-b, 8\nGPU-a, 7\nGPU-b, 9\n", 7), Some(false), "they have another");
        assert_eq!(others("GPU-b, 8\nGPU-b, 7\nGPU-a, 7\n", 7), Some(true), "one of several");
    }

    #[test]
    fn where_the_own_process_is_not_listed_nobody_knows() {
        for listed in ["", "GPU-a, 8\n", "No running processes found\n", "GPU-a, [N/A]\n", "GPU-a 7\n"] {
            assert_eq!(others(listed, 7), None, "{listed}");
        }
    }
}
