//! Who is right where workers that compute the same text differ: this machine computes it again, and convicts who
//! was wrong.

use anyhow::Result;
use async_trait::async_trait;
use cid::Cid;
use tensorlink_node::budget::Budget;
use tensorlink_tensor::TorchEngine;
use tensorlink_user::serving::{Judge, ServingNote, StageReceipt, Verdict};
use tensorlink_validator::{Auditor, Finding, Standing, TURNS, Target, convict};
use tokio::sync::OnceCell;

use crate::device;
use crate::node::Node;

/// Computes texts of a model again.
pub(super) struct Recomputing {
    node: Node,
    manifest: Cid,
    device: Option<String>,
    /// From the first difference on.
    auditor: OnceCell<Auditor<TorchEngine>>,
}

impl Recomputing {
    /// On a device, for the jobs that serve what was written down.
    pub(super) fn new(node: &Node, note: &ServingNote, device: Option<String>) -> Result<Self> {
        Ok(Self { node: node.clone(), manifest: note.manifest.parse()?, device, auditor: OnceCell::new() })
    }

    async fn auditor(&self) -> Result<Auditor<TorchEngine>> {
        let device = self.device.clone();
        let engine = tokio::task::spawn_blocking(move || device::open(device.as_deref())).await??;
        let memory = engine.memory()? / 2;
        let make = device::factory(engine);
        self.node.auditor(move || make(), Budget::new(memory), TURNS).await
    }

    async fn audit(&self, receipt: &StageReceipt) -> Result<Verdict> {
        let auditor = self.auditor.get_or_try_init(|| self.auditor()).await?;
        let (id, claim) = (self.node.ports.contracts.claim_id(&receipt.claim), receipt.claim.clone());
        let (lane, worker) = (claim.lane(), receipt.worker);
        let target = Target { id, claim, standing: Standing::Receipt, manifest: self.manifest, listed: None };
        Ok(match auditor.audit(&target).await? {
            Finding::Right => Verdict::Right,
            Finding::Wrong { call, fault } => {
                match convict(auditor, call).await {
                    Ok(gas) => tracing::warn!(%lane, %worker, gas, "the worker is convicted: {fault}"),
                    Err(error) => tracing::warn!(%lane, %worker, "the worker is not convicted: {error}; {fault}"),
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

#[async_trait]
impl Judge for Recomputing {
    async fn judge(&self, receipt: &StageReceipt) -> Verdict {
        self.audit(receipt).await.unwrap_or_else(|error| {
            tracing::warn!(worker = %receipt.worker, "a text could not be computed again: {error:#}");
            Verdict::Unknown
        })
    }
}
