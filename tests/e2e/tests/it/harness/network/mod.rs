//! A chain, a validator, workers and a user.

mod ledger;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use alloy::network::Ethereum;
use alloy::providers::RootProvider;
use tempfile::TempDir;
use tensorlink_bindings::creation::Parameters;
use tensorlink_chain::{AlloyChain, LocalChain, write_deployment};
use tensorlink_node::Identity;
use tensorlink_node::ports::chain::{Deployment, Role};
use tensorlink_node::ports::{Call, Chain};
use tensorlink_types::{Address, U256};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use super::job::{self, Job};
use super::process::{Output, Process, bounded, run, tensorlink, villain};
use super::{LOOK, chain, eventually, sno};

/// Accounts of anvil, whose keys it prints itself: worth nothing elsewhere.
const KEYS: [&str; 10] = [
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
    "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
    "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
    "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
    "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
];
/// Who is who among them; workers come after the first three. The last only looks on.
pub(crate) const VALIDATOR: usize = 0;
pub(crate) const USER: usize = 1;
pub(crate) const TREASURY: usize = 2;
pub(crate) const FIRST_WORKER: usize = 3;
pub(crate) const OBSERVER: usize = 9;

/// SNO that a worker gets, and what it bonds of it.
const FUNDS: &str = "3000";
/// SNO that the validator has beside its collateral: the rest of what it was born with.
pub(crate) const PURSE: &str = "990000";
pub(crate) const STAKE: &str = "2000";
/// SNO that makes a validator.
pub(crate) const COLLATERAL: &str = "10000";
/// A command that sends a transaction ends within.
const COMMAND: Duration = Duration::from_secs(180);
/// A node listens within.
const START: Duration = Duration::from_secs(180);

/// Networks are set up in turn, a few at a time: that computes all the time, and would take the time of those that run
/// already, in which somebody has seconds to find a lie.
static TURNS: Semaphore = Semaphore::const_new(2);

async fn turn() -> SemaphorePermit<'static> {
    TURNS.acquire().await.unwrap()
}

/// A network of processes, all ended when this is dropped.
pub(crate) struct Network {
    // Dropped in this order: the nodes, the chain, the folder.
    processes: BTreeMap<String, Process>,
    anvil: Option<Process>,
    port: u16,
    bootstrap: Option<String>,
    /// Share of claims that the validator draws.
    rate: &'static str,
    observer: AlloyChain,
    shutdown: CancellationToken,
    folder: TempDir,
}

impl Drop for Network {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if std::thread::panicking() {
            eprintln!("everything that they said is in {}", self.folder.path().display());
            self.folder.disable_cleanup(true);
        }
    }
}

fn identity(account: usize) -> Identity {
    let bytes: alloy::primitives::B256 = KEYS[account].parse().unwrap();
    Identity::new(&bytes.0).unwrap()
}

pub(crate) fn address(account: usize) -> Address {
    identity(account).address()
}

pub(crate) fn worker_address(worker: usize) -> Address {
    address(FIRST_WORKER + worker)
}

fn worker_name(worker: usize) -> String {
    format!("worker-{worker}")
}

impl Network {
    /// A chain with the contracts, a validator that audits everything, and staked workers that do not run yet.
    pub(crate) async fn start(workers: usize) -> Self {
        Self::start_at_rate(workers, "1").await
    }

    /// The same with a validator that draws this share of claims.
    pub(crate) async fn start_at_rate(workers: usize, rate: &'static str) -> Self {
        let mut network = Self::bare().await;
        network.rate = rate;
        network.endow_all(workers).await;
        network.start_validator().await;
        network
    }

    /// The same under other parameters, and nobody runs yet.
    pub(crate) async fn staked(workers: usize, change: impl FnOnce(&mut Parameters)) -> Self {
        let network = Self::bare_with(change).await;
        network.endow_all(workers).await;
        network
    }

    /// The same with a validator that will draw this share of claims.
    pub(crate) fn at_rate(mut self, rate: &'static str) -> Self {
        self.rate = rate;
        self
    }

