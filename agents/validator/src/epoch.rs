//! The receipts of an epoch of a serving lane: named on chain by the root of their list, told by their worker.

use cid::Cid;
use tensorlink_node::serving::MAX_RECEIPTS;
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::commit::{is_receipt, receipt_list};
use tensorlink_types::{B256, ClaimId, Lane};
use thiserror::Error;

use crate::ask::ask;
use crate::auditor::Auditor;
use crate::draw::{Rate, drawn};
use crate::finding::Gap;
use crate::target::{Listed, Standing, Target};

/// An epoch whose voucher was redeemed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch {
    /// The lane.
    pub lane: Lane,
    /// The epoch.
    pub epoch: u32,
    /// List root of the claim ids of its receipts.
    pub receipts: B256,
    /// When it was redeemed, seconds.
    pub redeemed_at: u64,
    /// Block of the redemption, which salts the lottery.
    pub block: B256,
    /// CID of the job's manifest.
    pub manifest: Cid,
}

/// Why an epoch's receipts are not known. The worker owes them to every auditor.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Withheld(String);

impl Epoch {
    /// Asks the worker for the epoch's receipts and checks them against the voucher.
    ///
    /// # Errors
    /// [`Withheld`].
    pub async fn claims<E: Engine + Send + 'static>(&self, auditor: &Auditor<E>) -> Result<Vec<Target>, Withheld> {
        let withheld = |gap: Gap| Withheld(gap.to_string());
        let assigned = auditor.ports.chain.assignment(self.lane).await;
        let (worker, _) = assigned.map_err(|error| Withheld(error.to_string()))?;
        let question = Request::Receipts { lane: self.lane, epoch: self.epoch };
        let Response::Receipts(claims) = ask(&auditor.ports, worker, &question).await.map_err(withheld)? else {
            return Err(withheld(Gap::OffTopic));
        };
        // Of texts that came to nothing no token is paid, so tokens bound no list.
        if claims.len() > MAX_RECEIPTS || claims.iter().any(|claim| claim.lane() != self.lane || !is_receipt(claim)) {
            return Err(withheld(Gap::NoReceipt));
        }
        let target = |claim| {
            let id = auditor.ports.contracts.claim_id(&claim);
            Target { id, claim, standing: Standing::Receipt, manifest: self.manifest, listed: None }
        };
        let mut targets: Vec<Target> = claims.into_iter().map(target).collect();
        let ids: Vec<ClaimId> = targets.iter().map(|target| target.id).collect();
        let list = receipt_list(&ids);
        if list.root() != self.receipts {
            return Err(withheld(Gap::Record("list of receipts")));
        }
        for (index, target) in (0..).zip(&mut targets) {
            let siblings = list.prove(u64::from(index)).map_err(|error| Withheld(error.to_string()))?;
            let (epoch, redeemed_at, receipts) = (self.epoch, self.redeemed_at, self.receipts);
            target.listed = Some(Listed { epoch, redeemed_at, receipts, index, siblings });
        }
        Ok(targets)
    }

    /// Those that this validator audits, by the same lottery as claims on chain.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn draw<E>(&self, auditor: &Auditor<E>, targets: &[Target], rate: Rate) -> Result<Vec<Target>, SignatureError> {
        let mut chosen = Vec::new();
        for target in targets {
            if drawn(&auditor.ports.identity, target.id, self.block, rate)? {
                chosen.push(target.clone());
            }
        }
        Ok(chosen)
    }
}
