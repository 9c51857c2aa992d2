//! `tensorlink localnet up`: everything or nothing.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use tensorlink_types::U256;
use tokio_util::sync::CancellationToken;

use super::folder::{Folder, Lock, make};
use super::nodes::add::{GAS_ETH, SPARE_SNO};
use super::nodes::{self, MEMORY, PRICE, STAKE, Started};
use super::state::{Chain, Gateway, Role, State, VALIDATOR};
use super::{UpArgs, chain, down, gateway, next, ports, programs, resume, status};
use crate::amount::parse_amount;
use crate::config::Common;
use crate::live::say;

/// SNO of the configuration's key.
const USER_SNO: &str = "10000";

/// Starts the network, or the parts of it that do not run; shows it, and what to try next.
pub(super) async fn run(common: &Common, args: &UpArgs, shutdown: &CancellationToken) -> Result<()> {
    ensure!(
        (0.0..=1.0).contains(&args.validator_rate),
        "--validator-rate {} is not between 0 and 1",
        args.validator_rate
    );
    let began = Instant::now();
    let folder = Folder::find()?;
    let lock = folder.lock().await?;
    match State::read(&folder)? {
        Some(mut state) if state.ready => {
            let started = resume::run(&folder, &mut state, args, shutdown).await?;
            say!("{}", resume::words(&started, began.elapsed()));
        }
        // Its start was cut short.
        Some(state) => {
            down::stop(&state).await?;
            folder.clear()?;
            fresh((&folder, &lock), args, shutdown).await?;
            say!("the local network runs after {:.1} s", began.elapsed().as_secs_f64());
        }
        None => {
            fresh((&folder, &lock), args, shutdown).await?;
            say!("the local network runs after {:.1} s", began.elapsed().as_secs_f64());
        }
    }
    drop(lock);
    let state = State::must(&folder)?;
    status::show(&folder, &state, common.json, shutdown).await?;
    if !common.json {
        say!("");
        warn_of_others(common, &folder);
        say!("{}", next::words(&folder, &state));
    }
    Ok(())
}

/// Where another configuration is read in place of the network's.
fn warn_of_others(common: &Common, folder: &Folder) {
    let own = folder.path().parent().map(|home| home.join(crate::config::NAME)).filter(|path| path.exists());
    if let Some(other) = common.config.clone().or(own) {
        say!(
            "Other commands read {} in place of this network's configuration; tell them --config {}\n",
            other.display(),
            folder.config().display()
        );
    }
}

/// Builds the network; what was begun is undone if a step fails.
async fn fresh((folder, _lock): (&Folder, &Lock), args: &UpArgs, shutdown: &CancellationToken) -> Result<()> {
    let mut state = None;
    let built = tokio::select! {
        built = build(folder, &mut state, args, shutdown) => built,
        () = shutdown.cancelled() => Err(anyhow::anyhow!("interrupted")),
    };
    let Err(error) = built else { return Ok(()) };
    if let Some(state) = &state {
        say!("undoing what was begun ...");
        down::stop(state).await?;
    }
    folder.remove()?;
    Err(error)
}

async fn build(folder: &Folder, state: &mut Option<State>, args: &UpArgs, shutdown: &CancellationToken) -> Result<()> {
    // What can be refused before anything is begun.
    programs::anvil()?;
    let gateway = gateway::wanted(args)?;
    make(&folder.path().join("logs"))?;

    say!("starting a chain and creating the contracts ...");
    let chain = Chain { port: ports::pick(&[])?, block_time: args.block_time, process: None };
    let state = state.insert(State { ready: false, chain, user: None, nodes: Vec::new(), gateway });
    state.chain.process = Some(chain::start(folder, &state.chain)?);
    state.save(folder)?;
    // Putting the model into integers takes longest.
    let serving = match &mut state.gateway {
        Some(gateway) => Some(start_gateway(folder, gateway)?),
        None => None,
    };
    state.save(folder)?;

    let roles = roles(args)?;
    let (keys, local) = tokio::join!(keys(folder, state, roles), chain::ready(folder, &state.chain));
    let ((user, made), local) = (keys?, local?);
    state.user = Some(user);
    state.nodes = made.iter().map(|(node, _)| node.clone()).collect();
    let validator = state.nodes.first().context("there is a validator")?.address;
    let deployment = chain::deploy(folder, &local, validator).await?;

    say!("funding {} accounts, bonding their stakes ...", made.len().saturating_add(1));
    let (spare, stake) = (parse_amount(SPARE_SNO)?, parse_amount(STAKE)?);
    let collateral = U256::from(tensorlink_chain::LocalChain::parameters()?.validatorCollateral);
    let gift = |role: &Role| match role {
        // What it bonds it was born with.
        Role::Validator { .. } => spare,
        Role::Worker { .. } | Role::Villain { .. } => stake.saturating_add(spare),
    };
    let mut gifts: Vec<_> = state.nodes.iter().map(|node| (node.address, gift(&node.role))).collect();
    gifts.push((user, parse_amount(USER_SNO)?));
    chain::endow(&local, deployment.sno, &gifts, parse_amount(GAS_ETH)?).await?;
    let bonds = made.into_iter().map(|(node, identity)| {
        let amount = if matches!(node.role, Role::Validator { .. }) { collateral } else { stake };
        let (chain, deployment) = (&state.chain, &deployment);
        async move { chain::stake(chain, deployment, (identity, nodes::chain_role(&node.role), amount), shutdown).await }
    });
    try_join_all(bonds).await?;

    say!("starting a validator and {} workers ...", args.workers);
    let started = nodes::start_all(folder, state)?;
    try_join_all(started.iter().map(|node| node.listens(folder))).await?;
    if let Some(serving) = &serving {
        say!("waiting for the gateway ...");
        gateway::ready(folder, serving).await?;
    }
    nodes::configure_user(folder, state)?;
    state.ready = true;
    state.save(folder)
}

fn start_gateway(folder: &Folder, gateway: &mut Gateway) -> Result<Started> {
    let started = gateway::start(folder, gateway)?;
    gateway.process = Some(started.process.clone());
    Ok(started)
}

/// The validator, then the workers.
fn roles(args: &UpArgs) -> Result<Vec<(String, Role)>> {
    if args.workers > 64 {
        bail!("--workers {}: a machine takes 64 at most", args.workers);
    }
    let validator = (VALIDATOR.to_owned(), Role::Validator { rate: args.validator_rate });
    let worker = |n: u16| {
        let role = Role::Worker { memory: MEMORY.to_owned(), price: PRICE.to_owned() };
        (nodes::name(usize::from(n)), role)
    };
    Ok(std::iter::once(validator).chain((0..args.workers).map(worker)).collect())
}

type Keys = (tensorlink_types::Address, Vec<(super::state::Node, tensorlink_node::Identity)>);

/// A key for everybody, side by side: each is stretched for a moment.
async fn keys(folder: &Folder, state: &State, roles: Vec<(String, Role)>) -> Result<Keys> {
    let mut taken = nodes::ports(state);
    let mut making = Vec::new();
    for (name, role) in roles {
        let port = ports::pick(&taken)?;
        taken.push(port);
        let folder = folder.clone();
        making.push(tokio::task::spawn_blocking(move || nodes::create(&folder, &name, (role, port))));
    }
    let user = folder.user();
    let user = tokio::task::spawn_blocking(move || nodes::new_key(Path::new(&user)));
    let made = try_join_all(making).await?.into_iter().collect::<Result<Vec<_>>>()?;
    Ok((user.await??.address(), made))
}