    /// Gives workers and the validator what they bond, and has them bond it.
    async fn endow_all(&self, workers: usize) {
        let _turn = turn().await;
        let accounts: Vec<Address> = (0..workers).map(worker_address).collect();
        let (port, token) = (self.port, self.deployment().sno);
        chain::give(port, (token, address(TREASURY)), &accounts, sno(FUNDS)).await;
        let stakes = (0..workers).map(|worker| self.bond(FIRST_WORKER + worker, Role::Worker, STAKE));
        let collateral = self.bond(VALIDATOR, Role::Validator, COLLATERAL);
        futures::join!(futures::future::join_all(stakes), collateral);
    }

    /// Bonds SNO of an account as `tensorlink stake` does, but here: a process for each would be most of what a network
    /// costs to set up.
    async fn bond(&self, account: usize, role: Role, amount: &str) {
        let chain = chain_as(account, self.port, self.deployment().clone(), &self.shutdown).await;
        chain.send(Call::Stake { role, amount: sno(amount) }).await.unwrap();
    }

    /// A chain with the contracts and nobody on it.
    pub(crate) async fn bare() -> Self {
        Self::bare_with(|_| ()).await
    }

    async fn bare_with(change: impl FnOnce(&mut Parameters)) -> Self {
        let _turn = turn().await;
        let folder = tempfile::tempdir().unwrap();
        let (anvil, port) = chain::start_anvil(folder.path(), 0).await;
        let genesis = [VALIDATOR, USER, TREASURY].map(address);
        let mut parameters = LocalChain::parameters().unwrap();
        change(&mut parameters);
        let deployment = chain::local(port).deploy(address(TREASURY), &genesis, &parameters).await.unwrap();
        write_deployment(&folder.path().join("deployment.toml"), &deployment).unwrap();
        let shutdown = CancellationToken::new();
        let observer = chain_as(OBSERVER, port, deployment, &shutdown).await;
        Self {
            processes: BTreeMap::new(),
            anvil: Some(anvil),
            port,
            bootstrap: None,
            rate: "1",
            observer,
            shutdown,
            folder,
        }
    }

    /// The chain itself, for what only a test may ask of it.
    pub(crate) fn provider(&self) -> RootProvider<Ethereum> {
        RootProvider::new_http(format!("http://127.0.0.1:{}", self.port).parse().unwrap())
    }

    pub(crate) fn deployment(&self) -> &Deployment {
        self.observer.deployment()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The chain's port.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    // Nodes.

    /// Everything a command of an account needs to know.
    fn configure(&self, mut command: Command, account: usize) -> Command {
        command
            .env("TENSORLINK_PRIVATE_KEY", KEYS[account])
            .env("TENSORLINK_DATA_DIR", self.path(&format!("data-{account}")))
            .env("TENSORLINK_RPC", format!("ws://127.0.0.1:{}", self.port))
            .env("TENSORLINK_DEPLOYMENT", self.path("deployment.toml"))
            .env("TENSORLINK_LISTEN", "/ip4/127.0.0.1/tcp/0");
        if let Some(bootstrap) = &self.bootstrap {
            command.env("TENSORLINK_BOOTSTRAP", bootstrap);
        }
        command
    }

    /// `tensorlink` as an account.
    pub(crate) fn command(&self, account: usize, arguments: &[&str]) -> Command {
        self.command_of(tensorlink(), account, arguments)
    }

    /// The same of a program that takes the arguments of `tensorlink`.
    pub(crate) fn command_of(&self, program: Command, account: usize, arguments: &[&str]) -> Command {
        let mut command = self.configure(program, account);
        command.args(arguments);
        command
    }

    /// Runs a command as an account.
    pub(crate) async fn run(&self, account: usize, arguments: &[&str]) -> Output {
        run(self.command(account, arguments), COMMAND).await
    }

    /// Runs a command as an account, which must succeed.
    pub(crate) async fn ok(&self, account: usize, arguments: &[&str]) -> Output {
        let output = self.run(account, arguments).await;
        assert!(output.ok, "`tensorlink {}` failed: {}", arguments.join(" "), output.stderr);
        output
    }

    /// Starts a command in the background, under a name.
    pub(crate) fn spawn(&mut self, name: &str, command: Command) {
        let process = Process::spawn(name, command, self.folder.path());
        assert!(self.processes.insert(name.to_owned(), process).is_none(), "{name} runs already");
    }

    /// Starts the validator, at the address that it had before, if any: the others join the network through it.
    pub(crate) async fn start_validator(&mut self) {
        self.start_validator_as(tensorlink()).await;
    }

    /// The same with a validator that answers what comes to its mind.
    pub(crate) async fn start_lazy_validator(&mut self) {
        self.start_validator_as(villain(&[])).await;
    }

    /// The same with a validator whose engine gets numbers wrong, by such settings of a villain.
    pub(crate) async fn start_wrong_validator(&mut self, settings: &[(&str, &str)]) {
        self.start_validator_as(villain(settings)).await;
    }

    /// Who starts before anything is posted, when no time counts yet, waits for a turn.
    async fn turn_to_start(&self) -> Option<SemaphorePermit<'static>> {
        if self.processes.contains_key(job::NAME) { None } else { Some(turn().await) }
    }

