//! The user's side of the job: publishes the stages, starts a process for each worker, opens the pipeline.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tensorlink_model::Quantized;
use tensorlink_model::memory::cut;
use tensorlink_node::Roster;
use tensorlink_node::ports::Protocol;
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::Lane;
use tensorlink_user::serving::{Agreement, Pipeline, PreparedServing, Text, publish_serving};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio_util::sync::CancellationToken;

use super::job::{self, JOB, Job};
use super::ledger::Ledger;
use super::process::{self, Memory};
use super::worker::{DISK, READY};
use crate::subject::{chosen, likeliest};
use crate::{Bench, Joined, Part, Place};

/// Longest wait for a worker to fetch its stage.
const PATIENCE: Duration = Duration::from_secs(300);
/// Between two looks whether it has.
const PAUSE: Duration = Duration::from_millis(50);

/// A worker's process. It ends with its standard input, and is killed when this is dropped.
struct Worker {
    process: Child,
    input: ChildStdin,
    /// Says nothing more, and must not be closed.
    _output: BufReader<ChildStdout>,
    /// Of the process with its engine and node, and no weights.
    empty: Memory,
}

/// A job and everybody in it.
pub(crate) struct Cluster {
    pipeline: Pipeline,
    workers: Vec<Worker>,
    node: Joined,
    _folder: tempfile::TempDir,
}

impl Worker {
    async fn start(bench: &Bench<'_>, folder: &std::path::Path, stage: u16) -> Result<Self> {
        let mut command = bench.process(&Part::Worker { folder: folder.to_owned(), stage })?;
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (process.stdin.take().context("no pipe")?, process.stdout.take().context("no pipe")?);
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line).await?;
        ensure!(line.trim() == READY, "the process of worker {stage} did not start: see above");
        let empty = process::memory(process.id().context("the worker has ended")?)?;
        Ok(Self { process, input, _output: output, empty })
    }

    fn id(&self) -> Result<u32> {
        self.process.id().context("a worker has ended: see above")
    }
}

impl Cluster {
    /// Starts a job of so many stages, for texts of up to `longest` tokens.
    pub(crate) async fn start(bench: &Bench<'_>, model: &Quantized, stages: u16, longest: u32) -> Result<Self> {
        let ranges = cut(model.architecture(), stages)?;
        let prepared = tokio::task::block_in_place(|| PreparedServing::new(model, &ranges, longest))?;
        let programs = prepared.stages.iter().map(|stage| stage.programs).collect();
        let mut job = Job { manifest: String::new(), programs, longest, user_at: Vec::new() };
        let folder = tempfile::tempdir()?;
        let identity = job::user()?;
        let own = identity.address();
        let chain = Arc::new(Ledger::new(&job, folder.path(), own, Vec::new())?);
        let place = Place { folder: &folder.path().join("user"), disk: DISK, bootstrap: Vec::new() };
        let node = bench.binary.join(place, (identity, chain), &CancellationToken::new()).await?;
        node.ports.net.set_gate(Arc::new(Roster::new(own)));
        let published = publish_serving(node.ports.store.as_ref(), "bench", &prepared).await?;
        drop(prepared);
        job.manifest = published.manifest.to_string();
        job.user_at = node.net.listen_addresses().await?.iter().map(ToString::to_string).collect();
        job.write(folder.path())?;

        let mut workers = Vec::new();
        for stage in 0..stages {
            workers.push(Worker::start(bench, folder.path(), stage).await?);
        }
        for worker in &mut workers {
            worker.input.write_all(b"\n").await?;
        }
        let boundaries = published.note.boundaries(node.ports.store.as_ref()).await?;
        let pipeline = Pipeline::open(node.ports.clone(), &job.view()?, boundaries, Agreement::of_one()).await?;
        let cluster = Self { pipeline, workers, node, _folder: folder };
        for stage in 0..stages {
            tokio::time::timeout(PATIENCE, cluster.serves(stage))
                .await
                .context("a worker does not come to serve")??;
        }
        Ok(cluster)
    }

    /// Waits until the worker of a stage serves.
    async fn serves(&self, stage: u16) -> Result<()> {
        let worker = job::worker(stage)?.address();
        // Forgetting a text that never was changes nothing.
        let question = Request::Abandon { lane: Lane { job: JOB, stage, replica: 0 }, text: u32::MAX };
        let question = encode("request", &question)?;
        loop {
            if let Ok(answer) = self.node.ports.net.request(worker, Protocol::Rpc, question.clone()).await
                && decode::<Response>("response", &answer)? == Response::Done
            {
                return Ok(());
            }
            for worker in &self.workers {
                worker.id()?;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Begins a text.
    pub(crate) async fn begin(&self) -> Result<Text> {
        let number = self.pipeline.reserve(1)?.start;
        Ok(self.pipeline.begin(number).await?)
    }

    /// Memory of each worker's process: before it had weights, and now.
    pub(crate) fn memory(&self) -> Result<Vec<(Memory, Memory)>> {
        self.workers.iter().map(|worker| Ok((worker.empty, process::memory(worker.id()?)?))).collect()
    }

    /// Processor time of everybody, the user among them.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let own = process::processor_time(std::process::id())?;
        self.workers.iter().try_fold(own, |sum, worker| Ok(sum + process::processor_time(worker.id()?)?))
    }

    /// Pays what is owed, and stops everybody.
    pub(crate) async fn stop(self) -> Result<()> {
        self.pipeline.close().await;
        for Worker { mut process, input, .. } in self.workers {
            drop(input);
            if tokio::time::timeout(PATIENCE, process.wait()).await.is_err() {
                bail!("a worker does not stop");
            }
        }
        self.node.net.shutdown().await;
        Ok(())
    }
}

/// Sends the next tokens of a text through the pipeline and takes the likeliest after them; how long that took.
pub(crate) async fn step(text: &mut Text, tokens: &[u32], last: bool) -> Result<(u32, Duration)> {
    let controls = likeliest(text.tokens(), tokens)?;
    let start = Instant::now();
    let step = text.advance(tokens, Some(&controls), last).await?;
    let took = start.elapsed();
    Ok((chosen(&step.output)?, took))
}
