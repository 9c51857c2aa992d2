//! `tensorlink localnet status`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use tensorlink_node::ports::Chain;
use tensorlink_types::Address;
use tokio_util::sync::CancellationToken;

use super::folder::Folder;
use super::process::Process;
use super::state::{CHAIN, GATEWAY, Node, State};
use super::{gateway, nodes};
use crate::amount::Wei;
use crate::config::Common;
use crate::config::Config;
use crate::{node, output};

/// The network as it is now.
#[derive(Serialize)]
struct Shown {
    /// Whether everything runs.
    running: bool,
    /// The configuration that every other command finds.
    config: PathBuf,
    /// The account of its key.
    user: Option<Address>,
    chain: ShownChain,
    gateway: Option<ShownGateway>,
    nodes: Vec<ShownNode>,
}

#[derive(Serialize)]
struct ShownChain {
    running: bool,
    pid: Option<u32>,
    url: String,
    /// Number of the newest block, if the chain answers.
    height: Option<u64>,
    /// Seconds between two blocks.
    block_time: u64,
    log: PathBuf,
}

#[derive(Serialize)]
struct ShownGateway {
    running: bool,
    pid: Option<u32>,
    url: String,
    model: PathBuf,
    key_file: PathBuf,
    log: PathBuf,
}

#[derive(Serialize)]
struct ShownNode {
    name: String,
    role: &'static str,
    running: bool,
    pid: Option<u32>,
    address: Address,
    /// Bonded, in wei of SNO, if the chain answers.
    stake: Option<Wei>,
    listens: String,
    log: PathBuf,
}

/// Shows the network.
pub(super) async fn run(json: bool, shutdown: &CancellationToken) -> Result<()> {
    let folder = Folder::find()?;
    let state = State::must(&folder)?;
    show(&folder, &state, json, shutdown).await
}

/// The same of a state that was read.
pub(super) async fn show(folder: &Folder, state: &State, json: bool, shutdown: &CancellationToken) -> Result<()> {
    let shown = look(folder, state, shutdown).await;
    output::print(json, &shown, || text(&shown))
}

/// The chain as nobody in particular.
pub(super) async fn reader(folder: &Folder, state: &State, shutdown: &CancellationToken) -> Result<Arc<dyn Chain>> {
    let common = Common {
        // Neither flags nor environment: this network's.
        config: folder.config().exists().then(|| folder.config()),
        rpc: vec![state.chain.ws()],
        deployment: Some(folder.deployment()),
        ..Common::default()
    };
    Ok(node::reader(&Config::load(&common)?, shutdown).await?.1)
}

async fn look(folder: &Folder, state: &State, shutdown: &CancellationToken) -> Shown {
    let pid = |process: &Option<Process>| process.as_ref().filter(|process| process.runs()).map(|process| process.pid);
    let chain_pid = pid(&state.chain.process);
    let reader = match chain_pid {
        Some(_) => reader(folder, state, shutdown).await.ok(),
        None => None,
    };
    let height = match &reader {
        Some(reader) => reader.head().await.ok().map(|head| head.number),
        None => None,
    };
    let mut shown = Vec::new();
    for node in &state.nodes {
        let stake = stake(reader.as_deref(), node).await;
        let pid = pid(&node.process);
        shown.push(ShownNode {
            name: node.name.clone(),
            role: node.role.name(),
            running: pid.is_some(),
            pid,
            address: node.address,
            stake,
            listens: node.listens(),
            log: folder.log(&node.name),
        });
    }
    let shown_gateway = state.gateway.as_ref().map(|gateway| {
        let pid = pid(&gateway.process);
        ShownGateway {
            running: pid.is_some(),
            pid,
            url: gateway::url(gateway),
            model: gateway.model.clone(),
            key_file: gateway::key_file(folder),
            log: folder.log(GATEWAY),
        }
    });
    Shown {
        running: state.ready && state.processes().into_iter().all(|(_, process)| process.is_some_and(Process::runs)),
        config: folder.config(),
        user: state.user,
        chain: ShownChain {
            running: chain_pid.is_some(),
            pid: chain_pid,
            url: state.chain.ws(),
            height,
            block_time: state.chain.block_time,
            log: folder.log(CHAIN),
        },
        gateway: shown_gateway,
        nodes: shown,
    }
}

async fn stake(reader: Option<&dyn Chain>, node: &Node) -> Option<Wei> {
    let view = reader?.stake(node.address, nodes::chain_role(&node.role)).await.ok()?;
    Some(view.bonded.into())
}

fn text(shown: &Shown) -> String {
    let pid = |pid: Option<u32>| pid.map_or_else(|| "stopped".to_owned(), |pid| format!("pid {pid}"));
    let row = |name: &str, role: &str, process: Option<u32>, rest: String| {
        format!("{name:<10} {role:<10} {:<12} {rest}", pid(process))
    };
    let chain = &shown.chain;
    let height =
        chain.height.map_or_else(String::new, |height| format!(", block {height}, one every {} s", chain.block_time));
    let mut lines = vec![row(CHAIN, "chain", chain.pid, format!("{}{height}", chain.url))];
    for node in &shown.nodes {
        let stake = node.stake.map_or_else(|| "unknown stake".to_owned(), |stake| format!("{stake} SNO"));
        let port = node.listens.split('/').nth(4).unwrap_or_default();
        let rest = format!("{}  {stake:<14} 127.0.0.1:{port}", node.address);
        lines.push(row(&node.name, node.role, node.pid, rest));
    }
    match &shown.gateway {
        Some(gateway) => {
            let rest = format!("{}, {}", gateway.url, gateway::model(&gateway.model));
            lines.push(row(GATEWAY, "gateway", gateway.pid, rest));
        }
        None => lines.push(
            "no gateway: `tensorlink localnet up --model FOLDER` serves a model; script/setup in a checkout brings one"
                .to_owned(),
        ),
    }
    if let Some(user) = shown.user {
        lines.push(format!("{:<10} {user}, the configured key's", "you"));
    }
    let folder = chain.log.parent().map(|logs| logs.display().to_string()).unwrap_or_default();
    lines.push(format!("logs in {folder}, configuration in {}", shown.config.display()));
    if !shown.running {
        lines.push("not everything runs: `tensorlink localnet up` starts it again".to_owned());
    }
    lines.join("\n")
}