    async fn start_validator_as(&mut self, program: Command) {
        let mut command = self.configure(program, VALIDATOR);
        command.args(["validator", "run", "--rate", self.rate]);
        if let Some(before) = self.bootstrap.take() {
            command.env("TENSORLINK_LISTEN", before.split("/p2p/").next().unwrap_or_default());
            command.env_remove("TENSORLINK_BOOTSTRAP");
        }
        let _turn = self.turn_to_start().await;
        self.spawn("validator", command);
        self.bootstrap = Some(self.listening("validator").await);
    }

    /// Where there is no validator: from now on others join the network through a worker that runs.
    pub(crate) async fn join_through(&mut self, worker: usize) {
        self.bootstrap = Some(self.listening(&worker_name(worker)).await);
    }

    /// Starts workers, side by side.
    pub(crate) async fn start_workers(&mut self, workers: impl IntoIterator<Item = usize>) {
        let _turn = self.turn_to_start().await;
        let started: Vec<String> =
            workers.into_iter().map(|worker| self.spawn_worker(worker, tensorlink(), "0.001")).collect();
        for name in started {
            self.listening(&name).await;
        }
    }

    /// Starts a worker that lends little memory and asks less than others.
    pub(crate) async fn start_small_worker(&mut self, worker: usize, memory: &str) {
        let name = self.spawn_lender(worker, tensorlink(), (memory, "0.0001"));
        self.listening(&name).await;
    }

    /// Starts a worker whose disk may become full; see [`Self::set_room`].
    pub(crate) async fn start_bounded_worker(&mut self, worker: usize) {
        self.start_worker(worker, bounded(&tensorlink()), "0.001").await;
    }

    /// How large a file of such a worker may be from now on, bytes; any size, if none is given.
    pub(crate) fn set_room(&self, worker: usize, bytes: Option<u64>) {
        self.processes[&worker_name(worker)].set_room(bytes);
    }

    /// Starts a worker that lies at a step.
    pub(crate) async fn start_villain(&mut self, worker: usize, step: u32) {
        self.start_villain_as(worker, &[("STEP", &step.to_string())]).await;
    }

    /// Starts a worker that does something else than it is asked to: in a step, to operators of a kind, a deed.
    pub(crate) async fn start_part(&mut self, worker: usize, (step, operator, deed): (u32, &str, &str)) {
        self.start_villain_as(worker, &[("STEP", &step.to_string()), ("OPERATOR", operator), ("DEED", deed)]).await;
    }

    /// Starts a worker with such settings of a villain, which asks less, so that it is hired first.
    pub(crate) async fn start_villain_as(&mut self, worker: usize, settings: &[(&str, &str)]) {
        self.start_worker(worker, villain(settings), "0.0005").await;
    }

    /// The same, but it asks more, so that it is hired last and gets the last stage.
    pub(crate) async fn start_dear_villain_as(&mut self, worker: usize, settings: &[(&str, &str)]) {
        self.start_worker(worker, villain(settings), "0.002").await;
    }

    /// Gives an account SNO.
    pub(crate) async fn fund(&self, account: Address, amount: &str) {
        let token = self.deployment().sno;
        chain::give(self.port, (token, address(TREASURY)), &[account], sno(amount)).await;
    }

    /// Gives a worker the stake of so many jobs on top.
    pub(crate) async fn endow(&self, worker: usize, jobs: usize) {
        let amount = sno(Job::STAKE) * U256::from(jobs);
        let text = (amount / sno("1")).to_string();
        self.fund(worker_address(worker), &text).await;
        self.ok(FIRST_WORKER + worker, &["stake", &text]).await;
    }

