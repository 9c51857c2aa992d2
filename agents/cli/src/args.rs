//! The command line.
#![allow(missing_docs, reason = "doc comments here are the help texts; clap shows the rest by name")]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::quantized::Quantising;
use crate::watch::{Follow, Rules};

/// Pay strangers' GPUs to train neural networks, with every wrong number provable on chain.
#[derive(Parser, Debug)]
#[command(name = "tensorlink", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tensorlink localnet up                    a whole network on this machine, to try all this
  tensorlink key new                        create a key in an encrypted keystore
  tensorlink stake 10000                    bond 10,000 SNO as a worker
  tensorlink worker run                     lend this machine
  tensorlink job post --model m.json --data d.csv --deposit 50
  tensorlink train examples/king-james.toml quote, train, write the model to a folder
  tensorlink job status 1 --json            one job, for programs
  tensorlink dispute explain 1              challenge 1 in plain words

Every option can stand in the configuration file (--config) or in the environment
(TENSORLINK_RPC, ...); a flag beats the environment, which beats the file. Keys are
never flags: they come from a keystore file or from TENSORLINK_PRIVATE_KEY.";

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

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Create or show the node's key.
    #[command(subcommand)]
    Key(crate::commands::key::KeyCommand),
    /// Lend this machine.
    #[command(subcommand)]
    Worker(WorkerCommand),
    /// Audit other people's work.
    #[command(subcommand)]
    Validator(crate::commands::validator::ValidatorCommand),
    /// Post and follow jobs.
    #[command(subcommand)]
    Job(JobCommand),
    /// Train a model by a job file (TOML): quote, post, hire, follow, stop early, write the model to a folder.
    #[command(after_help = crate::commands::train::EXAMPLE)]
    Train(crate::commands::train::TrainArgs),
    /// Not provable: train in floats on workers that you name, without chain, stake or pay; for private networks.
    #[command(subcommand)]
    Native(crate::commands::native::NativeCommand),
    /// Bond SNO.
    Stake(crate::commands::account::StakeArgs),
    /// Start unbonding SNO, and say from when on it can be withdrawn.
    Unstake(crate::commands::account::UnstakeArgs),
    /// Pay out what has unbonded, and what jobs and challenges have credited.
    Withdraw(crate::commands::account::WithdrawArgs),
    /// Show balances, stake and credit of an account.
    Balance {
        /// The account [default: the node's own].
        account: Option<String>,
    },
    /// Audit one claim now, and convict its worker if it is wrong.
    Challenge(ChallengeArgs),
    /// Give up an answer of this validator that is sealed on chain and lost, at the price of a wrong one. Whoever has
    /// sealed an answer cannot unstake before.
    Forfeit(crate::commands::forfeit::ForfeitArgs),
    /// Make a worker show on chain data that it gives to nobody, or lose its stake. Takes the bond of a challenge,
    /// which goes to a worker that shows it.
    Demand(DemandArgs),
    /// Show what was challenged and what was proven: by whom, how, and who paid. Reads the chain, needs no key.
    #[command(
        subcommand,
        after_help = "\
Examples:
  tensorlink dispute list --job 1          every challenge and conviction of job 1
  tensorlink dispute show 4                every move, transaction and amount of challenge 4
  tensorlink dispute explain 4             the same in plain words
  tensorlink dispute explain --job 1 --stage 0 --interval 2"
    )]
    Dispute(crate::commands::dispute::DisputeCommand),
    /// Look at a model; check, quantise and measure a pretrained one.
    #[command(subcommand)]
    Model(ModelCommand),
    /// Serve models over HTTP, as OpenAI's clients speak it; until interrupted.
    #[command(after_help = "\
Examples:
  tensorlink serve ./all-MiniLM-L6-v2 --http 127.0.0.1:8080
  tensorlink serve ./all-MiniLM-L6-v2 --job 1          by the workers of serving job 1")]
    Serve(crate::commands::serve::ServeArgs),
    /// A network on this machine: a local chain with the contracts, a validator, workers, a gateway and a funded key.
    /// Every other command finds it by itself.
    #[command(subcommand, after_help = crate::commands::localnet::EXAMPLES)]
    Localnet(crate::commands::localnet::LocalnetCommand),
    /// Check the machine and the configuration: device, disk, key, deployment, chain, clock, gas, ports, peers.
    Check,
    /// Measure speed, accuracy, memory, cost of receipts and gas on this machine, each against its goal.
    #[command(after_help = "\
