//! What a user owes a lane: the receipts of an epoch in the order in which the worker signed them, and the voucher for them.
//!
//! | state of a receipt | move | next |
//! |---|---|---|
//! | — | the worker's answer, checked ([`Account::enter`]) | entered |
//! | entered | its text is delivered whole ([`Account::finish`]) | owed |
//! | entered | its text fails in another lane ([`Account::withdraw`]) | gone; the worker is told (`Abandon`) |
//! | owed | every earlier one is owed, too ([`Account::due`]) | in the voucher |
//!
//! Both sides keep one order, so a voucher's list is always the beginning of the worker's. A voucher waits for the texts before it; a
//! text ends one way or the other within the pipeline's bounds.

use serde::{Deserialize, Serialize};
use tensorlink_proof::commit::receipt::receipt_list;
use tensorlink_types::abi::Voucher;
use tensorlink_types::{ClaimId, Lane};
use thiserror::Error;

/// Receipts of an epoch: bounds what an auditor has to fetch for one that it draws, and what is kept here.
pub const EPOCH: usize = 256;
/// Receipts that wait for the worker to take the voucher of a full epoch; beyond them it gets no more texts.
pub const WAITING: usize = 256;

/// Why an account does not fit what the chain or the job says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AccountError {
    /// The chain paid more than this account ever signed for.
    #[error(
        "the lane has redeemed {tokens} tokens in epoch {epoch}, more than was signed for here: use the data directory \
         of the node that served this job, or cancel the job"
    )]
    Stale {
        /// Last epoch redeemed.
        epoch: u32,
        /// Tokens redeemed.
        tokens: u32,
    },
    /// The job pays for no more.
    #[error("the job pays {most} tokens a lane, and {owed} are owed already: post another job")]
    Spent {
        /// Most tokens of the job.
        most: u32,
        /// Tokens owed.
        owed: u32,
    },
    /// The worker does not take vouchers.
    #[error("{0} receipts wait for the worker to take a voucher: it gets no more texts until it does")]
    Unpayable(usize),
}

/// A receipt of the present epoch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Entry {
    text: u32,
    receipt: ClaimId,
    tokens: u32,
    owed: bool,
}

/// The account of a lane; on disk between texts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Account {
    /// The present epoch, from 1.
    epoch: u32,
    /// Tokens of the epochs before.
    before: u32,
    /// Receipts of this epoch and what waits for the next, in the worker's order.
    receipts: Vec<Entry>,
    /// How many of them the worker has a voucher for.
    paid: usize,
    /// The last voucher that was made, to be sent again to a worker that may have lost it.
    latest: Option<Voucher>,
}

impl Default for Account {
    fn default() -> Self {
        Self { epoch: 1, before: 0, receipts: Vec::new(), paid: 0, latest: None }
    }
}

impl Account {
    /// Tokens since the job began, those of texts under way among them.
    pub fn tokens(&self) -> u32 {
        self.receipts.iter().fold(self.before, |sum, entry| sum.saturating_add(entry.tokens))
    }

    /// The present epoch.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The last voucher that was made.
    pub const fn latest(&self) -> Option<&Voucher> {
        self.latest.as_ref()
    }

    /// Whether a receipt of this text is owed or paid in this epoch.
    pub fn owes(&self, text: u32) -> bool {
        self.receipts.iter().any(|entry| entry.text == text && entry.owed)
    }

    /// Whether the lane can take a text of `tokens` more, of a job that pays for `most`.
    ///
    /// # Errors
    /// [`AccountError::Spent`], [`AccountError::Unpayable`].
    pub fn admit(&self, tokens: u32, most: u32) -> Result<(), AccountError> {
        let owed = self.tokens();
        if owed.checked_add(tokens).is_none_or(|sum| sum > most) {
            return Err(AccountError::Spent { most, owed });
        }
        if self.receipts.len() >= EPOCH + WAITING {
            return Err(AccountError::Unpayable(self.receipts.len()));
        }
        Ok(())
    }

