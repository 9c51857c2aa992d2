//! `tensorlink localnet add-worker|add-villain`.

use anyhow::{Result, bail, ensure};
use serde::Serialize;
use tensorlink_types::{Address, U256};
use tokio_util::sync::CancellationToken;

use super::super::folder::Folder;
use super::super::process::Process;
use super::super::state::{Node, Role, State};
use super::super::{AddVillainArgs, AddWorkerArgs, chain, ports};
use super::{MEMORY, PRICE, VILLAIN_PRICE, chain_role, check_name, create, forget, free_name, start};
use crate::amount::{Wei, parse_amount, parse_size};
use crate::live::say;
use crate::output;

/// What a new account gets beside its stake: SNO for bonds of challenges, ETH for gas.
pub(in super::super) const SPARE_SNO: &str = "100";
pub(in super::super) const GAS_ETH: &str = "100";

#[derive(Serialize)]
struct Added<'a> {
    name: &'a str,
    role: &'static str,
    address: Address,
    listens: String,
    log: std::path::PathBuf,
}

/// Adds a worker, or starts one again.
pub(in super::super) async fn worker(json: bool, args: &AddWorkerArgs, shutdown: &CancellationToken) -> Result<()> {
    args.memory.as_deref().map(parse_size).transpose()?;
    args.price.as_deref().map(parse_amount).transpose()?;
    let stake = parse_amount(&args.stake)?;
    let role = |before: Option<&Role>| {
        let (had_memory, had_price) = match before {
            Some(Role::Worker { memory, price }) => (memory.as_str(), price.as_str()),
            _ => (MEMORY, PRICE),
        };
        let or = |asked: &Option<String>, had: &str| asked.clone().unwrap_or_else(|| had.to_owned());
        Role::Worker { memory: or(&args.memory, had_memory), price: or(&args.price, had_price) }
    };
    add(json, args.name.as_deref(), (role, stake), shutdown).await
}

/// Adds a villain, or starts one again.
pub(in super::super) async fn villain(json: bool, args: &AddVillainArgs, shutdown: &CancellationToken) -> Result<()> {
    super::super::programs::villain()?;
    let stake = parse_amount(&args.stake)?;
    let (operator, step) = (args.operator.clone(), args.step);
    let role = |_: Option<&Role>| Role::Villain { operator: operator.clone(), step, price: VILLAIN_PRICE.to_owned() };
    add(json, Some(&args.name), (role, stake), shutdown).await
}

async fn add(
    json: bool,
    name: Option<&str>,
    (role, stake): (impl Fn(Option<&Role>) -> Role, U256),
    shutdown: &CancellationToken,
) -> Result<()> {
    ensure!(!stake.is_zero(), "a worker without stake is not hired: name an amount above 0");
    let folder = Folder::find()?;
    State::must(&folder)?;
    let _lock = folder.lock().await?;
    let mut state = State::must(&folder)?;
    ensure!(
        state.ready && state.chain.process.as_ref().is_some_and(Process::runs),
        "the local network does not run: `tensorlink localnet up` starts it"
    );
    let name = match name {
        Some(name) => name.to_owned(),
        None => free_name(&state)?,
    };
    check_name(&name)?;
    let at = match state.nodes.iter().position(|node| node.name == name) {
        Some(at) => {
            let role = role(Some(&state.nodes[at].role));
            again(&mut state.nodes[at], role)?;
            at
        }
        None => {
            say!("giving {name} a key, {} SNO and its stake ...", Wei(stake));
            let made = tokio::select! {
                made = new(&folder, &mut state, (&name, role(None)), (stake, shutdown)) => made,
                () = shutdown.cancelled() => Err(anyhow::anyhow!("interrupted")),
            };
            if let Err(error) = made {
                // What it has bonded is lost with its key, on a chain of no worth.
                let _gone = forget(&folder, &name);
                return Err(error);
            }
            state.nodes.len().saturating_sub(1)
        }
    };
    let started = start(&folder, &state, &state.nodes[at])?;
    state.nodes[at].process = Some(started.process.clone());
    state.save(&folder)?;
    let listens = tokio::select! {
        listens = started.listens(&folder) => listens,
        () = shutdown.cancelled() => Err(anyhow::anyhow!("interrupted")),
    };
    if let Err(error) = listens {
        started.process.stop().await?;
        return Err(error);
    }
    let node = &state.nodes[at];
    let added = Added {
        name: &node.name,
        role: node.role.name(),
        address: node.address,
        listens: node.listens(),
        log: folder.log(&node.name),
    };
    output::print(json, &added, || format!("{} {} runs, {}", added.role, added.name, added.address))
}

/// A node that is known: of the same kind, and not running.
fn again(node: &mut Node, role: Role) -> Result<()> {
    if node.process.as_ref().is_some_and(Process::runs) {
        bail!("{} runs already", node.name);
    }
    ensure!(node.role.name() == role.name(), "{} is a {}: choose another name", node.name, node.role.name());
    node.role = role;
    if !ports::free(node.port) {
        node.port = ports::pick(&[])?;
    }
    Ok(())
}

/// A key, money and a stake; the node is the last of the state's, which is not saved.
async fn new(
    folder: &Folder,
    state: &mut State,
    (name, role): (&str, Role),
    (stake, shutdown): (U256, &CancellationToken),
) -> Result<()> {
    let port = ports::pick(&super::ports(state))?;
    let (node, identity) = {
        let (folder, name, role) = (folder.clone(), name.to_owned(), role.clone());
        tokio::task::spawn_blocking(move || create(&folder, &name, (role, port))).await??
    };
    let deployment = chain::deployment(folder)?;
    let local = chain::ready(folder, &state.chain).await?;
    let gift = (stake.saturating_add(parse_amount(SPARE_SNO)?), parse_amount(GAS_ETH)?);
    chain::give(&local, deployment.sno, node.address, gift).await?;
    chain::stake(&state.chain, &deployment, (identity, chain_role(&role), stake), shutdown).await?;
    state.nodes.push(node);
    Ok(())
}