Examples:
  tensorlink bench                                     everything; some minutes
  tensorlink bench memory gas                          two rows
  tensorlink bench train --large                       a training step of 208 million weights in place of 15
  tensorlink bench llamacpp                            against llama.cpp, once `script/setup --llamacpp` has fetched it")]
    Bench(crate::bench::BenchArgs),
    /// Print completions for a shell.
    #[command(after_help = "\
Examples:
  source <(tensorlink completions bash)                                  in this shell; in ~/.bashrc, in each
  tensorlink completions zsh > ~/.zfunc/_tensorlink
  tensorlink completions fish > ~/.config/fish/completions/tensorlink.fish")]
    Completions { shell: clap_complete::Shell },
    /// Write the manual, a page for each command, to a folder.
    #[command(after_help = "\
Example:
  tensorlink man ~/.local/share/man/man1")]
    Man { folder: PathBuf },
}

#[derive(Subcommand, Debug)]
pub enum WorkerCommand {
    /// Advertise, offer, execute, commit, get paid; until interrupted.
    #[command(after_help = "Example:\n  tensorlink worker run --memory 8GiB --price 0.000001")]
    Run(WorkerArgs),
}

#[derive(Args, Debug, Default)]
pub struct WorkerArgs {
    /// Memory for all lanes together, e.g. 8GiB [default: half of what is free].
    #[arg(long, env = "TENSORLINK_MEMORY", value_name = "SIZE")]
    pub memory: Option<String>,
    /// Asking price in SNO per billion multiply-adds [default: 0.000001].
    #[arg(long, env = "TENSORLINK_PRICE", value_name = "AMOUNT")]
    pub price: Option<String>,
    /// Asking price in ETH per billion multiply-adds [default: none, and no jobs that pay in ETH].
    #[arg(long, env = "TENSORLINK_ETH_PRICE", value_name = "AMOUNT")]
    pub eth_price: Option<String>,
    /// Most SNO to put at risk in one job [default: all that is bonded].
    #[arg(long, env = "TENSORLINK_MAX_STAKE", value_name = "AMOUNT")]
    pub max_stake: Option<String>,
    /// Longest job to take, from its start to its deadline [default: 2592000, 30 days].
    #[arg(long, env = "TENSORLINK_MAX_DURATION", value_name = "SECONDS")]
    pub max_duration: Option<u64>,
    /// Longest time for which a job that has not started may hold the stake [default: 86400, a day].
    #[arg(long, env = "TENSORLINK_MAX_WAIT", value_name = "SECONDS")]
    pub max_wait: Option<u64>,
    /// Disk for files that jobs need; what is left keeps others for a while [default: 10GiB].
    #[arg(long, env = "TENSORLINK_DISK", value_name = "SIZE")]
    pub disk: Option<String>,
    /// Device: cpu, cuda or cuda:N [default: cuda if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

#[derive(Subcommand, Debug)]
pub enum JobCommand {
    /// Cut a model in stages, find workers, post the job with its escrow, start it.
    #[command(after_help = "\
Example:
  tensorlink job post --model examples/digits.json --data examples/digits.csv.gz --stages 3 --deposit 50 --watch")]
    Post(Box<PostArgs>),
    /// Put a pretrained transformer into integers, find workers for its stages, post a serving job, start it.
    #[command(after_help = "\
Example:
  tensorlink job serve ./all-MiniLM-L6-v2 --stages 2 --deposit 50
  tensorlink serve ./all-MiniLM-L6-v2 --job 1")]
    Serve(Box<crate::commands::post_serving::JobServeArgs>),
    /// Go on with a training job that ended before it was done, on workers that may be others: what comes out is the
    /// same, bit by bit, as had it never stopped.
    #[command(after_help = "\
Example:
  tensorlink job resume 1 --stages 3 --deposit 50 --watch")]
    Resume(Box<ResumeArgs>),
    /// Follow a job until it is settled; settles it, fetches and tests the model.
    Watch {
        /// The job's number.
        job: u64,
        /// Also write what the job came to into this file, as JSON.
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
        /// New folder for a trained language model, as Hugging Face's loaders, `model sample` and `serve` read it. Of a
        /// job that was stopped, what it had learned by the last interval that is final in every stage.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
    /// Show a job.
    Status {
        /// The job's number.
        job: u64,
    },
    /// Show all jobs.
    List {
        /// Only those of the configured key.
        #[arg(long)]
        mine: bool,
    },
    /// Stop a job. What is earned is paid, the rest comes back.
    Cancel {
        /// The job's number.
        job: u64,
    },
}

#[derive(Args, Debug)]
pub struct PostArgs {
    /// Model file (JSON).
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// Training data (optionally .gz): CSV with the label in the last column; for a language model, a text.
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// Steps between two claims.
    #[arg(long, default_value_t = 50)]
    pub steps_per_interval: u32,
    /// Deal each step's sequences out in so many shares: the stages are as many pipelines, each with the whole model,
    /// and all end every step in the same state. For language models.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub shares: u16,
    #[command(flatten)]
    pub hire: crate::commands::hiring::HireArgs,
    #[command(flatten)]
    pub follow: FollowArgs,
}

/// Whether a job is followed once it runs.
#[derive(Args, Debug)]
pub struct FollowArgs {
    /// Stay and follow the job to its end.
    #[arg(long)]
    pub watch: bool,
    /// With --watch: also write what the job came to into this file, as JSON.
    #[arg(long, requires = "watch", value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// With --watch: new folder for a trained language model, as Hugging Face's loaders, `model sample` and `serve`
    /// read it.
    #[arg(long, requires = "watch", value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

impl FollowArgs {
    /// How it is followed, if it is.
    pub fn follow(&self) -> Option<Follow<'_>> {
        let follow = Follow { report: self.report.as_deref(), out: self.out.as_deref(), rules: Rules::default() };
        self.watch.then_some(follow)
    }
}

#[derive(Args, Debug)]
pub struct ResumeArgs {
    /// The job that ended.
    pub job: u64,
    /// Go on after so many of its intervals [default: all that are final in every stage].
    #[arg(long, value_name = "INTERVALS")]
    pub from: Option<u32>,
    #[command(flatten)]
    pub hire: crate::commands::hiring::HireArgs,
    #[command(flatten)]
    pub follow: FollowArgs,
}

/// Which balance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum RoleArg {
    /// A worker's stake.
    #[default]
    Worker,
    /// A validator's collateral.
    Validator,
}

#[derive(Args, Debug)]
pub struct ChallengeArgs {
    /// The job's number.
    #[arg(long, required_unless_present = "receipt")]
    pub job: Option<u64>,
    /// Stage of the lane; with --receipt: the only stage to audit [default: every stage].
    #[arg(long, required_unless_present = "receipt")]
    pub stage: Option<u16>,
    /// Replica of the lane.
    #[arg(long, default_value_t = 0, conflicts_with = "receipt")]
    pub replica: u16,
    /// Interval of the claim.
    #[arg(long, required_unless_present = "receipt")]
    pub interval: Option<u32>,
    /// Receipts of texts of a serving job instead: what `GET /v1/receipts/{id}` of its gateway answers.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job", "interval"])]
    pub receipt: Option<PathBuf>,
    /// Where the worker's answers do not decide: make it answer on chain, against the bond of a challenge. Plays until
    /// that is over.
    #[arg(long, conflicts_with = "receipt")]
    pub force: bool,
    /// Device to compute on: cpu, cuda or cuda:N [default: CUDA if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

/// A stage beside another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum NeighbourArg {
    /// The stage before.
    Previous,
    /// The stage after.
    Next,
}

#[derive(Args, Debug)]
pub struct DemandArgs {
    /// The job's number.
    #[arg(long)]
    pub job: u64,
    /// Stage of the lane.
    #[arg(long)]
    pub stage: u16,
    /// Replica of the lane.
    #[arg(long, default_value_t = 0)]
    pub replica: u16,
    /// Demand of the state that the claim of this interval ends in; without it, of the files that the stage began with.
    #[arg(long)]
    pub interval: Option<u32>,
    /// Of those files: the state that the stage began with, not its constants.
    #[arg(long, conflicts_with = "interval")]
    pub initial_state: bool,
    /// From the worker that keeps the state for the lane, by its attestation, which the lane's worker tells; not from
    /// that worker itself.
    #[arg(long, requires = "interval")]
    pub keeper: bool,
    /// Of what that claim says was sent to this neighbour, with the attestation of it, in place of the state.
    #[arg(long, requires = "interval", conflicts_with = "keeper", value_name = "NEIGHBOUR")]
    pub sent_to: Option<NeighbourArg>,
    /// Which tensor of the state or the constants, in the program's order; of what was sent, its entry in the log: step
    /// of the interval × micro-batches + micro-batch [default: any].
    #[arg(long)]
    pub tensor: Option<u32>,
    /// First of the leaves of 256 bytes, modulo the tensor's [default: any].
    #[arg(long)]
    pub leaf: Option<u32>,
    /// How many leaves, at most 64.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub leaves: u32,
}

#[derive(Subcommand, Debug)]
pub enum ModelCommand {
    /// Show layers, parameters, and memory per stage.
    Inspect {
        /// Folder of a pretrained transformer, as Hugging Face publishes it or quantised; a .gguf file; or a model file
        /// (JSON).
        model: PathBuf,
        /// With a model file: training data, to know the input width and the classes.
        #[arg(long, value_name = "FILE")]
        data: Option<PathBuf>,
        /// Pipeline stages.
        #[arg(long, default_value_t = 1)]
        stages: u16,
    },
    /// Check every part of a pretrained transformer, all values among them, and say all that is wrong with it.
    #[command(after_help = "Example:\n  tensorlink model import ~/Downloads/all-MiniLM-L6-v2 --out ./all-MiniLM-L6-v2")]
    Import {
        /// Folder of the transformer, as Hugging Face publishes it, or a .gguf file.
        source: PathBuf,
        /// New folder for a copy of what is used of it: no pickles, no scripts. Of a .gguf file it is the folder that
        /// says the same, with 32-bit floats.
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        /// Pipeline stages to show.
        #[arg(long, default_value_t = 1)]
        stages: u16,
    },
    /// Add adapters (LoRA) to a model's weights, and write the sum to a new folder.
    #[command(
        after_help = "Example:\n  tensorlink model merge ./SmolLM2-135M --adapters ./psalms --out ./SmolLM2-psalms"
    )]
    Merge {
        /// Folder of the model, with floats, or a .gguf file.
        model: PathBuf,
        /// Folder with the adapters, as Hugging Face's PEFT has them.
        #[arg(long, value_name = "FOLDER")]
        adapters: PathBuf,
        /// New folder for the model with its adapters added in.
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
    },
    /// Continue a text, in exact integers on this machine, and print it as it comes.
    #[command(after_help = "\