    /// Enters a receipt that the worker has just signed; once for each text.
    pub fn enter(&mut self, text: u32, receipt: ClaimId, tokens: u32) {
        if !self.receipts.iter().any(|entry| entry.text == text) {
            self.receipts.push(Entry { text, receipt, tokens, owed: false });
        }
    }

    /// The text is delivered: its receipt will be paid.
    pub fn finish(&mut self, text: u32) {
        self.receipts.iter_mut().filter(|entry| entry.text == text).for_each(|entry| entry.owed = true);
    }

    /// The text was not delivered: its receipt will not be paid. Whether there was one.
    pub fn withdraw(&mut self, text: u32) -> bool {
        let before = self.receipts.len();
        self.receipts.retain(|entry| entry.owed || entry.text != text);
        self.receipts.len() < before
    }

    /// Texts that were under way when this was written; withdraws them.
    pub fn withdraw_unfinished(&mut self) -> Vec<u32> {
        let texts = self.receipts.iter().filter(|entry| !entry.owed).map(|entry| entry.text).collect();
        self.receipts.retain(|entry| entry.owed);
        texts
    }

    /// The voucher that the worker should have and has not, if any: for all that is owed of this epoch, up to the first text under way.
    pub fn due(&mut self, lane: Lane) -> Option<Voucher> {
        let count = self.receipts.iter().take(EPOCH).take_while(|entry| entry.owed).count();
        if count <= self.paid {
            return None;
        }
        let covered: Vec<&Entry> = self.receipts.iter().take(count).collect();
        let ids: Vec<ClaimId> = covered.iter().map(|entry| entry.receipt).collect();
        let voucher = Voucher {
            job: lane.job.0,
            stage: lane.stage,
            replica: lane.replica,
            epoch: self.epoch,
            tokens: covered.iter().fold(self.before, |sum, entry| sum.saturating_add(entry.tokens)),
            receipts: receipt_list(&ids).root(),
        };
        self.latest = Some(voucher.clone());
        Some(voucher)
    }

    /// The worker has taken a voucher. One that fills its epoch ends it.
    pub fn taken(&mut self, voucher: &Voucher) {
        if voucher.epoch == self.epoch
            && let Some(count) = self.prefix(voucher.tokens)
        {
            self.paid = self.paid.max(count);
            if self.paid >= EPOCH {
                self.end_epoch(self.paid);
            }
        }
    }

    /// The lane has redeemed `tokens` in `epoch`: what is owed beyond them is of the next epoch, for none is redeemed twice.
    ///
    /// # Errors
    /// [`AccountError::Stale`].
    pub fn redeemed(&mut self, epoch: u32, tokens: u32) -> Result<(), AccountError> {
        if epoch < self.epoch {
            return if tokens <= self.before { Ok(()) } else { Err(AccountError::Stale { epoch, tokens }) };
        }
        match self.prefix(tokens) {
            Some(count) if epoch == self.epoch => {
                self.end_epoch(count);
                Ok(())
            }
            _ => Err(AccountError::Stale { epoch, tokens }),
        }
    }

    /// How many receipts of this epoch make `tokens` with those before.
    fn prefix(&self, tokens: u32) -> Option<usize> {
        let mut sum = self.before;
        for (count, entry) in self.receipts.iter().enumerate() {
            if sum == tokens {
                return Some(count);
            }
            sum = if entry.owed { sum.saturating_add(entry.tokens) } else { return None };
        }
        (sum == tokens).then_some(self.receipts.len())
    }

