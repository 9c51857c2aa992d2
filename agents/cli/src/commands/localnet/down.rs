//! `tensorlink localnet down`.

use anyhow::{Result, ensure};
use futures::future::join_all;

use super::folder::Folder;
use super::process::Process;
use super::state::{CHAIN, State};
use crate::output;

/// Stops nodes; or everything, which is removed then.
pub(super) async fn run(names: &[String]) -> Result<()> {
    let folder = Folder::find()?;
    if !folder.path().exists() {
        ensure!(names.is_empty(), "there is no local network in {}", folder.path().display());
        return output::line(&format!("there is no local network in {}", folder.path().display()));
    }
    let _lock = folder.lock().await?;
    let state = State::read(&folder)?;
    if names.is_empty() {
        if let Some(state) = &state {
            stop(state).await?;
        }
        folder.remove()?;
        return output::line(&format!("the local network is stopped, and {} removed", folder.path().display()));
    }
    let state = state.map_or_else(|| State::must(&folder), Ok)?;
    for name in names {
        state.must_know(name)?;
        ensure!(name != CHAIN, "nothing goes on without the chain: `tensorlink localnet down` stops everything");
    }
    let of =
        |name: &String| state.processes().into_iter().find(|(known, _)| known == name).and_then(|(_, p)| p.cloned());
    end(names.iter().filter_map(of)).await?;
    output::line(&format!("stopped: {}", names.join(", ")))
}

/// Ends every process: the chain last, which the others use to the end.
pub(super) async fn stop(state: &State) -> Result<()> {
    let all = state.processes();
    let (chain, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(name, _)| *name == CHAIN);
    end(others.into_iter().filter_map(|(_, process)| process.cloned())).await?;
    end(chain.into_iter().filter_map(|(_, process)| process.cloned())).await
}

/// Ends processes side by side.
async fn end(processes: impl Iterator<Item = Process>) -> Result<()> {
    let ended = join_all(processes.map(|process| async move { process.stop().await })).await;
    ended.into_iter().collect()
}
