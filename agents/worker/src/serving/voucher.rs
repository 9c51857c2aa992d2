//! What a voucher must be before a worker calls a text paid.

use tensorlink_proof::commit::{Contracts, SignatureError, receipt_list, verify_signer};
use tensorlink_types::abi::Voucher;
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane};
use thiserror::Error;

/// Prefixes tried beside the one that the voucher's tokens point to, the longest first: for a user that pays more or
/// less than it received. More than the receipts of an epoch and of all texts at work.
const TRIED: usize = 1024;

/// Why a voucher is declined. Its text goes to the user.
#[derive(Debug, Error)]
pub enum VoucherError {
    /// Of another lane.
    #[error("the voucher is for {0}")]
    Lane(Lane),
    /// Signed by somebody else, or for other contracts.
    #[error("the voucher is not signed by the job's user: {0}")]
    Signature(#[from] SignatureError),
    /// An epoch that is over, or too far ahead.
    #[error("the voucher is of epoch {epoch}; epoch {open} is open here: sign for it, or for the next")]
    Epoch {
        /// Of the voucher.
        epoch: u32,
        /// The open one.
        open: u32,
    },
    /// It skips tokens, or pays some twice.
    #[error(
        "the voucher's epoch {epoch} begins at {before} tokens, and vouchers of the epochs before it pay {}: sign for those first",
        due.map_or_else(|| "nothing yet of the one that is open".to_owned(), |due| due.to_string())
    )]
    Before {
        /// Tokens of the epochs before, says the voucher.
        before: u32,
        /// Its epoch.
        epoch: u32,
        /// What they are; none while there is no voucher of the last of them.
        due: Option<u32>,
    },
    /// Of one epoch more, while those before it are not redeemed.
    #[error("{waiting} epochs wait to be redeemed: sign for epoch {epoch} when they are")]
    Waiting {
        /// The voucher's epoch.
        epoch: u32,
        /// Epochs that are over and not redeemed.
        waiting: usize,
    },
    /// Less than was paid already.
    #[error("the voucher pays {tokens} tokens, an earlier one {paid}: tokens are counted since the job began")]
    Fewer {
        /// Of the voucher.
        tokens: u32,
        /// Paid already.
        paid: u32,
    },
    /// More than the contract pays.
    #[error("the voucher pays {tokens} tokens, the job at most {most} of each lane")]
    TooMany {
        /// Of the voucher.
        tokens: u32,
        /// What the job pays for.
        most: u32,
    },
    /// Not a list of ours.
    #[error(
        "the voucher names receipts with root {named}; those of epoch {epoch} here are {count} with root {actual}, none of whose beginnings fits: ask for the epoch's receipts and sign them in that order, none fewer than before"
    )]
    Receipts {
        /// Of the voucher.
        named: B256,
        /// Its epoch.
        epoch: u32,
        /// Receipts of that epoch.
        count: usize,
        /// Root of all of them.
        actual: B256,
    },
}

/// Whom and what a lane's vouchers must name.
#[derive(Clone, Copy, Debug)]
pub struct Payer {
    /// The lane.
    pub lane: Lane,
    /// The job's user.
    pub user: Address,
    /// Most tokens that the job pays for.
    pub most: u32,
    /// Domains of signatures.
    pub contracts: Contracts,
}

impl Payer {
    /// Checks everything about a voucher that does not depend on receipts.
    ///
    /// # Errors
    /// [`VoucherError`].
    pub fn check(&self, voucher: &Voucher, signature: &[u8], paid: u32) -> Result<(), VoucherError> {
        let lane = Lane { job: JobId(voucher.job), stage: voucher.stage, replica: voucher.replica };
        if lane != self.lane {
            return Err(VoucherError::Lane(lane));
        }
        verify_signer(signature, self.contracts.voucher(voucher), self.user)?;
        let (tokens, most) = (voucher.tokens, self.most);
        if tokens < paid {
            return Err(VoucherError::Fewer { tokens, paid });
        }
        if tokens > most { Err(VoucherError::TooMany { tokens, most }) } else { Ok(()) }
    }
}

