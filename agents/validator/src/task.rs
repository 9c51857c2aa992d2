//! One thing that a validator looks into, for as long as its patience lasts: a claim, or the list of an
//! epoch's receipts.

use tensorlink_program::engine::Engine;
use tensorlink_proof::fraud::Signed;
use tensorlink_types::ClaimId;
use tokio::sync::OwnedSemaphorePermit;

use crate::accused::defend;
use crate::auditor::Auditor;
use crate::draw::Rate;
use crate::epoch::Epoch;
use crate::examine::{decided, examine};
use crate::listing::list;
use crate::target::Target;

/// Something to look into.
pub(crate) enum Task {
    /// A claim that was drawn.
    Claim(Target),
    /// An epoch of receipts, to be drawn from.
    Epoch(Epoch),
    /// A claim on which we have a challenge open.
    Challenged(Target),
    /// A claim whose worker accuses an auditor of a wrong answer.
    Accused(Target, Signed),
}

/// What came of it.
pub(crate) enum Ended {
    /// Nothing is left to do about a claim.
    Claim(ClaimId),
    /// These receipts are listed, and these of them we chose to look at.
    Epoch { listed: Vec<Target>, chosen: Vec<Target> },
    /// It was not decided.
    Open,
}

impl Task {
    /// What has a clock against us, and waits for no place.
    pub(crate) const fn is_urgent(&self) -> bool {
        matches!(self, Self::Challenged(_) | Self::Accused(..))
    }

    /// Does it, with bounded patience.
    /// `slot` is its place among those looked into at once, which it leaves where it only waits for a challenge.
    pub(crate) async fn run<E: Engine + Send + 'static>(
        self,
        auditor: &Auditor<E>,
        rate: Rate,
        slot: Option<OwnedSemaphorePermit>,
    ) -> Ended {
        match self {
            Self::Claim(target) => {
                if examine(auditor, &target, slot).await {
                    Ended::Claim(target.id)
                } else {
                    Ended::Open
                }
            }
            Self::Challenged(target) => {
                drop(slot);
                let ended = auditor.resume(&target).await;
                if decided(&target, ended) { Ended::Claim(target.id) } else { Ended::Open }
            }
            Self::Accused(target, accusation) => {
                drop(slot);
                defend(auditor, &target, &accusation).await;
                Ended::Open
            }
            Self::Epoch(epoch) => match list(auditor, &epoch, rate).await {
                Some((listed, chosen)) => Ended::Epoch { listed, chosen },
                None => Ended::Open,
            },
        }
    }
}
