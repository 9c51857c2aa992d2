//! `tensorlink bench`: the figures of docs/src/benchmarks.md on the machine of who runs it, each against its goal.
//!
//! Each row is measured in a process of its own, on one thread of the processor unless it says otherwise, so that no
//! row finds the memory or the threads of another. `--row` is how such a process is told its row, `--worker` how a
//! worker of a row about the network is told its stage, `--native` how one of row `native` is told what to compute.
//!
//! | module | what lives there |
//! |---|---|
//! | [`figure`], `table` | a figure and its goal; its line |
//! | `time` | racing two things on a busy machine |
//! | `subject` | what is measured: decoders with random weights, and a trained one |
//! | `alone` | the engine alone, which goes on with a text |
//! | `model`, `logits` | accuracy: of folders, over sentences; of decoders, over text that goes on |
//! | `prefill`, `decode`, `floats` | a whole text, and one more token, against libtorch's floats |
//! | `llamacpp` | both, and accuracy, against llama.cpp |
//! | `train`, `step` | a training step against libtorch's autograd; models in training |
//! | `audit`, `archive` | what a validator computes to answer for an interval; what workers write down for it |
//! | `serving` | a serving job on the loopback interface, for the rows below |
//! | `pipeline`, `receipts`, `memory` | a token through workers against none; what receipts cost; what a worker holds |
//! | `native` | floats on several classes of devices: honest distances, cheats that are found |
//! | `gas` | gas, from the snapshots of the contracts' tests |
#![allow(missing_docs, reason = "doc comments on arguments are the help texts; clap shows the rest by name")]

mod alone;
mod archive;
mod audit;
mod decode;
pub mod figure;
mod floats;
mod gas;
mod llamacpp;
mod logits;
mod memory;
mod model;
mod native;
mod pipeline;
mod prefill;
mod receipts;
mod serving;
mod step;
mod subject;
mod table;
mod time;
mod train;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tensorlink_model::{Quantized, Setting};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use self::figure::Figure;
use self::subject::{Extent, Subject, Which};
use crate::config::Config;
use crate::{advice, device, output};

/// Where `script/setup` puts a decoder, seen from the project's root.
const DECODER: &str = ".toolchain/models/SmolLM2-135M-Instruct.Q4_1.gguf";

/// What is measured together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Row {
    /// A folder's model in integers against its floats, over sentences.
    Model,
    /// What decoders expect to follow, by integers and by floats, in each setting; untrained ones as well.
    Logits,
    /// Reading a text, against libtorch's floats.
    Prefill,
    /// The next token, against libtorch's floats; eight texts at once.
    Decode,
    /// Both against llama.cpp.
    Llamacpp,
    /// A training step, against libtorch's autograd; what commitments take of it, and audits.
    Train,
    /// Native mode, which is not provable: how far honest results of different devices are apart, and which cheats
    /// are further.
    Native,
    /// A token through two workers, against the engine alone and against one worker.
    Pipeline,
    /// What receipts and vouchers cost.
    Receipts,
    /// Memory of a worker against its weights.
    Memory,
    /// Gas of claims, vouchers and convictions.
    Gas,
}

#[derive(Args, Debug)]
pub struct BenchArgs {
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

/// What a row needs to know.
#[derive(Clone, Copy)]
struct Measure<'a> {
    config: &'a Config,
    extent: Extent,
    model: Option<&'a Path>,
    device: &'a str,
}

/// Measures what was asked for, prints it.
pub async fn run(config: &Config, args: &BenchArgs, shutdown: CancellationToken) -> Result<()> {
    let device = args.device.as_str();
    if let (Some(folder), Some(stage)) = (&args.worker, args.stage) {
        return serving::worker(config, (folder, stage), device, shutdown).await;
    }
    if let (Some(folder), Some(out)) = (&args.native, &args.native_out) {
        return tokio::task::block_in_place(|| native::be_a_class(folder, out, device));
    }
    let extent = Extent { quick: args.quick, large: args.large };
    let measure = Measure { config, extent, model: args.model.as_deref(), device };
    if let Some(row) = args.row {
        return measure.row(row).await?.iter().try_for_each(|figure| output::print(true, figure, String::new));
    }
    if !config.json {
        output::line(&table::header())?;
    }
    let rows = if args.only.is_empty() { Row::value_variants() } else { args.only.as_slice() };
    let mut failed = 0;
    for row in rows {
        let done = tokio::select! {
            () = shutdown.cancelled() => bail!("interrupted"),
            done = measure.elsewhere(*row) => done,
        };
        if let Err(error) = done {
            failed += 1;
            let name = row.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            print(config.json, &Figure::absent(*row, name, advice::words(&error)))?;
        }
    }
    if failed > 0 { bail!("{failed} of {} rows could not be measured: see above", rows.len()) } else { Ok(()) }
}

fn print(json: bool, figure: &Figure) -> Result<()> {
    output::print(json, figure, || table::show(figure))
}

/// This program as another process, on one thread.
fn own_command(device: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "--device", device]).env("OMP_NUM_THREADS", "1").kill_on_drop(true);
    if std::env::var_os("RUST_LOG").is_none() {
        // What nodes say of each other on the way is no news of the figures.
        command.env("RUST_LOG", "error");
    }
    Ok(command)
}

impl Measure<'_> {
    /// The decoder with random weights, in integers.
    fn quantized(&self) -> Result<Quantized> {
        let device = device::open(Some(self.device))?.device();
        let subject = || Subject::llama(self.extent.size(), device)?.quantized(Setting::default());
        tokio::task::block_in_place(subject)
    }

    /// The trained decoder: the one named, else the one that script/setup brings, if it is there. None on a quick run,
    /// which would take minutes by it.
    fn trained(&self) -> Option<&Path> {
        let default = Path::new(DECODER);
        let path = self.model.or_else(|| default.exists().then_some(default));
        path.filter(|_| !self.extent.quick)
    }

    /// The decoders whose speed is measured.
    fn decoders(&self) -> Vec<Which<'_>> {
        std::iter::once(Which::Random).chain(self.trained().map(Which::Trained)).collect()
    }

    /// Measures a row in a process of its own; prints each of its figures.
    async fn elsewhere(&self, row: Row) -> Result<()> {
        let mut command = own_command(self.device)?;
        let name = row.to_possible_value().context("a row without a name")?;
        command.args(["--row", name.get_name()]);
        if self.extent.quick {
            command.arg("--quick");
        }
        if self.extent.large {
            command.arg("--large");
        }
        if let Some(model) = self.model {
            command.arg("--model").arg(model);
        }
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("no pipe")?).lines();
        while let Some(line) = lines.next_line().await? {
            print(self.config.json, &serde_json::from_str(&line)?)?;
        }
        let status = process.wait().await?;
        if status.success() { Ok(()) } else { bail!("its process ended with {status}: see above") }
    }

    /// Measures a row here.
    async fn row(&self, row: Row) -> Result<Vec<Figure>> {
        let blocking = |measure: fn(&Self) -> Result<Vec<Figure>>| tokio::task::block_in_place(|| measure(self));
        match row {
            Row::Model => blocking(model::measure),
            Row::Logits => blocking(logits::measure),
            Row::Prefill => blocking(prefill::measure),
            Row::Decode => blocking(decode::measure),
            Row::Llamacpp => blocking(llamacpp::measure),
            Row::Train => blocking(train::measure),
            Row::Native => native::measure(self).await,
            Row::Pipeline => pipeline::measure(self).await,
            Row::Receipts => receipts::measure(self).await,
            Row::Memory => memory::measure(self).await,
            Row::Gas => gas::measure(),
        }
    }
}
