//! What computes behind `tensorlink serve`: this process, or with `--job` the workers of a serving job.
//!
//! | module | what lives there |
//! |---|---|
//! | here | the folder opened for its tokenizer, the job for its workers |
//! | `succession` | workers are watched, and replaced when they are lost |
//! | `successor` | the job that others are hired in |
//! | `faster` | when others would be so much faster that they serve instead |
//! | `judge` | who is right where workers differ |
//! | `closed` | why a job was closed |
//! | `formers` | jobs before are paid and settled |
//! | `record` | what is written down of a serving job for that |

mod closed;
mod faster;
mod formers;
mod judge;
mod record;
mod succession;
mod successor;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tensorlink_folder::ModelFolder;
use tensorlink_gateway::backend::{Backend, Makes, Model};
use tensorlink_gateway::local::Local;
use tensorlink_gateway::remote::{Remote, Words};
use tensorlink_net::Libp2pNet;
use tensorlink_node::blocking;
use tensorlink_node::ports::chain::JobState;
use tensorlink_types::JobId;
use tensorlink_user::User;
use tensorlink_user::placing::Work;
use tensorlink_user::serving::{Agreement, Boundaries, OpenError, Pipeline, Pipelines, ServingNote};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::commands::hiring::{self, Aim};
use crate::config::Config;
use crate::hf_tokenizer::HfTokenizer;
use crate::node::Node;

use self::closed::is_lost;
use self::judge::Recomputing;
pub(super) use self::record::Record;
use self::succession::{Current, keep};
use super::local::{describe, reading};

/// What computes.
pub(super) enum Computing {
    /// Models in this process.
    Here(Arc<Local>),
    /// Workers, the net by which they are reached, and who replaces those that are lost.
    There {
        /// The net.
        net: Arc<Libp2pNet>,
        /// The workers.
        remote: Arc<Remote>,
        /// Who says which of them is right.
        judge: Arc<Recomputing>,
        /// Ends, and has ended, what looks after them.
        keeping: (CancellationToken, JoinHandle<()>),
    },
}

/// How workers serve.
pub(super) struct How {
    /// Requests that may wait.
    pub(super) queue: usize,
    /// Silence after which workers are replaced; with none nobody is.
    pub(super) borne: Option<Duration>,
    /// Between two looks for faster workers; with none nobody looks.
    pub(super) rebalance: Option<Duration>,
    /// Lanes of each stage that must agree on a text, if not as many as when the job was posted.
    pub(super) security: Option<u16>,
    /// What computes again where they do not.
    pub(super) device: Option<String>,
}

impl Computing {
    /// Takes up a serving job of ours, with the folder it was posted from.
    pub(super) async fn there(
        config: &Config,
        (job, how): (JobId, How),
        folder: (&str, &Path),
        shutdown: &CancellationToken,
    ) -> Result<Self> {
        let (borne, rebalance) = (how.borne, how.rebalance);
        let opened = open(config, (job, how), folder, shutdown).await?;
        let Opened { node, user, current, pipelines, remote, judge } = opened;
        let (net, end) = (node.net.clone(), shutdown.child_token());
        let (config, until) = (config.clone(), end.clone());
        // From the first text on: they wait for other workers rather than fail.
        pipelines.mend(borne.is_some() && current.is_some());
        let keeping = tokio::spawn(async move {
            let Some(current) = current else { return };
            if let Err(error) = keep(&config, (node, user), (current, &pipelines), (borne, rebalance), until).await {
                tracing::warn!("workers that are lost are not replaced: {error:#}");
            }
            pipelines.mend(false);
        });
        Ok(Self::There { net, remote: Arc::new(remote), judge, keeping: (end, keeping) })
    }

    /// For the gateway.
    pub(super) fn port(&self) -> Arc<dyn Backend> {
        match self {
            Self::Here(local) => local.clone(),
            Self::There { remote, .. } => remote.clone(),
        }
    }

    /// Waits for the text that each model is at; or pays for the last, and leaves the job open.
    pub(super) async fn end(self) -> Result<()> {
        match self {
            Self::Here(local) => Ok(tokio::task::spawn_blocking(move || drop(local)).await?),
            Self::There { net, remote, judge, keeping: (end, keeping) } => {
                end.cancel();
                remote.close().await;
                judge.close().await;
                keeping.await?;
                net.shutdown().await;
                Ok(())
            }
        }
    }
}

