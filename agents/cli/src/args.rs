//! The command line.
#![allow(missing_docs, reason = "doc comments here are the help texts; clap shows the rest by name")]

use clap::{Parser, Subcommand};

use crate::commands::{
    account, bench, challenge, demand, dispute, forfeit, job, key, localnet, model, native, serve, shell, train,
    validator, worker,
};
use crate::config::Common;

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

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Create or show the node's key.
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Lend this machine.
    #[command(subcommand)]
    Worker(worker::WorkerCommand),
    /// Audit other people's work.
    #[command(subcommand)]
    Validator(validator::ValidatorCommand),
    /// Post and follow jobs.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Train a model by a job file (TOML): quote, post, hire, follow, stop early, write the model to a folder.
    #[command(after_help = train::EXAMPLE)]
    Train(train::TrainArgs),
    /// Not provable: train in floats on workers that you name, without chain, stake or pay; for private networks.
    #[command(subcommand)]
    Native(native::NativeCommand),
    /// Bond SNO.
    Stake(account::StakeArgs),
    /// Start unbonding SNO, and say from when on it can be withdrawn.
    Unstake(account::UnstakeArgs),
    /// Pay out what has unbonded, and what jobs and challenges have credited.
    Withdraw(account::WithdrawArgs),
    /// Show balances, stake and credit of an account.
    Balance(account::BalanceArgs),
    /// Audit one claim now, and convict its worker if it is wrong.
    Challenge(challenge::ChallengeArgs),
    /// Give up an answer of this validator that is sealed on chain and lost, at the price of a wrong one. Whoever has
    /// sealed an answer cannot unstake before.
    Forfeit(forfeit::ForfeitArgs),
    /// Make a worker show on chain data that it gives to nobody, or lose its stake. Takes the bond of a challenge,
    /// which goes to a worker that shows it.
    Demand(demand::DemandArgs),
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
    Dispute(dispute::DisputeCommand),
    /// Look at a model; check, quantise and measure a pretrained one.
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Serve models over HTTP, as OpenAI's clients speak it; until interrupted.
    #[command(after_help = "\
Examples:
  tensorlink serve ./all-MiniLM-L6-v2 --http 127.0.0.1:8080
  tensorlink serve ./all-MiniLM-L6-v2 --job 1          by the workers of serving job 1")]
    Serve(serve::ServeArgs),
    /// A network on this machine: a local chain with the contracts, a validator, workers, a gateway and a funded key.
    /// Every other command finds it by itself.
    #[command(subcommand, after_help = localnet::EXAMPLES)]
    Localnet(localnet::LocalnetCommand),
    /// Check the machine and the configuration: device, disk, key, deployment, chain, clock, gas, ports, peers.
    Check,
    /// Measure speed, accuracy, memory, cost of receipts and gas on this machine, each against its goal; or what a
    /// worker advertises of it.
    #[command(after_help = "\
Examples:
  tensorlink bench                                     everything; some minutes
  tensorlink bench memory gas                          two rows
  tensorlink bench profile                             what a worker advertises of this machine
  tensorlink bench train --large                       a training step of 208 million weights in place of 15
  tensorlink bench llamacpp                            against llama.cpp, once `script/setup --llamacpp` has fetched it")]
    Bench(bench::BenchArgs),
    /// Print completions for a shell.
    #[command(after_help = "\
Examples:
  source <(tensorlink completions bash)                                  in this shell; in ~/.bashrc, in each
  tensorlink completions zsh > ~/.zfunc/_tensorlink
  tensorlink completions fish > ~/.config/fish/completions/tensorlink.fish")]
    Completions(shell::CompletionsArgs),
    /// Write the manual, a page for each command, to a folder.
    #[command(after_help = "\
Example:
  tensorlink man ~/.local/share/man/man1")]
    Man(shell::ManArgs),
}
