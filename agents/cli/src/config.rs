//! Configuration: flags over environment over file over defaults.

mod common;

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tensorlink_chain::Limits;

pub use self::common::{Common, NetworkArgs};
use crate::amount::parse_amount;
use crate::commands::serve::section::ServeFile;
use crate::commands::validator::section::ValidatorFile;
use crate::commands::worker::section::WorkerFile;

/// What was paid for gas, in the data folder.
const GAS: &str = "gas.json";
const GWEI: u128 = 1_000_000_000;
/// Confirmations on a chain of anybody, which two minutes of Ethereum's blocks make.
const CONFIRMATIONS: u64 = 12;
/// Chain id of a local chain, whose network is this machine.
pub(crate) const LOCAL: u64 = 31_337;
const HOME: &str = "TENSORLINK_HOME";
/// Of the file in the user's folder, and in that of the local network.
pub(crate) const NAME: &str = "config.toml";
/// The folder of the local network in the user's.
pub(crate) const LOCALNET: &str = "localnet";

/// The configuration file. Every field is optional; unknown ones are errors, so that a typing mistake is seen.
#[derive(Clone, Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct File {
    rpc: Option<Urls>,
    max_fee: Option<u64>,
    gas_budget: Option<String>,
    deployment: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    keystore: Option<PathBuf>,
    password_file: Option<PathBuf>,
    listen: Option<Vec<String>>,
    external: Option<Vec<String>>,
    behind_nat: Option<bool>,
    mdns: Option<bool>,
    upnp: Option<bool>,
    relay: Option<bool>,
    bootstrap: Option<Vec<String>>,
    ipfs: Option<String>,
    confirmations: Option<u64>,
    /// What workers are run with.
    #[serde(default)]
    pub worker: WorkerFile,
    /// What models are served with.
    #[serde(default)]
    pub serve: ServeFile,
    /// What validators are run with.
    #[serde(default)]
    pub validator: ValidatorFile,
}

/// One URL, or several in a list.
#[derive(Clone, Deserialize, Debug)]
#[serde(untagged)]
enum Urls {
    One(String),
    Several(Vec<String>),
}

impl Urls {
    fn list(&self) -> Vec<String> {
        match self {
            Self::One(url) => vec![url.clone()],
            Self::Several(urls) => urls.clone(),
        }
    }
}

/// What all commands need to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Ethereum endpoints, `ws://` or `http://`, in the order in which they are asked; one at least.
    pub rpc: Vec<String>,
    /// What transactions may cost.
    pub gas: Limits,
    /// File with the contracts' addresses.
    pub deployment: PathBuf,
    /// Folder for what must outlive a restart.
    pub data_dir: PathBuf,
    /// Encrypted keystore file; none where the key comes from the environment.
    pub keystore: Option<PathBuf>,
    /// File with the keystore's password, which nobody else may read; none asks for it.
    pub password_file: Option<PathBuf>,
    /// Multiaddrs to listen on.
    pub listen: Vec<String>,
    /// Multiaddrs that others are told instead; none tells them those listened on.
    pub external: Vec<String>,
    /// Whether nobody reaches what is listened on.
    pub behind_nat: bool,
    /// Whether nodes are looked for in the local network.
    pub mdns: bool,
    /// Whether the router is asked to let others in.
    pub upnp: bool,
    /// Whether connections of others are carried, where somebody said.
    pub relay: Option<bool>,
    /// Multiaddrs of peers to join the network by.
    pub bootstrap: Vec<String>,
    /// URL of a Kubo daemon; none for the embedded store.
    pub ipfs: Option<String>,
    /// As [`Self::confirmations()`], where somebody said.
    pub confirmations: Option<u64>,
    /// Whether data are printed as JSON.
    pub json: bool,
    /// The configuration file, for what only some commands read.
    pub file: File,
    /// Where that file was found; none if there is none.
    pub source: Option<PathBuf>,
}

/// The folder of what belongs to a user and to no project: `TENSORLINK_HOME`, else `.tensorlink` in the home folder.
pub fn home() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(HOME).or_else(|| set("HOME").map(|home| home.join(".tensorlink")))
}

/// The folder of what any command can find out anew: `tensorlink` in `XDG_CACHE_HOME`, else in `.cache` in the home
/// folder.
pub fn cache() -> Option<PathBuf> {
    let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    Some(caches?.join("tensorlink"))
}

