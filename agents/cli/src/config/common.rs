//! Options of every command.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

use std::path::PathBuf;

use clap::Args;

/// Headings of options that only some commands look at, which help shows last.
const CHAIN: &str = "Options of commands that use the chain";
const NETWORK: &str = "Options of commands that join the network";

/// Options of every command.
#[derive(Args, Debug, Clone, Default)]
pub struct Common {
    /// Configuration file (TOML) [default: config.toml in ~/.tensorlink (TENSORLINK_HOME), else that
    /// of `tensorlink localnet`].
    #[arg(long, global = true, env = "TENSORLINK_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Ethereum endpoint, ws:// or http:// [default: ws://127.0.0.1:8545]. Repeatable: the next one is
    /// asked where one fails, lags behind or is of another chain.
    #[arg(long, global = true, help_heading = CHAIN, env = "TENSORLINK_RPC", value_delimiter = ',', value_name = "URL")]
    pub rpc: Vec<String>,
    /// Most that is offered for a unit of gas, gwei [default: 1000]. What costs more waits.
    #[arg(long, global = true, help_heading = CHAIN, env = "TENSORLINK_MAX_FEE", value_name = "GWEI")]
    pub max_fee: Option<u64>,
    /// Most that is paid for gas in 24 hours, ETH [default: no bound]. What averts a loss is sent all the
    /// same, such as claims and answers to challenges; the rest waits.
    #[arg(long, global = true, help_heading = CHAIN, env = "TENSORLINK_GAS_BUDGET", value_name = "ETH")]
    pub gas_budget: Option<String>,
    /// File with the contracts' addresses, as the deploy script writes it.
    #[arg(long, global = true, help_heading = CHAIN, env = "TENSORLINK_DEPLOYMENT", value_name = "FILE")]
    pub deployment: Option<PathBuf>,
    /// Directory for state that must survive a restart [default: .tensorlink].
    #[arg(long, global = true, env = "TENSORLINK_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Encrypted keystore file; its password comes from TENSORLINK_PASSWORD, from the file that
    /// TENSORLINK_PASSWORD_FILE or `password_file` in the configuration names, or a prompt.
    #[arg(long, global = true, help_heading = CHAIN, env = "TENSORLINK_KEYSTORE", value_name = "FILE")]
    pub keystore: Option<PathBuf>,
    /// Print data as JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// More log lines; twice for all of ours.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(flatten)]
    pub network: NetworkArgs,
}

/// Peer-to-peer and storage options of commands that join the network.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = NETWORK)]
pub struct NetworkArgs {
    /// Addresses to listen on (multiaddr), e.g. /ip4/0.0.0.0/tcp/4001. Repeatable.
    #[arg(long, global = true, env = "TENSORLINK_LISTEN", value_delimiter = ',', value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Addresses to tell others instead of those listened on: a forwarded port, a DNS name. Repeatable.
    #[arg(long, global = true, env = "TENSORLINK_EXTERNAL", value_delimiter = ',', value_name = "ADDR")]
    pub external: Vec<String>,
    /// Nobody reaches what is listened on, as behind NAT: tell others only the relays through which this node is
    /// reached. Without this, relays are used in addition where peers see this node under an address that is not its
    /// own.
    #[arg(long, global = true, env = "TENSORLINK_BEHIND_NAT", conflicts_with = "external")]
    pub behind_nat: bool,
    /// Find other nodes in the local network, and be found there (mDNS), at the addresses of it that --listen names:
    /// they need no --bootstrap.
    #[arg(long, global = true, env = "TENSORLINK_MDNS")]
    pub mdns: bool,
    /// Ask the router to open the ports that are listened on (UPnP), so that others reach this node directly.
    #[arg(long, global = true, env = "TENSORLINK_UPNP")]
    pub upnp: bool,
    /// Whether to carry connections of nodes that nobody reaches [default: true for `validator run` without
    /// --behind-nat].
    #[arg(long, global = true, env = "TENSORLINK_RELAY", value_name = "BOOL")]
    pub relay: Option<bool>,
    /// Peers to start from (multiaddr with /p2p/...). Repeatable.
    #[arg(long, global = true, env = "TENSORLINK_BOOTSTRAP", value_delimiter = ',', value_name = "ADDR")]
    pub bootstrap: Vec<String>,
    /// Use an IPFS daemon's RPC API instead of the embedded store, e.g. http://127.0.0.1:5001.
    #[arg(long, global = true, env = "TENSORLINK_IPFS", value_name = "URL")]
    pub ipfs: Option<String>,
    /// Blocks on top of an event before it is acted on [default: 12; on a local chain 1].
    #[arg(long, global = true, help_heading = CHAIN, env = "TENSORLINK_CONFIRMATIONS", value_name = "N")]
    pub confirmations: Option<u64>,
}
