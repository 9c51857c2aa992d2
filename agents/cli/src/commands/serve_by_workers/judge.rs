//! Who is right where workers that compute the same text differ: this machine computes it again, and convicts who
//! was wrong.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use cid::Cid;
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_tensor::TorchEngine;
use tensorlink_types::{Address, Lane};
use tensorlink_user::serving::{Judge, Receipts, ServingNote, StageReceipt, TextReceipts, Verdict};
use tensorlink_validator::{Auditor, Finding, TURNS, Target, convict};
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::device;
use crate::node::Node;

/// In the data folder, for receipts that differ.
const FOLDER: &str = "differences";
/// Attempts to convict a worker: the chain may be away for some minutes.
const ATTEMPTS: Policy = Policy { attempts: 6, first: Duration::from_secs(5), longest: Duration::from_secs(80) };
/// For convictions under way when the process ends.
const LAST: Duration = Duration::from_secs(20);

/// Computes texts of a model again.
pub(in crate::commands) struct Recomputing {
    node: Node,
    manifest: Cid,
    device: Option<String>,
    /// For what lanes signed that differ.
    folder: PathBuf,
    /// From the first difference on.
    auditor: OnceCell<Arc<Auditor<TorchEngine>>>,
    /// Workers that are convicted, or about to be: each may have given many texts wrongly.
    convicted: Mutex<BTreeSet<Address>>,
    convicting: TaskTracker,
}

impl Recomputing {
    /// On a device, for the jobs that serve what was written down; what differs is kept in the data folder.
    pub(super) fn new(config: &Config, (node, note): (&Node, &ServingNote), device: Option<String>) -> Result<Self> {
        let (node, manifest, folder) = (node.clone(), note.manifest.parse()?, config.data_dir.join(FOLDER));
        let (auditor, convicted, convicting) = (OnceCell::new(), Mutex::default(), TaskTracker::new());
        Ok(Self { node, manifest, device, folder, auditor, convicted, convicting })
    }

    /// Waits for convictions that are under way, not for long. What was signed is on disk.
    pub(super) async fn close(&self) {
        self.convicting.close();
        if tokio::time::timeout(LAST, self.convicting.wait()).await.is_err() {
            tracing::warn!(
                "a worker that computed wrongly may not be convicted: run `tensorlink challenge --receipt` with what is in {}",
                self.folder.display()
            );
        }
    }

    async fn auditor(&self) -> Result<Arc<Auditor<TorchEngine>>> {
        let device = self.device.clone();
        let (make, memory) = tokio::task::spawn_blocking(move || device::for_audits(device.as_deref())).await??;
        Ok(Arc::new(self.node.auditor(move || make(), memory, TURNS).await?))
    }

    /// Writes down what a lane signed, so that it can still be proven if this process ends or no proof gets through.
    fn keep(&self, signed: &TextReceipts, receipt: &StageReceipt) -> Result<PathBuf> {
        std::fs::create_dir_all(&self.folder)?;
        let name = format!("{}-{}-{}-{}.json", signed.job, signed.text, receipt.stage, receipt.claim.replica);
        let path = self.folder.join(name);
        std::fs::write(&path, serde_json::to_vec(&Receipts { texts: vec![signed.clone()] })?)?;
        Ok(path)
    }

    async fn audit(&self, signed: &TextReceipts) -> Result<Verdict> {
        let Some(receipt) = signed.stages.first() else { return Ok(Verdict::Unknown) };
        let kept = self.keep(signed, receipt)?;
        let auditor = self.auditor.get_or_try_init(|| self.auditor()).await?;
        let (lane, worker) = (receipt.claim.lane(), receipt.worker);
        let target = Target::of_receipt(&self.node.ports.contracts, receipt.claim.clone(), self.manifest);
        Ok(match auditor.audit(&target).await? {
            Finding::Right => {
                forget(&kept);
                Verdict::Right
            }
            Finding::Wrong { call, fault } => {
                if self.convicted.lock().unwrap_or_else(PoisonError::into_inner).insert(worker) {
                    self.convicting.spawn(convicts(Arc::clone(auditor), call, (lane, worker, fault), kept));
                }
                Verdict::Wrong
            }
            Finding::Withheld { .. } => Verdict::Wrong,
            Finding::Unproven(reason) => {
                tracing::warn!(%lane, %worker, "the worker's receipt cannot be decided upon: {reason}");
                Verdict::Unknown
            }
        })
    }
}

/// What a lane signed is of no use any more.
fn forget(kept: &Path) {
    if let Err(error) = std::fs::remove_file(kept) {
        tracing::debug!(kept = %kept.display(), %error, "a receipt that nobody needs is left");
    }
}

/// Convicts a worker, though the chain may be away for a while.
async fn convicts(
    auditor: Arc<Auditor<TorchEngine>>,
    call: Box<Call>,
    (lane, worker, fault): (Lane, Address, String),
    kept: PathBuf,
) {
    let convicted = retry(auditor.ports().clock.as_ref(), ATTEMPTS, || async {
        convict(&auditor, call.clone()).await.map_err(|error| {
            tracing::warn!(%lane, %worker, "the worker is not convicted: {error}; {fault}");
            match error {
                error @ ChainError::Reverted { .. } => Failure::Permanent(error),
                error => Failure::Transient(error),
            }
        })
    });
    if let Ok(gas) = convicted.await {
        tracing::warn!(%lane, %worker, gas, "the worker is convicted: {fault}");
        forget(&kept);
    }
}

#[async_trait]
impl Judge for Recomputing {
    async fn judge(&self, signed: &TextReceipts) -> Verdict {
        self.audit(signed).await.unwrap_or_else(|error| {
            tracing::warn!(job = %signed.job, text = signed.text, "a text could not be computed again: {error:#}");
            Verdict::Unknown
        })
    }
}