/// The file that is read where none is named: the user's own, else that of the local network.
fn found(home: &Path) -> Option<PathBuf> {
    [home.join(NAME), home.join(LOCALNET).join(NAME)].into_iter().find(|path| path.exists())
}

impl Config {
    /// Merges the sources. Without `--config` or `TENSORLINK_CONFIG` the file is `config.toml` in the user's folder,
    /// else that which `tensorlink localnet` has written.
    pub fn load(common: &Common) -> Result<Self> {
        Self::load_at(common, home().as_deref())
    }

    /// Without flags, environment and file.
    pub fn defaults() -> Result<Self> {
        Self::load_at(&Common::default(), None)
    }

    fn load_at(common: &Common, home: Option<&Path>) -> Result<Self> {
        let source = common.config.clone().or_else(|| home.and_then(found));
        let file = source.as_deref().map(read).transpose()?.unwrap_or_default();
        let or = |flag: &Option<PathBuf>, file: &Option<PathBuf>| flag.clone().or_else(|| file.clone());
        let list = |flag: &[String], file: &Option<Vec<String>>, default: &[&str]| match (flag, file) {
            ([], Some(values)) => values.clone(),
            ([], None) => default.iter().map(|s| (*s).to_owned()).collect(),
            (values, _) => values.to_vec(),
        };
        let rpc = list(&common.rpc, &file.rpc.as_ref().map(Urls::list), &["ws://127.0.0.1:8545"]);
        ensure!(!rpc.is_empty(), "`rpc` is an empty list: name an Ethereum endpoint in it, or leave it out");
        let data_dir = or(&common.data_dir, &file.data_dir).unwrap_or_else(|| ".tensorlink".into());
        let external = list(&common.network.external, &file.external, &[]);
        let behind_nat = common.network.behind_nat || file.behind_nat == Some(true);
        let relay = common.network.relay.or(file.relay);
        ensure!(
            !behind_nat || (external.is_empty() && relay != Some(true)),
            "`behind_nat` says that nobody reaches this node: leave out `external`, which says where, and `relay`"
        );
        let budget = common.gas_budget.as_ref().or(file.gas_budget.as_ref());
        let gas = limits(common.max_fee.or(file.max_fee), budget.map(String::as_str), &data_dir)?;
        Ok(Self {
            rpc,
            gas,
            deployment: or(&common.deployment, &file.deployment).unwrap_or_else(|| "deploy/31337.toml".into()),
            data_dir,
            keystore: or(&common.keystore, &file.keystore),
            password_file: file.password_file.clone(),
            listen: list(
                &common.network.listen,
                &file.listen,
                &["/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"],
            ),
            behind_nat,
            mdns: common.network.mdns || file.mdns == Some(true),
            upnp: common.network.upnp || file.upnp == Some(true),
            relay,
            external,
            bootstrap: list(&common.network.bootstrap, &file.bootstrap, &[]),
            ipfs: common.network.ipfs.clone().or_else(|| file.ipfs.clone()),
            confirmations: common.network.confirmations.or(file.confirmations),
            json: common.json,
            file,
            source,
        })
    }

    /// Blocks on top of an event before it is acted on, on a chain of that id: unless somebody said, 12, and 1 on a
    /// local chain, where nobody else makes blocks.
    pub fn confirmations(&self, chain_id: u64) -> u64 {
        self.confirmations.unwrap_or(if chain_id == LOCAL { 1 } else { CONFIRMATIONS })
    }
}

/// What transactions may cost: gwei for a unit of gas, ETH a day.
fn limits(max_fee: Option<u64>, budget: Option<&str>, data_dir: &Path) -> Result<Limits> {
    let mut limits = Limits { ledger: Some(data_dir.join(GAS)), ..Limits::default() };
    if let Some(gwei) = max_fee {
        ensure!(gwei > 0, "--max-fee is 0: no transaction could be sent; name the most gwei for a unit of gas");
        limits.max_fee = u128::from(gwei) * GWEI;
    }
    limits.daily = budget.map(parse_amount).transpose().context("--gas-budget is ETH a day, such as 0.05")?;
    Ok(limits)
}

fn read(path: &Path) -> Result<File> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{} is not a valid configuration", path.display()))
}

#[cfg(test)]
mod tests {
    use tensorlink_types::U256;

