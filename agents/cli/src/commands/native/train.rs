//! `tensorlink native train`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use tensorlink_model::{Matrix, Parameter};
use tensorlink_native::driver::Around;
use tensorlink_native::{
    Driver, Entry, Listed, NOTICE, Order, Precision, Remote, Report, State, Task, Tolerances, Worker,
};
use tensorlink_net::{Multiaddr, address_in};
use tensorlink_node::Journal;
use tensorlink_node::ports::{Net, SystemClock};
use tensorlink_types::{Address, keccak256};
use tensorlink_user::Draft;
use tokio_util::sync::CancellationToken;

use super::{DISK, words};
use crate::amount::parse_size;
use crate::commands::train::file::{JobFile, Terms};
use crate::config::Config;
use crate::live::say;
use crate::native::Libtorch;
use crate::node::World;
use crate::watch::{Learned, Rules, exportable};
use crate::{keys, output};

/// In which precision products are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum PrecisionArg {
    /// 32 bits.
    #[default]
    F32,
    /// Operands in bfloat16, sums and weights in 32 bits.
    Bf16,
}

#[derive(Args, Debug)]
pub struct NativeTrainArgs {
    /// The job file (TOML).
    #[arg(value_name = "JOB.toml")]
    pub job: PathBuf,
    /// Where a worker listens, with its /p2p/...; the worker says it when it starts. Repeatable.
    #[arg(long = "worker", required = true, value_delimiter = ',', value_name = "ADDR")]
    pub workers: Vec<Multiaddr>,
    /// Precision of products.
    #[arg(long, value_enum, default_value_t)]
    pub precision: PrecisionArg,
    /// Share of the intervals that are repeated by another worker and compared, 0 to 1.
    #[arg(long, default_value_t = 0.05, value_name = "SHARE")]
    pub checks: f64,
    /// Steps that a worker takes at a time, 1 to 16.
    #[arg(long, default_value_t = 8, value_name = "STEPS")]
    pub interval: u32,
    /// How far two results may be apart, in place of what was measured for their classes: for classes that were not
    /// (`tensorlink bench native` measures).
    #[arg(long, value_name = "DISTANCE")]
    pub tolerance: Option<f64>,
    /// Seconds to wait for a worker's interval before another one is asked.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub patience: u64,
    /// New folder for a trained language model, in place of the file's `out`.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Also write what the training came to into this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Device of this machine, which decides where two workers differ: cpu, cuda or cuda:N [default: cuda if there
    /// is one].
    #[arg(long, env = "TENSORLINK_DEVICE")]
    pub device: Option<String>,
}

impl NativeTrainArgs {
    fn order(&self, steps: u32) -> Result<Order> {
        let tolerance = self.tolerance.is_none_or(|tolerance| tolerance.is_finite() && tolerance > 0.0);
        ensure!(tolerance, "--tolerance must be a number above 0");
        ensure!(self.patience > 0, "--patience must be 1 second or more");
        Ok(Order {
            steps,
            per_interval: self.interval,
            precision: match self.precision {
                PrecisionArg::F32 => Precision::F32,
                PrecisionArg::Bf16 => Precision::Bf16,
            },
            checks: self.checks,
            tolerances: Tolerances { all: self.tolerance },
            patience: Duration::from_secs(self.patience),
        })
    }

    /// Who the workers are.
    fn addresses(&self) -> Result<Vec<Address>> {
        let address = |at: &Multiaddr| {
            address_in(at)
                .with_context(|| format!("{at} does not say who listens there: give it with its /p2p/16Uiu2..."))
        };
        let mut seen = BTreeSet::new();
        let addresses: Vec<Address> = self.workers.iter().map(address).collect::<Result<_>>()?;
        Ok(addresses.into_iter().filter(|address| seen.insert(*address)).collect())
    }
}

/// Trains, and writes what was learned to a folder.
pub(super) async fn run(config: &Config, args: &NativeTrainArgs, shutdown: CancellationToken) -> Result<()> {
    say!("{NOTICE}");
    let job = JobFile::read(&args.job, Terms::Native)?;
    if job.rules() != Rules::default() {
        say!(
            "[early_stop], evaluate_every, max_loss and max_saturation of the job file are for jobs on the chain: all steps are taken"
        );
    }
    let (out, addresses) = (args.out.as_ref().or(job.out.as_ref()), args.addresses()?);
    let draft = job.draft()?;
    let order = args.order(draft.steps)?;
    if let Some(out) = out {
        exportable(&draft.name, (draft.architecture.as_ref(), draft.base.as_ref()), out)?;
    }
    let own = Arc::new(Libtorch::open(args.device.as_deref())?);
    let identity = keys::load(config)?;
    let bootstrap = config.bootstrap.iter().cloned().chain(args.workers.iter().map(ToString::to_string)).collect();
    let joined = Config { bootstrap, ..config.clone() };
    let world = World::join(&joined, &identity, parse_size(DISK)?, &shutdown).await?;
    world.net.set_gate(Arc::new(Listed(addresses.iter().copied().collect())));
    let net: Arc<dyn Net> = world.net.clone();
    let remote = |address| {
        let (net, clock) = (net.clone(), Arc::new(SystemClock));
        Arc::new(Remote { address, net, clock }) as Arc<dyn Worker>
    };
    let workers = addresses.into_iter().map(remote).collect();

    let (task, start) = Task::begin(&draft.training, &draft.data.training, draft.seed());
    let digest = hex::encode(&keccak256(task.to_bytes()?)[..8]);
    let journal = Journal::open(config.data_dir.join("native").join(format!("{digest}-{}", order.precision)))?;
    let steps = order.steps;
    let watch = Box::new(move |entry: &Entry| say!("{}", words::say(entry, steps)));
    let (store, draw) = (world.store.clone(), Box::new(rand::random::<f64>));
    let around = Around { store, own, workers, draw, watch };
    let mut driver = Driver::begin(order, (task, &start), around, &journal).await?;
    let trained = driver.run(&shutdown).await;
    world.net.shutdown().await;
    let (state, report) = trained?;
    if let Some(out) = out {
        write(&draft, &state, out)?;
    }
    tell(config, args, &report)
}

fn write(draft: &Draft, state: &State, out: &std::path::Path) -> Result<()> {
    let Some(architecture) = &draft.architecture else { bail!("{} is no language model", draft.name) };
    let matrices = |parameters: Vec<Parameter>| {
        let matrix = |Parameter { name, rows, columns }| {
            let matrix = Matrix::new(rows, columns, state.get(&name)?.clone())?;
            Some((name, matrix))
        };
        parameters.into_iter().filter_map(matrix).collect()
    };
    let (base, tokens, classes) = (draft.base.as_ref(), draft.tokens.as_slice(), draft.data.classes.as_slice());
    Learned { architecture, base, tokens, classes, rows: &draft.data.held_out, matrices: &matrices }.write(out)?;
    // Who is handed the folder did not see what was printed.
    let label = out.join("README.md");
    std::fs::write(&label, format!("# {}\n\nTrained by `tensorlink native train`: {NOTICE}.\n", draft.name))
        .with_context(|| format!("cannot write {}", label.display()))
}

fn tell(config: &Config, args: &NativeTrainArgs, report: &Report) -> Result<()> {
    if let Some(path) = &args.report {
        let text = serde_json::to_vec_pretty(report)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    output::print(config.json, report, || words::summary(report))
}
