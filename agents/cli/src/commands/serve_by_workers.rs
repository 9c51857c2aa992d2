//! What computes behind `tensorlink serve`: this process, or with `--job` the workers of a serving job.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tensorlink_folder::ModelFolder;
use tensorlink_gateway::backend::{Backend, Makes, Model};
use tensorlink_gateway::local::Local;
use tensorlink_gateway::remote::{Remote, Words};
use tensorlink_node::Roster;
use tensorlink_types::JobId;
use tensorlink_user::serving::{Pipeline, ServingNote};
use tokio_util::sync::CancellationToken;

use crate::commands::hiring;
use crate::config::Config;
use crate::hf_tokenizer::HfTokenizer;
use crate::node::Node;

use super::local::{describe, reading};

/// What computes.
pub(super) enum Computing {
    /// Models in this process.
    Here(Arc<Local>),
    /// Workers, and the node by which they are reached.
    There {
        /// The node.
        node: Box<Node>,
        /// The workers.
        remote: Arc<Remote>,
    },
}

impl Computing {
    /// Takes up a serving job of ours, with the folder it was posted from.
    pub(super) async fn there(
        config: &Config,
        (job, queue): (JobId, usize),
        folder: (&str, &Path),
        shutdown: &CancellationToken,
    ) -> Result<Self> {
        let (node, remote) = open(config, (job, queue), folder, shutdown).await?;
        Ok(Self::There { node: Box::new(node), remote: Arc::new(remote) })
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
            Self::There { node, remote } => {
                remote.close().await;
                node.net.shutdown().await;
                Ok(())
            }
        }
    }
}

/// Opens the folder for its tokenizer and the job for its workers.
async fn open(
    config: &Config,
    (job, queue): (JobId, usize),
    (id, path): (&str, &Path),
    shutdown: &CancellationToken,
) -> Result<(Node, Remote)> {
    let folder = ModelFolder::open(path)?;
    let model = describe(id, &folder)?;
    let words = words(&folder, &model)?;
    let node = Node::start(config, hiring::DISK, shutdown).await?;
    let ports = &node.ports;
    // Auditors and workers may fetch the job's files from here.
    ports.net.set_gate(Arc::new(Roster::new(ports.identity.address())));
    let view = ports.chain.job(job).await?;
    let view = view.with_context(|| format!("there is no job {job}; `tensorlink job list` shows those that are"))?;
    let note: ServingNote = hiring::read_note(&node, job)?;
    let boundaries = note.boundaries(ports.store.as_ref()).await?;
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
    let pipeline = Pipeline::open(ports.clone(), &view, boundaries).await?;
    if note.name != id {
        tracing::warn!(
            "job {job} was posted from a folder named {:?}, its texts are tokenised by that of {id:?}",
            note.name
        );
    }
    let model = Model { context: model.context.min(pipeline.longest()), ..model };
    Ok((node, Remote::new(model, pipeline, words, queue)))
}

/// How a folder's model reads and writes.
fn words(folder: &ModelFolder, model: &Model) -> Result<Words> {
    Ok(match model.makes {
        Makes::Vectors { .. } | Makes::Scores { .. } | Makes::Classes { .. } => Words::Vectors(reading(folder)?),
        Makes::Text => Words::Texts(Arc::new(HfTokenizer::of(folder)?)),
    })
}
