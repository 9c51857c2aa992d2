//! The program whose figures these are, as its bench sees it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Error, Result};
use async_trait::async_trait;
use tensorlink_native::Floats;
use tensorlink_net::Libp2pNet;
use tensorlink_node::ports::Chain;
use tensorlink_node::{Identity, Ports};
use tensorlink_program::EngineError;
use tensorlink_tensor::TorchEngine;
use tokio_util::sync::CancellationToken;

use super::{Bench, Row};

/// Makes engines for each lane: clones of one whose kernels have passed their self-test.
pub type Engines = Arc<dyn Fn() -> Result<TorchEngine, EngineError> + Send + Sync>;

/// What the program does for its bench: devices are opened and nodes are put together as they are for its users, so
/// that what is measured is what they have.
#[async_trait]
pub trait Binary: Sync {
    /// Arguments by which another process of the program does a part, and measures the same as this bench.
    fn arguments(&self, part: &Part, bench: &Bench<'_>) -> Vec<OsString>;

    /// Opens a device: `cpu`, `cuda` or `cuda:N`.
    ///
    /// # Errors
    /// For a name of no device; if the device fails or computes wrongly.
    fn engines(&self, device: &str) -> Result<Engines>;

    /// A device as native mode has it.
    ///
    /// # Errors
    /// When there is no such device.
    fn floats(&self, device: &str) -> Result<Box<dyn Floats>>;

    /// Joins the network of the loopback interface, on a chain that is there already.
    ///
    /// # Errors
    /// When the net or the disk fails.
    async fn join(
        &self,
        place: Place<'_>,
        account: (Identity, Arc<dyn Chain>),
        shutdown: &CancellationToken,
    ) -> Result<Joined>;

    /// Prints a line to standard output.
    ///
    /// # Errors
    /// When nobody reads any more.
    fn print(&self, line: &str) -> Result<()>;

    /// An error for people, with its causes.
    fn words(&self, error: &Error) -> String;
}

/// What a process that the bench starts is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// To measure a row, and to print its figures as JSON.
    Row(Row),
    /// To be a worker of a job.
    Worker {
        /// Where the job lies.
        folder: PathBuf,
        /// The worker's stage.
        stage: u16,
    },
    /// To be a class of devices, and to take the intervals of row `native`.
    Class {
        /// Where they lie.
        folder: PathBuf,
        /// Where the states after them go.
        out: PathBuf,
    },
}

/// Where a node keeps its files, and whom it knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place<'a> {
    /// Its data folder.
    pub folder: &'a Path,
    /// Most that its store holds, bytes.
    pub disk: u64,
    /// Multiaddresses of the peers that it asks first.
    pub bootstrap: Vec<String>,
}

/// A node that has joined.
pub struct Joined {
    /// What a role sees of the world.
    pub ports: Ports,
    /// Its net, which whoever joined shuts down.
    pub net: Arc<Libp2pNet>,
}