    use super::*;

    fn load(text: &str, change: impl FnOnce(&mut Common)) -> Result<Config> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.toml");
        std::fs::write(&path, text).unwrap();
        let mut common = Common { config: Some(path), ..Common::default() };
        change(&mut common);
        Config::load(&common)
    }

    #[test]
    fn a_flag_beats_the_file() {
        let text = "rpc = \"ws://file\"\nlisten = [\"/ip4/1.2.3.4/tcp/1\"]";
        assert_eq!(load(text, |_| ()).unwrap().rpc, ["ws://file"]);
        let config = load(text, |common| common.rpc = vec!["ws://flag".into()]).unwrap();
        assert_eq!((config.rpc, config.listen.len()), (vec!["ws://flag".to_owned()], 1));
    }

    #[test]
    fn several_endpoints_are_asked_in_the_order_in_which_they_are_named() {
        let text = "rpc = [\"wss://own\", \"https://other\"]";
        assert_eq!(load(text, |_| ()).unwrap().rpc, ["wss://own", "https://other"]);
        assert_eq!(load(text, |common| common.rpc = vec!["ws://flag".into()]).unwrap().rpc, ["ws://flag"]);
        let error = load("rpc = []", |_| ()).unwrap_err();
        assert!(format!("{error:#}").contains("rpc"), "{error:#}");
        assert!(load("rpc = 8545", |_| ()).is_err());
    }

    #[test]
    fn gas_has_a_cap_in_gwei_and_a_budget_in_eth() {
        let none = load("", |_| ()).unwrap().gas;
        assert_eq!((none.max_fee, none.daily), (Limits::default().max_fee, None));
        let text = "max_fee = 200\ngas_budget = \"0.05\"\ndata_dir = \"d\"";
        let gas = load(text, |_| ()).unwrap().gas;
        let budget = |milli: u64| Some(U256::from(milli) * U256::from(10).pow(U256::from(15)));
        assert_eq!((gas.max_fee, gas.daily, gas.ledger), (200 * GWEI, budget(50), Some("d/gas.json".into())));
        let gas = load(text, |common| (common.max_fee, common.gas_budget) = (Some(30), Some("1".into()))).unwrap().gas;
        assert_eq!((gas.max_fee, gas.daily), (30 * GWEI, budget(1_000)));
        for wrong in ["max_fee = 0", "gas_budget = \"-1\"", "gas_budget = \"much\""] {
            let error = format!("{:#}", load(wrong, |_| ()).unwrap_err());
            assert!(error.contains("--max-fee") || error.contains("--gas-budget"), "{error}");
        }
    }

    #[test]
    fn without_a_name_the_users_file_comes_before_the_local_networks() {
        let home = tempfile::tempdir().unwrap();
        let load = |common: &Common| Config::load_at(common, Some(home.path())).unwrap();
        assert_eq!(load(&Common::default()).source, None);
        std::fs::create_dir(home.path().join(LOCALNET)).unwrap();
        let local = home.path().join(LOCALNET).join(NAME);
        std::fs::write(&local, "rpc = \"ws://localnet\"").unwrap();
        let config = load(&Common::default());
        assert_eq!((config.rpc, config.source), (vec!["ws://localnet".to_owned()], Some(local)));
        let own = home.path().join(NAME);
        std::fs::write(&own, "rpc = \"ws://own\"\npassword_file = \"p\"").unwrap();
        let config = load(&Common::default());
        assert_eq!((config.rpc, config.source), (vec!["ws://own".to_owned()], Some(own)));
        assert_eq!(config.password_file, Some("p".into()));
        let named = home.path().join("node.toml");
        std::fs::write(&named, "rpc = \"ws://named\"").unwrap();
        let common = Common { config: Some(named.clone()), ..Common::default() };
        assert_eq!((load(&common).rpc, load(&common).source), (vec!["ws://named".to_owned()], Some(named)));
        let common = Common { rpc: vec!["ws://flag".into()], ..common };
        assert_eq!(load(&common).rpc, ["ws://flag"]);
        assert_eq!(Config::load_at(&Common::default(), None).unwrap().source, None);
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        let error = load("rcp = \"ws://file\"", |_| ()).unwrap_err();
        assert!(format!("{error:#}").contains("rcp"), "{error:#}");
    }
}
