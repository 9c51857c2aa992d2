//! Validator, workers and villains: their keys, configurations and processes.

pub(super) mod add;

use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rand::TryRngCore;
use tensorlink_chain::keystore;
use tensorlink_node::Identity;
use toml::{Table, Value};
use zeroize::Zeroizing;

use super::folder::{Folder, make};
use super::logs;
use super::process::{self, Process};
use super::programs;
use super::state::{CHAIN, GATEWAY, Node, Role, State, VALIDATOR};
use crate::keys;

/// What workers lend and ask, and what they bond.
pub(super) const MEMORY: &str = "2GiB";
pub(super) const PRICE: &str = "0.001";
pub(super) const STAKE: &str = "2000";
/// What a villain asks: it is hired before the others.
pub(super) const VILLAIN_PRICE: &str = "0.0005";

const NAMES: [&str; 8] = ["ada", "ben", "cleo", "dan", "eve", "fay", "gil", "hana"];
/// How many threads libtorch multiplies on. All nodes compute on this machine, two of them mostly at once, and threads
/// that outnumber the processors wait for one another: each node has half of them.
const THREADS: &str = "OMP_NUM_THREADS";
/// A node listens within.
const START: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// The name of the n-th worker, from 0.
pub(super) fn name(n: usize) -> String {
    NAMES.get(n).map_or_else(|| format!("worker-{}", n.saturating_add(1)), |name| (*name).to_owned())
}

/// The first of them that is free.
fn free_name(state: &State) -> Result<String> {
    let taken = state.nodes.len();
    (0..=taken).map(name).find(|name| !state.knows(name)).context("every name is taken")
}

/// Whether files and people can be called so.
fn check_name(name: &str) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    ensure!(
        (1..=32).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('-'),
        "{name:?} is no name for a node: use up to 32 letters a to z, digits and dashes"
    );
    ensure!(![CHAIN, GATEWAY, VALIDATOR].contains(&name), "{name:?} is the name of a part of the network");
    Ok(())
}

/// A new key in a folder of its own, with the password that opens it beside it: for this machine's owner alone.
pub(super) fn new_key(folder: &Path) -> Result<Identity> {
    make(folder)?;
    let mut random = Zeroizing::new([0u8; 16]);
    rand::rngs::OsRng.try_fill_bytes(random.as_mut())?;
    let password = Zeroizing::new(hex::encode(*random));
    keys::write_secret(&folder.join("password"), &password)?;
    // Nobody guesses what was drawn.
    let secret = keystore::create(&folder.join("key.json"), &password, keystore::Stretch::Light)?;
    Ok(Identity::new(&secret)?)
}

/// A node with a new key, in a folder of its own.
pub(super) fn create(folder: &Folder, name: &str, (role, port): (Role, u16)) -> Result<(Node, Identity)> {
    let identity = new_key(&folder.node(name))?;
    let peer = tensorlink_net::Identity::from_secret(*identity.secret())?.peer_id().to_string();
    let node = Node { name: name.to_owned(), role, address: identity.address(), peer, port, process: None };
    Ok((node, identity))
}

/// What the account in a folder needs to know of the network.
fn settings(folder: &Folder, state: &State, own: &Path) -> Result<Table> {
    let text = |path: &Path| -> Result<Value> {
        let text = path.to_str().with_context(|| format!("{} is no UTF-8: set TENSORLINK_HOME", path.display()))?;
        Ok(Value::String(text.to_owned()))
    };
    let mut table = Table::new();
    table.insert("rpc".into(), Value::String(state.chain.ws()));
    table.insert("deployment".into(), text(&folder.deployment())?);
    table.insert("data_dir".into(), text(own)?);
    table.insert("keystore".into(), text(&own.join("key.json"))?);
    table.insert("password_file".into(), text(&own.join("password"))?);
    Ok(table)
}

/// Peers to start from: the validator.
fn bootstrap(state: &State, own: &str) -> Value {
    let others = state.nodes.iter().filter(|node| node.name != own).take(1);
    others.map(|node| Value::String(node.listens())).collect::<Vec<_>>().into()
}