    fn end_epoch(&mut self, count: usize) {
        for entry in self.receipts.drain(..count.min(self.receipts.len())) {
            self.before = self.before.saturating_add(entry.tokens);
        }
        self.epoch = self.epoch.saturating_add(1);
        self.paid = 0;
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::{B256, JobId};

    use super::*;

    const LANE: Lane = Lane { job: JobId(3), stage: 1, replica: 0 };

    fn id(text: u32) -> ClaimId {
        ClaimId(B256::left_padding_from(&(text + 1).to_be_bytes()))
    }

    fn entered(texts: impl IntoIterator<Item = u32>) -> Account {
        let mut account = Account::default();
        texts.into_iter().for_each(|text| account.enter(text, id(text), 10));
        account
    }

    fn root(texts: impl IntoIterator<Item = u32>) -> B256 {
        receipt_list(&texts.into_iter().map(id).collect::<Vec<_>>()).root()
    }

    #[test]
    fn only_what_is_delivered_is_owed_and_in_the_workers_order() {
        let mut account = entered([4, 2, 7]);
        assert_eq!(account.due(LANE), None);
        account.finish(2);
        assert_eq!(account.due(LANE), None, "the text before it is under way");
        account.finish(4);
        let voucher = account.due(LANE).unwrap();
        assert_eq!((voucher.epoch, voucher.tokens, voucher.receipts), (1, 20, root([4, 2])));
        assert_eq!((voucher.job, voucher.stage, voucher.replica), (3, 1, 0));
        assert!(account.withdraw(7) && !account.withdraw(7) && !account.withdraw(2));
        account.taken(&voucher);
        assert_eq!((account.due(LANE), account.tokens()), (None, 20));
        assert_eq!(account.latest(), Some(&voucher));
    }

    #[test]
    fn vouchers_are_cumulative_and_a_full_epoch_ends_once_its_voucher_is_taken() {
        let all = EPOCH as u32 + 3;
        let mut account = entered(0..all);
        (0..all).for_each(|text| account.finish(text));
        let full = account.due(LANE).unwrap();
        assert_eq!((full.epoch, full.tokens, full.receipts), (1, EPOCH as u32 * 10, root(0..EPOCH as u32)));
        assert_eq!(account.due(LANE), Some(full.clone()), "until the worker has it");
        account.taken(&full);
        let next = account.due(LANE).unwrap();
        assert_eq!((next.epoch, next.tokens, next.receipts), (2, all * 10, root(EPOCH as u32..all)));
        account.taken(&full);
        assert_eq!(account.due(LANE), Some(next), "an old answer changes nothing");
    }

    #[test]
    fn a_redeemed_epoch_is_over() {
        let mut account = entered(0..3);
        (0..3).for_each(|text| account.finish(text));
        account.redeemed(0, 0).unwrap();
        account.redeemed(1, 20).unwrap();
        let voucher = account.due(LANE).unwrap();
        assert_eq!((voucher.epoch, voucher.tokens, voucher.receipts), (2, 30, root([2])));
        account.redeemed(1, 20).unwrap();
        assert_eq!(account.redeemed(1, 40), Err(AccountError::Stale { epoch: 1, tokens: 40 }));
        assert_eq!(account.redeemed(2, 25), Err(AccountError::Stale { epoch: 2, tokens: 25 }));
        assert_eq!(account.redeemed(5, 30), Err(AccountError::Stale { epoch: 5, tokens: 30 }));
    }

    #[test]
    fn a_job_pays_so_many_tokens_and_a_worker_that_takes_no_vouchers_gets_no_texts() {
        let account = entered([1]);
        assert_eq!(account.admit(5, 15), Ok(()));
        assert_eq!(account.admit(6, 15), Err(AccountError::Spent { most: 15, owed: 10 }));
        assert!(account.admit(u32::MAX, u32::MAX).is_err());
        let many = entered(0..(EPOCH + WAITING) as u32);
        assert_eq!(many.admit(1, u32::MAX), Err(AccountError::Unpayable(EPOCH + WAITING)));
    }

    #[test]
    fn what_was_under_way_at_a_restart_is_withdrawn() {
        let mut account = entered([1, 2, 3]);
        account.finish(2);
        account.enter(2, id(9), 10);
        let json = serde_json::to_string(&account).unwrap();
        let mut account: Account = serde_json::from_str(&json).unwrap();
        assert_eq!(account.withdraw_unfinished(), [1, 3]);
        assert!(account.owes(2) && !account.owes(1));
        assert_eq!(account.due(LANE).unwrap().receipts, root([2]));
    }
}
