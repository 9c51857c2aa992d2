//! `tensorlink localnet up` where there is a network: what does not run is started again from what is on disk.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use tokio_util::sync::CancellationToken;

use super::folder::Folder;
use super::process::Process;
use super::state::{CHAIN, GATEWAY, State};
use super::{UpArgs, chain, gateway, nodes, ports, status};
use crate::live::say;

/// Starts what does not run; returns its names.
pub(super) async fn run(
    folder: &Folder,
    state: &mut State,
    args: &UpArgs,
    shutdown: &CancellationToken,
) -> Result<Vec<String>> {
    let running = names(state);
    let before: Vec<Process> = processes(state);
    let started = tokio::select! {
        started = start(folder, state, args, shutdown) => started,
        () = shutdown.cancelled() => Err(anyhow::anyhow!("interrupted")),
    };
    if let Err(error) = started {
        // What ran before goes on, and nothing on disk is lost.
        for process in processes(state).iter().filter(|process| !before.contains(process)) {
            process.stop().await?;
        }
        return Err(error);
    }
    Ok(names(state).into_iter().filter(|name| !running.contains(name)).collect())
}

fn names(state: &State) -> Vec<String> {
    let runs = |process: Option<&Process>| process.is_some_and(Process::runs);
    state.processes().into_iter().filter(|(_, process)| runs(*process)).map(|(name, _)| name.to_owned()).collect()
}

fn processes(state: &State) -> Vec<Process> {
    state.processes().into_iter().filter_map(|(_, process)| process.cloned()).collect()
}

async fn start(folder: &Folder, state: &mut State, args: &UpArgs, shutdown: &CancellationToken) -> Result<()> {
    let runs = |process: &Option<Process>| process.as_ref().is_some_and(Process::runs);
    if !runs(&state.chain.process) {
        if !ports::free(state.chain.port) {
            // Somebody else has it now: everybody has to learn of another.
            for node in &state.nodes {
                if let Some(process) = &node.process {
                    process.stop().await?;
                }
            }
            state.chain.port = ports::pick(&nodes::ports(state))?;
        }
        say!("starting the chain again ...");
        state.chain.process = Some(chain::start(folder, &state.chain)?);
        state.save(folder)?;
        chain::ready(folder, &state.chain).await?;
    }
    let reader = status::reader(folder, state, shutdown).await;
    reader.with_context(|| {
        format!(
            "the chain in {} has lost the contracts, as after a power cut: `tensorlink localnet down`, then `up`",
            folder.chain().display()
        )
    })?;
    let mut taken = nodes::ports(state);
    for node in &mut state.nodes {
        if !runs(&node.process) && !ports::free(node.port) {
            node.port = ports::pick(&taken)?;
            taken.push(node.port);
        }
    }
    let serving = start_gateway(folder, state, args)?;
    nodes::configure_user(folder, state)?;
    let started = nodes::start_all(folder, state)?;
    try_join_all(started.iter().map(|node| node.listens(folder))).await?;
    if let Some(serving) = &serving {
        gateway::ready(folder, serving).await?;
    }
    Ok(())
}

/// The gateway, if it does not run; or a first one, if a model is named now.
fn start_gateway(folder: &Folder, state: &mut State, args: &UpArgs) -> Result<Option<nodes::Started>> {
    if state.gateway.is_none() && args.model.is_some() {
        state.gateway = gateway::wanted(args)?;
    }
    let Some(gateway) = &mut state.gateway else { return Ok(None) };
    if gateway.process.as_ref().is_some_and(Process::runs) {
        return Ok(None);
    }
    ensure!(
        std::net::TcpListener::bind(gateway.http).is_ok(),
        "the gateway cannot listen on {} any more: end what does, or `tensorlink localnet down`, then `up` with --http",
        gateway.http
    );
    let started = gateway::start(folder, gateway)?;
    gateway.process = Some(started.process.clone());
    state.save(folder)?;
    Ok(Some(started))
}

/// What was done.
pub(super) fn words(started: &[String], after: Duration) -> String {
    if started.is_empty() {
        return "the local network runs already".to_owned();
    }
    // The chain and the gateway are no nodes.
    let name = |name: &String| match name.as_str() {
        CHAIN | GATEWAY => format!("the {name}"),
        _ => name.clone(),
    };
    let names: Vec<String> = started.iter().map(name).collect();
    format!("started again after {:.1} s: {}", after.as_secs_f64(), names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_what_was_started() {
        assert_eq!(words(&[], Duration::ZERO), "the local network runs already");
        let told = words(&["chain".into(), "ada".into()], Duration::from_millis(1_500));
        assert_eq!(told, "started again after 1.5 s: the chain, ada");
    }
}