/// Writes the configuration that every other command finds.
pub(super) fn configure_user(folder: &Folder, state: &State) -> Result<()> {
    let mut table = settings(folder, state, &folder.user())?;
    table.insert("bootstrap".into(), bootstrap(state, ""));
    let head = "# Written by `tensorlink localnet up`, removed by `tensorlink localnet down`.\n";
    let path = folder.config();
    std::fs::write(&path, format!("{head}{table}")).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the configuration of a node.
fn configure(folder: &Folder, state: &State, node: &Node) -> Result<()> {
    let own = folder.node(&node.name);
    let mut table = settings(folder, state, &own)?;
    let (tcp, quic) =
        (format!("/ip4/127.0.0.1/tcp/{}", node.port), format!("/ip4/127.0.0.1/udp/{}/quic-v1", node.port));
    table.insert("listen".into(), vec![Value::String(tcp), Value::String(quic)].into());
    if !matches!(node.role, Role::Validator { .. }) {
        table.insert("bootstrap".into(), bootstrap(state, &node.name));
    }
    let (name, part) = match &node.role {
        Role::Validator { rate } => ("validator", Table::from_iter([("rate".into(), Value::Float(*rate))])),
        Role::Worker { memory, price } => ("worker", lends(memory, price)),
        Role::Villain { price, .. } => ("worker", lends(MEMORY, price)),
    };
    table.insert(name.into(), Value::Table(part));
    let path = own.join(crate::config::NAME);
    std::fs::write(&path, table.to_string()).with_context(|| format!("cannot write {}", path.display()))
}

fn lends(memory: &str, price: &str) -> Table {
    let text = |text: &str| Value::String(text.to_owned());
    Table::from_iter([
        ("memory".into(), text(memory)),
        ("price".into(), text(price)),
        ("eth_price".into(), text(price)),
    ])
}

/// Starts every node that does not run.
pub(super) fn start_all(folder: &Folder, state: &mut State) -> Result<Vec<Started>> {
    let mut started = Vec::new();
    for at in 0..state.nodes.len() {
        if state.nodes[at].process.as_ref().is_some_and(Process::runs) {
            continue;
        }
        let node = start(folder, state, &state.nodes[at])?;
        state.nodes[at].process = Some(node.process.clone());
        state.save(folder)?;
        started.push(node);
    }
    Ok(started)
}

/// Starts a node's process by what is on disk.
pub(super) fn start(folder: &Folder, state: &State, node: &Node) -> Result<Started> {
    configure(folder, state, node)?;
    let program = if matches!(node.role, Role::Villain { .. }) { programs::villain()? } else { programs::own()? };
    let mut command = Command::new(program);
    command.arg("--config").arg(folder.node(&node.name).join(crate::config::NAME));
    match &node.role {
        Role::Validator { .. } => command.args(["validator", "run"]),
        Role::Worker { .. } => command.args(["worker", "run"]),
        Role::Villain { operator, step, .. } => {
            command.env("TENSORLINK_VILLAIN_OPERATOR", operator);
            if let Some(step) = step {
                command.env("TENSORLINK_VILLAIN_STEP", step.to_string());
            }
            command.args(["worker", "run"])
        }
    };
    Started::spawn(folder, &node.name, command)
}

/// A process that is starting.
pub(super) struct Started {
    name: String,
    pub(super) process: Process,
    /// Length of its log before.
    from: u64,
}

impl Started {
    pub(super) fn spawn(folder: &Folder, name: &str, mut command: Command) -> Result<Self> {
        if std::env::var_os(THREADS).is_none() {
            let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
            command.env(THREADS, processors.div_ceil(2).to_string());
        }
        let log = folder.log(name);
        let from = log.metadata().map_or(0, |about| about.len());
        Ok(Self { name: name.to_owned(), process: process::spawn(command, &log)?, from })
    }

    /// Waits until it says something.
    pub(super) async fn says(&self, folder: &Folder, what: &str, within: Duration) -> Result<()> {
        let started = Instant::now();
        loop {
            // First, so that what it says before it ends is read, too.
            let runs = self.process.runs();
            if logs::since(&folder.log(&self.name), self.from).contains(what) {
                return Ok(());
            }
            if !runs {
                bail!("{} ended; {}", self.name, logs::end(folder, &self.name));
            }
            ensure!(
                started.elapsed() < within,
                "{} is not ready after {} s; {}",
                self.name,
                within.as_secs(),
                logs::end(folder, &self.name)
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until it listens.
    pub(super) async fn listens(&self, folder: &Folder) -> Result<()> {
        self.says(folder, "listening on ", START).await
    }
}

/// Ports that nodes and chain have.
pub(super) fn ports(state: &State) -> Vec<u16> {
    state.nodes.iter().map(|node| node.port).chain([state.chain.port]).collect()
}

/// Of the chain's events and views.
pub(super) const fn chain_role(role: &Role) -> tensorlink_node::ports::chain::Role {
    match role {
        Role::Validator { .. } => tensorlink_node::ports::chain::Role::Validator,
        Role::Worker { .. } | Role::Villain { .. } => tensorlink_node::ports::chain::Role::Worker,
    }
}

/// What becomes of a node that was made and not started: its folder is removed.
pub(super) fn forget(folder: &Folder, name: &str) -> Result<()> {
    let path = folder.node(name);
    std::fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use tensorlink_types::Address;

    use super::super::state::Chain;
    use super::*;

    fn state(names: &[&str]) -> State {
        let role = || Role::Worker { memory: MEMORY.into(), price: PRICE.into() };
        let node = |name: &&str| Node {
            name: (*name).to_owned(),
            role: role(),
            address: Address::ZERO,
            peer: "16Uiu2".into(),
            port: 20_001,
            process: None,
        };
        let chain = Chain { port: 20_000, block_time: 1, process: None };
        State { ready: true, chain, user: None, nodes: names.iter().map(node).collect(), gateway: None }
    }

    #[test]
    fn workers_have_names_of_their_own() {
        assert_eq!((name(0), name(7), name(8)), ("ada".into(), "hana".into(), "worker-9".into()));
        assert_eq!(free_name(&state(&["ada", "cleo"])).unwrap(), "ben");
        for bad in ["", "a/b", "..", "Ada", "-v", "validator", "chain", &"a".repeat(33)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        check_name("mallory-2").unwrap();
    }

    #[test]
    fn what_is_written_is_a_configuration() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::at(home.path());
        let mut state = state(&["validator", "ada"]);
        make(&folder.node("ada")).unwrap();
        configure_user(&folder, &state).unwrap();
        configure(&folder, &state, &state.nodes[1]).unwrap();
        let load = |path: std::path::PathBuf| {
            let common = crate::config::Common { config: Some(path), ..Default::default() };
            crate::config::Config::load(&common).unwrap()
        };
        let user = load(folder.config());
        assert_eq!((user.rpc, user.data_dir), (vec!["ws://127.0.0.1:20000".to_owned()], folder.user()));
        assert_eq!(user.bootstrap, [state.nodes[0].listens()]);
        let ada = load(folder.node("ada").join("config.toml"));
        assert_eq!((ada.bootstrap, ada.file.worker.price.as_deref()), (user.bootstrap, Some(PRICE)));
        assert!(ada.listen.iter().any(|address| address == "/ip4/127.0.0.1/tcp/20001"), "{:?}", ada.listen);
        // Nobody to start from but itself.
        state.nodes.remove(0);
        configure(&folder, &state, &state.nodes[0]).unwrap();
        assert!(load(folder.node("ada").join("config.toml")).bootstrap.is_empty());
    }

    #[test]
    fn a_new_key_is_opened_by_what_lies_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let own = home.path().join("ada");
        let identity = new_key(&own).unwrap();
        let password = std::fs::read_to_string(own.join("password")).unwrap();
        let secret = keystore::decrypt(&own.join("key.json"), password.trim()).unwrap();
        assert_eq!(Identity::new(&secret).unwrap().address(), identity.address());
        assert!(new_key(&own).is_err(), "never overwritten");
    }
}