/// How many of an epoch's receipts, in the worker's order and with their tokens, a voucher names: at least `least`.
///
/// # Errors
/// [`VoucherError::Receipts`].
pub fn named(voucher: &Voucher, receipts: &[(ClaimId, u32)], least: usize) -> Result<usize, VoucherError> {
    let ids: Vec<ClaimId> = receipts.iter().map(|(id, _)| *id).collect();
    let root = |count: usize| receipt_list(ids.get(..count).unwrap_or_default()).root();
    let mut sum = u64::from(voucher.before);
    let paid = |(_, tokens): &&(ClaimId, u32)| {
        sum = sum.saturating_add(u64::from(*tokens));
        sum <= u64::from(voucher.tokens)
    };
    let likely = receipts.iter().take_while(paid).count();
    let longest = (least..=ids.len()).rev().take(TRIED);
    let mut tried = std::iter::once(likely).chain(longest).filter(|count| *count >= least);
    tried.find(|count| root(*count) == voucher.receipts).ok_or_else(|| VoucherError::Receipts {
        named: voucher.receipts,
        epoch: voucher.epoch,
        count: ids.len(),
        actual: root(ids.len()),
    })
}

#[cfg(test)]
mod tests {
    use tensorlink_node::Identity;

    use super::*;

    const LANE: Lane = Lane { job: JobId(3), stage: 1, replica: 0 };
    const CONTRACTS: Contracts = Contracts {
        chain_id: 5,
        jobs: Address::repeat_byte(1),
        checkpoints: Address::repeat_byte(2),
        channels: Address::repeat_byte(3),
        disputes: Address::repeat_byte(4),
        custody: Address::repeat_byte(5),
    };

    fn voucher(tokens: u32, receipts: B256) -> Voucher {
        Voucher { job: 3, stage: 1, replica: 0, epoch: 1, before: 50, tokens, receipts }
    }

    #[test]
    fn only_the_users_own_word_for_this_lane_pays() {
        let user = Identity::new(&[7; 32]).unwrap();
        let payer = Payer { lane: LANE, user: user.address(), most: 100, contracts: CONTRACTS };
        let sign = |voucher: &Voucher| user.sign(CONTRACTS.voucher(voucher)).unwrap();
        let good = voucher(10, B256::ZERO);
        payer.check(&good, &sign(&good), 10).unwrap();
        assert!(matches!(payer.check(&good, &sign(&good), 11), Err(VoucherError::Fewer { tokens: 10, paid: 11 })));
        let other = voucher(11, B256::ZERO);
        assert!(matches!(payer.check(&other, &sign(&good), 0), Err(VoucherError::Signature(_))));
        let elsewhere = Voucher { stage: 0, ..voucher(10, B256::ZERO) };
        assert!(matches!(payer.check(&elsewhere, &sign(&elsewhere), 0), Err(VoucherError::Lane(_))));
        let greedy = voucher(101, B256::ZERO);
        assert!(matches!(payer.check(&greedy, &sign(&greedy), 0), Err(VoucherError::TooMany { most: 100, .. })));
    }

    #[test]
    fn a_voucher_names_a_beginning_of_the_list_and_never_a_shorter_one() {
        let receipts: Vec<_> = (1..=100u8).map(|n| (ClaimId(B256::repeat_byte(n)), 2)).collect();
        let root = |count: usize| receipt_list(&receipts[..count].iter().map(|(id, _)| *id).collect::<Vec<_>>()).root();
        // By its tokens, wherever it stands; by its root alone, too.
        assert_eq!(named(&voucher(50 + 2 * 7, root(7)), &receipts, 3).unwrap(), 7);
        assert_eq!(named(&voucher(0, root(99)), &receipts, 3).unwrap(), 99);
        assert_eq!(named(&voucher(900, root(100)), &receipts, 100).unwrap(), 100);
        assert_eq!(named(&voucher(50, B256::ZERO), &receipts, 0).unwrap(), 0);
        assert_eq!(named(&voucher(51, root(20)), &receipts, 0).unwrap(), 20, "of texts that came to nothing");
        for (tokens, root, least) in [(64, root(7), 8), (64, B256::repeat_byte(9), 0), (50, B256::ZERO, 1)] {
            assert!(matches!(named(&voucher(tokens, root), &receipts, least), Err(VoucherError::Receipts { .. })));
        }
        let mut swapped: Vec<ClaimId> = receipts.iter().map(|(id, _)| *id).collect();
        swapped.swap(0, 1);
        let error = named(&voucher(250, receipt_list(&swapped).root()), &receipts, 0).unwrap_err().to_string();
        assert!(error.contains("ask for the epoch's receipts"), "{error}");
    }
}