Examples:
  tensorlink model sample ./king-james --prompt \"In the beginning\" --tokens 200
  tensorlink model sample ./king-james --prompt \"And God said\" --temperature 0")]
    Sample(crate::commands::model::sample::SampleArgs),
    /// Put a pretrained transformer into integers once, for serve, job serve and eval, which then need no floats.
    #[command(after_help = "\
Example:
  tensorlink model quantize ./all-MiniLM-L6-v2 --out ./MiniLM-exact
  tensorlink serve ./MiniLM-exact")]
    Quantize {
        /// Folder of the transformer, as Hugging Face publishes it, or a .gguf file.
        model: PathBuf,
        /// New folder for the integers, the tokenizer, the configuration and the chat template.
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
        #[command(flatten)]
        how: Quantising,
        /// Device to calibrate on: cpu, cuda or cuda:N [default: cuda if there is one].
        #[arg(long, env = "TENSORLINK_DEVICE")]
        device: Option<String>,
    },
    /// Compare a transformer in integers with its floats.
    #[command(after_help = "\
Examples:
  tensorlink model eval ./all-MiniLM-L6-v2
  tensorlink model eval ./MiniLM-exact --against ./all-MiniLM-L6-v2")]
    Eval(EvalArgs),
}

#[derive(Args, Debug)]
pub struct EvalArgs {
    /// Folder of the transformer, as Hugging Face publishes it or quantised, or a .gguf file.
    pub model: PathBuf,
    /// With a quantised folder: the folder or .gguf file that it was made of, for the floats.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["calibration", "setting"])]
    pub against: Option<PathBuf>,
    /// Texts to measure on, one a line [default: 200 of ours].
    #[arg(long, value_name = "FILE")]
    pub texts: Option<PathBuf>,
    #[command(flatten)]
    pub how: Quantising,
    /// Device: cpu, cuda or cuda:N [default: cuda if there is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}