/// A serving job that was taken up.
struct Opened {
    node: Node,
    user: Arc<User>,
    /// What it takes to hire others; nothing of a job that an earlier version posted.
    current: Option<Current>,
    pipelines: Arc<Pipelines>,
    remote: Remote,
    judge: Arc<Recomputing>,
}

/// Opens the folder for its tokenizer and the job for its workers; also one that has lost them, if others are hired.
async fn open(
    config: &Config,
    (job, how): (JobId, How),
    (id, path): (&str, &Path),
    shutdown: &CancellationToken,
) -> Result<Opened> {
    let folder = ModelFolder::open(path)?;
    let model = describe(id, &folder)?;
    let words = words(&folder, &model)?;
    let node = Node::start_to_pay(config, hiring::DISK, shutdown).await?;
    let (job, record) = Record::newest(&node, job).await?;
    let ports = &node.ports;
    // Auditors and workers may fetch the job's files from here.
    let user = User::start(ports.clone(), shutdown.clone()).await?;
    let view = ports.chain.job(job).await?;
    let view = view.with_context(|| format!("there is no job {job}; `tensorlink job list` shows those that are"))?;
    let note: ServingNote = hiring::read_note(&node, job)?;
    let plans = note.plans(ports.store.as_ref()).await?;
    let boundaries = Boundaries::new(&plans)?;
    let asked = match &record {
        Some(record) if record.hire.objective != Aim::Price => {
            let (name, longest) = (note.name.clone(), view.steps_per_interval);
            Some(blocking(move || Work::of_plans(&name, &plans, longest)).await?)
        }
        _ => None,
    };
    let makes = match model.makes {
        Makes::Text => boundaries.chooses(),
        Makes::Vectors { .. } | Makes::Scores { .. } | Makes::Classes { .. } => {
            !boundaries.chooses() && model.makes.elements().map(u64::from) == Some(boundaries.dimensions())
        }
    };
    ensure!(
        makes && model.vocabulary == boundaries.vocabulary(),
        "{id} knows {} tokens and makes {:?}, job {job} serves {} with {} tokens, which makes {}: name the folder that the \
         job was posted from",
        model.vocabulary,
        model.makes,
        note.name,
        boundaries.vocabulary(),
        if boundaries.chooses() { "text".to_owned() } else { format!("{} elements", boundaries.dimensions()) },
    );
    let lanes = how.security.or(record.as_ref().map(|record| record.security)).unwrap_or(1);
    if lanes > view.replicas {
        return Err(OpenError::Replicas { job, replicas: view.replicas, asked: lanes }.into());
    }
    let judge = Arc::new(Recomputing::new(config, (&node, &note), how.device)?);
    let agreement = Agreement::of(lanes, judge.clone());
    let goes_on = match &record {
        Some(record) => how.borne.is_some() && view.state != JobState::Running && is_lost(&user, (job, record)).await,
        None => false,
    };
    let pipeline = if goes_on {
        Pipeline::open_to_pay(ports.clone(), &view, boundaries.clone()).await?
    } else {
        Pipeline::open(ports.clone(), &view, boundaries.clone(), agreement.clone()).await?
    };
    if note.name != id {
        tracing::warn!(
            "job {job} was posted from a folder named {:?}, its texts are tokenised by that of {id:?}",
            note.name
        );
    }
    let model = Model { context: model.context.min(pipeline.longest()), ..model };
    let before = record.iter().flat_map(|record| record.before.iter().copied());
    let pipelines = Arc::new(Pipelines::new(pipeline, before));
    let remote = Remote::new(model, pipelines.clone(), words, how.queue);
    let current = record.map(|record| Current { view, record, note, boundaries, agreement, asked });
    Ok(Opened { node, user, current, pipelines, remote, judge })
}

/// How a folder's model reads and writes.
fn words(folder: &ModelFolder, model: &Model) -> Result<Words> {
    Ok(match model.makes {
        Makes::Vectors { .. } | Makes::Scores { .. } | Makes::Classes { .. } => Words::Vectors(reading(folder)?),
        Makes::Text => Words::Texts(Arc::new(HfTokenizer::of(folder)?)),
    })
}