    async fn start_worker(&mut self, worker: usize, program: Command, price: &str) {
        let _turn = self.turn_to_start().await;
        let name = self.spawn_worker(worker, program, price);
        self.listening(&name).await;
    }

    /// Starts a worker's process, which does not listen yet; returns its name.
    fn spawn_worker(&mut self, worker: usize, program: Command, price: &str) -> String {
        self.spawn_lender(worker, program, ("256MiB", price))
    }

    /// The same of one that lends so much memory at a price.
    fn spawn_lender(&mut self, worker: usize, program: Command, (memory, price): (&str, &str)) -> String {
        let mut command = self.configure(program, FIRST_WORKER + worker);
        command.args(["worker", "run", "--memory", memory, "--device", "cpu", "--price", price, "--eth-price", price]);
        let name = worker_name(worker);
        self.spawn(&name, command);
        name
    }

    /// The address that a node says it listens on.
    async fn listening(&mut self, name: &str) -> String {
        let process = self.processes.get_mut(name).unwrap();
        eventually(&format!("{name} listens"), START, async || {
            if let Some(status) = process.ended() {
                panic!("{name} ended with {status}");
            }
            let log = process.log();
            let (_, rest) = log.split_once("listening on ")?;
            rest.lines().next().filter(|line| line.contains("/p2p/")).map(str::to_owned)
        })
        .await
    }

    fn take(&mut self, name: &str) -> Process {
        self.processes.remove(name).unwrap_or_else(|| panic!("{name} does not run"))
    }

    pub(crate) fn cut_worker(&mut self, worker: usize) {
        self.cut(&worker_name(worker));
    }

    pub(crate) fn cut_validator(&mut self) {
        self.cut("validator");
    }

    /// Keeps a worker from doing anything for a while, as one with other things to do is.
    pub(crate) async fn hang_worker(&self, worker: usize, duration: Duration) {
        self.processes[&worker_name(worker)].hang(duration).await;
    }

    /// Ends a process as an operator would; whether it ended well, and what it has printed.
    pub(crate) fn stop(&mut self, name: &str) -> (bool, String) {
        let process = self.take(name);
        let (status, log) = tokio::task::block_in_place(|| process.stop());
        (status.success(), log)
    }

    /// Ends a process as a power cut would.
    pub(crate) fn cut(&mut self, name: &str) {
        self.take(name).cut();
    }

    /// The first line of JSON that a process prints.
    pub(crate) async fn first_json(&mut self, name: &str, limit: Duration) -> serde_json::Value {
        let process = self.processes.get_mut(name).unwrap();
        eventually(&format!("{name} is ready"), limit, async || {
            let log = process.log();
            let found = log.lines().find_map(|line| serde_json::from_str(line).ok());
            assert!(found.is_some() || process.ended().is_none(), "{name} ended:\n{log}");
            found
        })
        .await
    }

    /// Waits until a background process has said something.
    pub(crate) async fn said(&self, name: &str, text: &str, limit: Duration) {
        let process = &self.processes[name];
        let what = format!("{name} says {text:?}");
        eventually(&what, limit, async || process.log().contains(text).then_some(())).await;
    }

    /// Waits for a background process to end well: `limit` at a time, and again if it went on saying something, since
    /// a busy machine is slow and not stuck; four times at the most.
    pub(crate) async fn ended(&mut self, name: &str, limit: Duration) {
        let process = self.processes.get_mut(name).unwrap();
        let mut status = None;
        for _ in 0..4 {
            let (said, until) = (process.said(), Instant::now() + limit);
            while process.ended().is_none() && Instant::now() < until {
                tokio::time::sleep(LOOK).await;
            }
            status = process.ended();
            if status.is_some() || process.said() == said {
                break;
            }
        }
        let status = status.unwrap_or_else(|| panic!("{name} has not ended, and is stuck or too slow by far"));
        assert!(status.success(), "{name} ended with {status}");
        drop(self.take(name));
    }
}

/// The chain as an account sees it, without a process of its own.
async fn chain_as(account: usize, port: u16, deployment: Deployment, shutdown: &CancellationToken) -> AlloyChain {
    let config = tensorlink_chain::Config {
        rpc_urls: vec![format!("http://127.0.0.1:{port}")],
        deployment,
        confirmations: 0,
        limits: Default::default(),
        identity: identity(account),
        shutdown: shutdown.clone(),
    };
    AlloyChain::connect(config).await.unwrap()
}
