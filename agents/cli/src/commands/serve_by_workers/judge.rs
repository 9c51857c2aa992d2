//! Who is right where workers that compute the same text differ: this machine computes it again, and convicts who
//! was wrong.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use cid::Cid;
use tensorlink_node::budget::Budget;
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_tensor::TorchEngine;
use tensorlink_types::{Address, Lane};
use tensorlink_user::serving::{Judge, Receipts, ServingNote, StageReceipt, TextReceipts, Verdict};
use tensorlink_validator::{Auditor, Finding, Standing, TURNS, Target, convict};
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::device;
use crate::node::Node;

/// In the data folder, for receipts that differ.
const FOLDER: &str = "differences";
/// Attempts to convict a worker, and the pause before the second; each later one is twice as long.
const ATTEMPTS: u32 = 6;
const PAUSE: Duration = Duration::from_secs(5);
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
        let engine = tokio::task::spawn_blocking(move || device::open(device.as_deref())).await??;
        let memory = engine.memory()? / 2;
        let make = device::factory(engine);
        Ok(Arc::new(self.node.auditor(move || make(), Budget::new(memory), TURNS).await?))
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
        let (id, claim) = (self.node.ports.contracts.claim_id(&receipt.claim), receipt.claim.clone());
        let (lane, worker) = (claim.lane(), receipt.worker);
        let target = Target { id, claim, standing: Standing::Receipt, manifest: self.manifest, listed: None };
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
    let mut pause = PAUSE;
    for _ in 0..ATTEMPTS {
        match convict(&auditor, call.clone()).await {
            Ok(gas) => {
                tracing::warn!(%lane, %worker, gas, "the worker is convicted: {fault}");
                forget(&kept);
                return;
            }
            Err(error) => {
                tracing::warn!(%lane, %worker, "the worker is not convicted: {error}; {fault}");
                if matches!(error, ChainError::Reverted { .. }) {
                    return;
                }
            }
        }
        auditor.ports().clock.sleep(pause).await;
        pause = pause.saturating_mul(2);
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
