//! The figures of `tensorlink bench`, measured on the machine of who runs it, each against its goal if it has one.
//!
//! Each row is measured in a process of its own, on one thread of the processor unless it says otherwise, so that no
//! row finds the memory or the threads of another. Workers of a row about the network are processes of their own as
//! well, and so are the classes of devices of row `native`. All of them are the program that is measured, which
//! [`Binary`] stands for: this crate says which [`Part`] a process has, the program how that is written as arguments.
//!
//! | module | what lives there |
//! |---|---|
//! | here | [`Bench`]: measures rows, or does a part of one |
//! | `binary` | [`Binary`]: what the program does for its bench |
//! | `row` | [`Row`]: what is measured together |
//! | [`figure`], `table` | a figure and its goal; its line |
//! | `time` | racing two things on a busy machine |
//! | `subject` | what is measured: decoders with random weights, and a trained one |
//! | `alone` | the engine alone, which goes on with a text |
//! | `model`, `logits` | accuracy: of folders, over sentences; of decoders, over text that goes on |
//! | [`speed`] | multiply-adds and bytes a second of a device, as workers advertise them |
//! | `prefill`, `decode`, `floats` | a whole text, and one more token, against libtorch's floats |
//! | `llamacpp` | both, and accuracy, against llama.cpp |
//! | `train`, `step` | a training step against libtorch's autograd; models in training |
//! | `audit`, `archive` | what a validator computes to answer for an interval; what workers write down for it |
//! | `serving` | a serving job on the loopback interface, for the rows below |
//! | `pipeline`, `receipts`, `memory` | a token through workers against none; what receipts cost; what a worker holds |
//! | `native` | floats on several classes of devices: honest distances, cheats that are found |
//! | `gas` | gas, from the snapshots of the contracts' tests |
//!
//! A figure is judged by its goal:
//!
//! ```
//! use tensorlink_bench::Row;
//! use tensorlink_bench::figure::{Figure, Goal, Unit, Verdict};
//!
//! let figure = |times| Figure::new(Row::Prefill, "reading", (times, Unit::Times), Some(Goal::AtLeast(2.5)));
//! assert_eq!([figure(3.1), figure(2.4)].map(|figure| figure.verdict), [Verdict::Met, Verdict::Missed]);
//! assert_eq!(figure(f64::NAN).verdict, Verdict::NotMeasured);
//! ```

mod alone;
mod archive;
mod audit;
mod binary;
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
mod row;
mod serving;
pub mod speed;
mod step;
mod subject;
mod table;
mod time;
mod train;

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tensorlink_model::{Quantized, Setting};
use tensorlink_tensor::TorchEngine;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

pub use self::binary::{Binary, Engines, Joined, Part, Place};
pub use self::row::Row;
pub use self::subject::Extent;

use self::figure::Figure;
use self::subject::{Subject, Which};

/// Where `script/setup` puts a decoder, seen from the project's root.
const DECODER: &str = ".toolchain/models/SmolLM2-135M-Instruct.Q4_1.gguf";

/// What is measured, and on what.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The program.
    pub binary: &'a dyn Binary,
    /// How much is measured.
    pub extent: Extent,
    /// Folder of a pretrained transformer, or a .gguf file, in place of those that `script/setup` brings.
    pub model: Option<&'a Path>,
    /// Device: `cpu`, `cuda` or `cuda:N`.
    pub device: &'a str,
}

impl Bench<'_> {
    /// Measures rows, each in a process of its own; prints their figures as they come.
    ///
    /// # Errors
    /// When some row could not be measured, after all others were; when it is interrupted.
    pub async fn rows(&self, rows: &[Row], json: bool, shutdown: CancellationToken) -> Result<()> {
        if !json {
            self.binary.print(&table::header())?;
        }
        let mut failed = 0;
        for row in rows {
            let done = tokio::select! {
                () = shutdown.cancelled() => bail!("interrupted"),
                done = self.elsewhere(*row, json) => done,
            };
            if let Err(error) = done {
                failed += 1;
                self.print(json, &Figure::absent(*row, row.name(), self.binary.words(&error)))?;
            }
        }
        if failed > 0 { bail!("{failed} of {} rows could not be measured: see above", rows.len()) } else { Ok(()) }
    }

    /// Does a part in this process.
    ///
    /// # Errors
    /// When it cannot be done.
    pub async fn part(&self, part: &Part, shutdown: CancellationToken) -> Result<()> {
        match part {
            Part::Row(row) => self.here(*row).await?.iter().try_for_each(|figure| self.print(true, figure)),
            Part::Worker { folder, stage } => serving::worker(self, (folder, *stage), shutdown).await,
            Part::Class { folder, out } => tokio::task::block_in_place(|| native::be_a_class(self, folder, out)),
        }
    }

    fn print(&self, json: bool, figure: &Figure) -> Result<()> {
        let line = if json { serde_json::to_string(figure)? } else { table::show(figure) };
        self.binary.print(&line)
    }

    /// The program as another process, on one thread, which does a part.
    fn process(&self, part: &Part) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(self.binary.arguments(part, self)).env("OMP_NUM_THREADS", "1").kill_on_drop(true);
        if std::env::var_os("RUST_LOG").is_none() {
            // What nodes say of each other on the way is no news of the figures.
            command.env("RUST_LOG", "error");
        }
        Ok(command)
    }

    /// The engine on the device.
    fn engine(&self) -> Result<TorchEngine> {
        Ok(self.binary.engines(self.device)?()?)
    }

    /// The decoder with random weights, in integers.
    fn quantized(&self) -> Result<Quantized> {
        let device = self.engine()?.device();
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
    async fn elsewhere(&self, row: Row, json: bool) -> Result<()> {
        let mut command = self.process(&Part::Row(row))?;
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("no pipe")?).lines();
        while let Some(line) = lines.next_line().await? {
            self.print(json, &serde_json::from_str(&line)?)?;
        }
        let status = process.wait().await?;
        if status.success() { Ok(()) } else { bail!("its process ended with {status}: see above") }
    }

    /// Measures a row in this process.
    async fn here(&self, row: Row) -> Result<Vec<Figure>> {
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
