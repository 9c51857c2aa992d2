//! Receipts (C-12): what a serving stage claims about one text.

use alloy_primitives::{Address, B256, keccak256};
use alloy_sol_types::SolValue;
use tensorlink_types::abi::{Claim, StepStatement};
use tensorlink_types::{ClaimId, Lane, TensorRoot};

use super::{Boundary, BoundaryLists, io_root, trace_root};
use crate::merkle::List;

/// Roots of the tensors that crossed a stage's boundaries for one text. The user stands before the first stage and
/// behind the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossed {
    /// Received from the previous stage.
    pub from_previous: TensorRoot,
    /// Received from the next stage, if the program takes anything from there.
    pub from_next: Option<TensorRoot>,
    /// Given to the next stage.
    pub to_next: TensorRoot,
}

impl Crossed {
    /// Its logs: those of one step of one micro-batch.
    pub fn logs(&self) -> BoundaryLists {
        let received = [(Boundary::FromPrevious, Some(self.from_previous)), (Boundary::FromNext, self.from_next)];
        let entries = received.into_iter().chain([(Boundary::ToNext, Some(self.to_next))]);
        BoundaryLists::of_one(entries.filter_map(|(boundary, root)| Some((boundary, root?))))
    }
}

/// The receipt of text `text`, which the user numbered, and the logs that open its `io`.
pub fn receipt(lane: Lane, text: u32, crossed: &Crossed) -> (Claim, BoundaryLists) {
    let logs = crossed.logs();
    let claim = Claim {
        job: lane.job.0,
        stage: lane.stage,
        replica: lane.replica,
        interval: text,
        parentState: B256::ZERO,
        newState: B256::ZERO,
        io: io_root(&logs.roots()),
    };
    (claim, logs)
}

/// Whether a claim has the form of a receipt; one that has not is nothing to pay for and nothing to prove.
pub fn is_receipt(claim: &Claim) -> bool {
    claim.parentState.is_zero() && claim.newState.is_zero()
}

/// What a worker signs about a receipt for a text of `tokens` tokens (C-13).
pub fn receipt_statement(receipt: ClaimId, auditor: Address, tokens: u32, outputs: &[TensorRoot]) -> StepStatement {
    StepStatement {
        claimId: receipt.0,
        auditor,
        step: tokens,
        preState: B256::ZERO,
        postState: B256::ZERO,
        trace: trace_root(outputs),
    }
}

/// The receipts of an epoch, in the worker's order: their root is `Voucher.receipts`.
pub fn receipt_list(receipts: &[ClaimId]) -> List {
    List::new(receipts.iter().map(|receipt| receipt.0))
}

/// Record of a redeemed epoch in `Channels` (`IChannels.epochOf`), of the root of its receipts and the time of
/// its block.
pub fn epoch_record(receipts: B256, redeemed_at: u64) -> B256 {
    keccak256((receipts, redeemed_at).abi_encode_params())
}

#[cfg(test)]
mod tests {
    use tensorlink_types::JobId;

    use super::*;
    use crate::merkle::list_root;

    const LANE: Lane = Lane { job: JobId(4), stage: 2, replica: 1 };

    fn root(byte: u8) -> TensorRoot {
        TensorRoot(B256::repeat_byte(byte))
    }

    #[test]
    fn a_receipt_opens_to_what_crossed_and_to_nothing_else() {
        let crossed = Crossed { from_previous: root(1), from_next: None, to_next: root(2) };
        let (claim, logs) = receipt(LANE, 7, &crossed);
        assert!(is_receipt(&claim));
        assert_eq!((claim.lane(), claim.interval), (LANE, 7));
        let roots = logs.roots();
        assert_eq!(claim.io, io_root(&roots));
        assert_eq!((roots.fromPrevious, roots.toNext), (list_root([root(1)]), list_root([root(2)])));
        assert_eq!((roots.fromNext, roots.toPrevious), (B256::ZERO, B256::ZERO));
        let both = receipt(LANE, 7, &Crossed { from_next: Some(root(3)), ..crossed });
        assert_eq!(both.1.roots().fromNext, list_root([root(3)]));
        assert_ne!(both.0.io, claim.io);
    }

    #[test]
    fn a_claim_that_names_a_state_is_no_receipt() {
        let crossed = Crossed { from_previous: root(1), from_next: None, to_next: root(2) };
        let claim = || receipt(LANE, 0, &crossed).0;
        assert!(!is_receipt(&Claim { parentState: B256::repeat_byte(1), ..claim() }));
        assert!(!is_receipt(&Claim { newState: B256::repeat_byte(1), ..claim() }));
    }

    #[test]
    fn an_epoch_without_receipts_has_the_zero_root() {
        assert_eq!(receipt_list(&[]).root(), B256::ZERO);
        let ids = [ClaimId(B256::repeat_byte(1)), ClaimId(B256::repeat_byte(2))];
        let swapped = [ids[1], ids[0]];
        assert_ne!(receipt_list(&ids).root(), receipt_list(&swapped).root());
    }
}
