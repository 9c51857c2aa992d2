//! `tensorlink bench`: the figures of docs/src/benchmarks.md on the machine of who runs it, each against its goal.
//!
//! Arguments that help does not show are how the bench's own processes are told their part.
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

pub mod profile;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Error, Result};
use async_trait::async_trait;
use clap::{Args, Subcommand, ValueEnum};
use tensorlink_bench::{Bench, Binary, Engines, Extent, Joined, Part, Place, Row};
use tensorlink_native::Floats;
use tensorlink_node::Identity;
use tensorlink_node::ports::Chain;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::native::Libtorch;
use crate::node::Node;
use crate::{advice, device, output};

#[derive(Subcommand, Debug)]
pub enum BenchCommand {
    /// Measure what a worker advertises of this machine: multiply-adds a second in each setting, bytes a second from
    /// memory, and the tier that follows. A worker that starts takes what is remembered; this measures anew.
    #[command(after_help = "\
Examples:
  tensorlink bench profile
  tensorlink bench profile --device cuda:1")]
    Profile(profile::ProfileArgs),
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub command: Option<BenchCommand>,
    /// Only these rows [default: all].
    #[arg(value_enum, value_name = "ROW")]
    pub only: Vec<Row>,
    /// Folder of a pretrained transformer, or a .gguf file, in place of those that script/setup brings: a decoder for
    /// all rows about trained ones, an encoder for row `model`.
    #[arg(long, value_name = "FOLDER")]
    pub model: Option<PathBuf>,
    /// Device: cpu, cuda or cuda:N. On a GPU, rows `prefill`, `decode` and `train` take time by the clock.
    #[arg(long, env = "TENSORLINK_DEVICE", default_value = "cpu")]
    pub device: String,
    /// Try every row on next to nothing. The figures mean nothing then.
    #[arg(long)]
    pub quick: bool,
    /// Train 208 million weights instead of 15 (row `train`): some minutes, 18 GB of memory.
    #[arg(long, conflicts_with = "quick")]
    pub large: bool,
    /// Measure this row in this process.
    #[arg(long, hide = true)]
    pub row: Option<Row>,
    /// Be a worker of the job in this folder.
    #[arg(long, hide = true, requires = "stage")]
    pub worker: Option<PathBuf>,
    /// The worker's stage.
    #[arg(long, hide = true)]
    pub stage: Option<u16>,
    /// Take the intervals of this folder (row `native`).
    #[arg(long, hide = true, requires = "native_out")]
    pub native: Option<PathBuf>,
    /// Where the states after them go.
    #[arg(long, hide = true)]
    pub native_out: Option<PathBuf>,
}

impl BenchArgs {
    /// What this process is to do, where the bench started it.
    fn part(&self) -> Option<Part> {
        if let (Some(folder), Some(stage)) = (&self.worker, self.stage) {
            return Some(Part::Worker { folder: folder.clone(), stage });
        }
        if let (Some(folder), Some(out)) = (&self.native, &self.native_out) {
            return Some(Part::Class { folder: folder.clone(), out: out.clone() });
        }
        self.row.map(Part::Row)
    }
}

/// Measures what was asked for, prints it.
pub async fn run(config: &Config, args: &BenchArgs, shutdown: CancellationToken) -> Result<()> {
    if let Some(BenchCommand::Profile(args)) = &args.command {
        return profile::run(config, args).await;
    }
    let (extent, model) = (Extent { quick: args.quick, large: args.large }, args.model.as_deref());
    let bench = Bench { binary: &This { config }, extent, model, device: &args.device };
    match args.part() {
        Some(part) => bench.part(&part, shutdown).await,
        None => {
            let rows = if args.only.is_empty() { Row::value_variants() } else { &args.only };
            bench.rows(rows, config.json, shutdown).await
        }
    }
}

/// This program.
struct This<'a> {
    config: &'a Config,
}

#[async_trait]
impl Binary for This<'_> {
    fn arguments(&self, part: &Part, bench: &Bench<'_>) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = ["bench", "--device", bench.device].map(OsString::from).into();
        match part {
            Part::Row(row) => {
                arguments.extend(["--row".into(), row.name().into()]);
                arguments.extend(bench.extent.quick.then(|| "--quick".into()));
                arguments.extend(bench.extent.large.then(|| "--large".into()));
                arguments.extend(bench.model.into_iter().flat_map(|model| ["--model".into(), model.into()]));
            }
            Part::Worker { folder, stage } => {
                arguments.extend(["--worker".into(), folder.into(), "--stage".into(), stage.to_string().into()]);
            }
            Part::Class { folder, out } => {
                arguments.extend(["--native".into(), folder.into(), "--native-out".into(), out.into()]);
            }
        }
        arguments
    }

    fn engines(&self, device: &str) -> Result<Engines> {
        Ok(device::factory(device::open(Some(device))?))
    }

    fn floats(&self, device: &str) -> Result<Box<dyn Floats>> {
        Ok(Box::new(Libtorch::open(Some(device))?))
    }

    async fn join(
        &self,
        place: Place<'_>,
        account: (Identity, Arc<dyn Chain>),
        shutdown: &CancellationToken,
    ) -> Result<Joined> {
        let config = Config {
            data_dir: place.folder.to_owned(),
            keystore: None,
            listen: vec!["/ip4/127.0.0.1/tcp/0".to_owned()],
            bootstrap: place.bootstrap,
            ipfs: None,
            ..self.config.clone()
        };
        let Node { ports, net } = Node::join(&config, account, place.disk, shutdown).await?;
        Ok(Joined { ports, net })
    }

    fn print(&self, line: &str) -> Result<()> {
        output::line(line)
    }

    fn words(&self, error: &Error) -> String {
        advice::words(error)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn a_process_is_told_its_part() {
        let config = Config::defaults().unwrap();
        let this = This { config: &config };
        let (folder, out) = (PathBuf::from("folder"), PathBuf::from("out"));
        for part in
            [Part::Row(Row::Gas), Part::Worker { folder: folder.clone(), stage: 3 }, Part::Class { folder, out }]
        {
            let extent = Extent { quick: true, large: false };
            let bench = Bench { binary: &this, extent, model: Some(Path::new("model")), device: "cuda:1" };
            let arguments = this.arguments(&part, &bench);
            let Cli { command: Command::Bench(args), .. } =
                Cli::parse_from(["tensorlink".into()].into_iter().chain(arguments))
            else {
                panic!("another command")
            };
            assert_eq!((args.part(), args.device.as_str()), (Some(part.clone()), "cuda:1"));
            let of_row = matches!(part, Part::Row(_));
            assert_eq!((args.quick, args.large, args.model.is_some()), (of_row, false, of_row));
        }
    }
}
