//! What a user owes a lane: the receipts of an epoch in the order in which the worker signed them, and the voucher for them.
//!
//! | state of a receipt | move | next |
//! |---|---|---|
//! | — | the worker's answer, checked ([`Account::enter`]) | entered |
//! | entered | its text is delivered whole ([`Account::finish`]) | owed |
//! | entered | its text fails in another lane ([`Account::withdraw`]) | void: listed, for 0 tokens |
//! | owed or void | every earlier one is, too ([`Account::due`]) | in the voucher |
//!
//! A voucher's list is a beginning of the worker's list. Answers may have been lost, or overtaken one another: then the worker's own list
//! tells its order ([`Account::sync`]). To list a receipt binds the worker, not us: we pay the tokens, and those are of owed texts only.

use std::collections::BTreeMap;

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Entry {
    text: u32,
    receipt: ClaimId,
    tokens: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Entered,
    Owed,
    Void,
}

impl Entry {
    /// Tokens to pay for it.
    const fn due(&self) -> u32 {
        match self.state {
            State::Void => 0,
            State::Entered | State::Owed => self.tokens,
        }
    }
}

/// The account of a lane; on disk between texts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Account {
    /// The present epoch, from 1.
    epoch: u32,
    /// Tokens of the epochs before.
    before: u32,
    /// Receipts of this epoch and what waits for the next, in the worker's order as far as it is known.
    receipts: Vec<Entry>,
    /// How many of them the worker has a voucher for.
    paid: usize,
    /// The last voucher that was made, to be sent again to a worker that may have lost it.
    latest: Option<Voucher>,
    /// Tokens of texts for which a receipt is awaited.
    #[serde(skip)]
    promised: BTreeMap<u32, u32>,
}

impl Default for Account {
    fn default() -> Self {
        let (receipts, promised) = (Vec::new(), BTreeMap::new());
        Self { epoch: 1, before: 0, receipts, paid: 0, latest: None, promised }
    }
}

impl Account {
    /// Tokens since the job began, those of texts under way among them.
    pub fn tokens(&self) -> u32 {
        let promised = self.promised.values().fold(self.before, |sum, tokens| sum.saturating_add(*tokens));
        self.receipts.iter().fold(promised, |sum, entry| sum.saturating_add(entry.due()))
    }

    /// The present epoch.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The last voucher that was made.
    pub const fn latest(&self) -> Option<&Voucher> {
        self.latest.as_ref()
    }

    /// Promises to pay a text of `tokens`, of a job that pays for `most`. A text that grows is promised again; if that fails, what was
    /// promised before stays so.
    ///
    /// # Errors
    /// [`AccountError::Spent`], [`AccountError::Unpayable`].
    pub fn promise(&mut self, text: u32, tokens: u32, most: u32) -> Result<(), AccountError> {
        let before = self.promised.get(&text).copied();
        let owed = self.tokens().saturating_sub(before.unwrap_or_default());
        if owed.checked_add(tokens).is_none_or(|sum| sum > most) {
            return Err(AccountError::Spent { most, owed });
        }
        if before.is_none() && self.receipts.len() >= EPOCH + WAITING {
            return Err(AccountError::Unpayable(self.receipts.len()));
        }
        self.promised.insert(text, tokens);
        Ok(())
    }

    /// Enters a receipt that the worker has signed; once for each text.
    pub fn enter(&mut self, text: u32, receipt: ClaimId, tokens: u32) {
        self.promised.remove(&text);
        let entry = Entry { text, receipt, tokens, state: State::Entered };
        match self.receipts.iter_mut().find(|entry| entry.receipt == receipt) {
            // The worker's list told of it before its answer came.
            Some(known) if known.state == State::Void => *known = entry,
            Some(_) => {}
            None => self.receipts.push(entry),
        }
    }

    /// The text is delivered: its receipt will be paid.
    pub fn finish(&mut self, text: u32) {
        let entered = |entry: &&mut Entry| entry.text == text && entry.state == State::Entered;
        self.receipts.iter_mut().filter(entered).for_each(|entry| entry.state = State::Owed);
    }

    /// The text was not delivered: its receipt will not be paid.
    pub fn withdraw(&mut self, text: u32) {
        self.promised.remove(&text);
        let entered = |entry: &&mut Entry| entry.text == text && entry.state == State::Entered;
        self.receipts.iter_mut().filter(entered).for_each(|entry| entry.state = State::Void);
    }

    /// What was under way when this was written is not delivered.
    pub fn withdraw_all(&mut self) {
        let entered = |entry: &&mut Entry| entry.state == State::Entered;
        self.receipts.iter_mut().filter(entered).for_each(|entry| entry.state = State::Void);
    }

    /// The voucher that the worker should have and has not, if any: for all that is owed of this epoch, up to the first text under way.
    pub fn due(&mut self, lane: Lane) -> Option<Voucher> {
        let settled = self.receipts.iter().take(EPOCH).take_while(|entry| entry.state != State::Entered).count();
        let beyond = self.receipts.get(self.paid..settled)?;
        // A full epoch ends even if nothing of it is owed.
        if beyond.iter().all(|entry| entry.state == State::Void) && (beyond.is_empty() || settled < EPOCH) {
            return None;
        }
        let ids: Vec<ClaimId> = self.receipts.iter().take(settled).map(|entry| entry.receipt).collect();
        let voucher = Voucher {
            job: lane.job.0,
            stage: lane.stage,
            replica: lane.replica,
            epoch: self.epoch,
            tokens: self.tokens_of(settled),
            receipts: receipt_list(&ids).root(),
        };
        self.latest = Some(voucher.clone());
        Some(voucher)
    }

    /// The worker has taken a voucher. One that fills its epoch ends it.
    pub fn taken(&mut self, voucher: &Voucher) {
        if voucher.epoch != self.epoch {
            return;
        }
        let ids: Vec<ClaimId> = self.receipts.iter().map(|entry| entry.receipt).collect();
        let named = |count: &usize| receipt_list(ids.get(..*count).unwrap_or_default()).root() == voucher.receipts;
        // The voucher that was taken is mostly the one for all that is settled now.
        if let Some(count) = (self.paid..=ids.len().min(EPOCH)).rev().find(named) {
            self.paid = count;
            if count >= EPOCH {
                self.end_epoch(count);
            }
        }
    }

    /// Takes over the worker's order: `listed` are its receipts of this epoch, each with the number of its text. What we do not know was
    /// signed in an answer that never came.
    pub fn sync(&mut self, listed: &[(u32, ClaimId)]) {
        let mut ours = std::mem::take(&mut self.receipts);
        for (text, receipt) in listed {
            let known = ours.iter().position(|entry| entry.receipt == *receipt);
            let unknown = Entry { text: *text, receipt: *receipt, tokens: 0, state: State::Void };
            self.receipts.push(known.map_or(unknown, |place| ours.remove(place)));
        }
        // What the worker does not list is owed all the same, and listed in vain; what is void it has dropped.
        self.receipts.extend(ours.into_iter().filter(|entry| entry.state != State::Void));
    }

    /// The lane has redeemed `tokens` in `epoch`: what is owed beyond them is of the next epoch, for none is redeemed twice.
    ///
    /// # Errors
    /// [`AccountError::Stale`].
    pub fn redeemed(&mut self, epoch: u32, tokens: u32) -> Result<(), AccountError> {
        if epoch < self.epoch {
            return if tokens <= self.before { Ok(()) } else { Err(AccountError::Stale { epoch, tokens }) };
        }
        let ours = |voucher: &&Voucher| voucher.epoch == epoch && voucher.tokens >= tokens;
        if epoch > self.epoch || self.latest.as_ref().filter(ours).is_none() {
            return Err(AccountError::Stale { epoch, tokens });
        }
        let count = (0..=self.receipts.len()).rev().find(|count| self.tokens_of(*count) == tokens);
        self.end_epoch(count.ok_or(AccountError::Stale { epoch, tokens })?);
        Ok(())
    }

    /// Tokens of the first `count` receipts and of the epochs before.
    fn tokens_of(&self, count: usize) -> u32 {
        self.receipts.iter().take(count).fold(self.before, |sum, entry| sum.saturating_add(entry.due()))
    }

    fn end_epoch(&mut self, count: usize) {
        self.before = self.tokens_of(count);
        self.receipts.drain(..count.min(self.receipts.len()));
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
        account.taken(&voucher);
        assert_eq!((account.due(LANE), account.tokens()), (None, 30));
        account.withdraw(7);
        account.withdraw(2);
        assert_eq!((account.due(LANE), account.tokens()), (None, 20), "what is owed stays so");
        assert_eq!(account.latest(), Some(&voucher));
        account.enter(8, id(8), 5);
        account.finish(8);
        let voucher = account.due(LANE).unwrap();
        assert_eq!((voucher.tokens, voucher.receipts), (25, root([4, 2, 7, 8])), "listed, and not paid");
    }

    #[test]
    fn the_workers_list_tells_what_was_lost_or_overtaken() {
        let mut account = entered([0, 1, 3]);
        account.finish(0);
        let first = account.due(LANE).unwrap();
        account.taken(&first);
        account.finish(3);
        account.finish(1);
        account.sync(&[(0, id(0)), (2, id(2)), (3, id(3)), (1, id(1)), (9, id(9))]);
        let voucher = account.due(LANE).unwrap();
        assert_eq!((voucher.tokens, voucher.receipts), (30, root([0, 2, 3, 1, 9])));
        account.enter(9, id(9), 10);
        account.finish(9);
        assert_eq!(account.due(LANE).unwrap().tokens, 40, "its answer came late");
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
        (0..2).for_each(|text| account.finish(text));
        account.redeemed(0, 0).unwrap();
        assert_eq!(account.redeemed(1, 20), Err(AccountError::Stale { epoch: 1, tokens: 20 }), "never signed");
        account.due(LANE).unwrap();
        account.finish(2);
        account.due(LANE).unwrap();
        account.redeemed(1, 20).unwrap();
        let voucher = account.due(LANE).unwrap();
        assert_eq!((voucher.epoch, voucher.tokens, voucher.receipts), (2, 30, root([2])));
        account.redeemed(1, 20).unwrap();
        for (epoch, tokens) in [(1, 40), (2, 25), (2, 40), (5, 30)] {
            assert_eq!(account.redeemed(epoch, tokens), Err(AccountError::Stale { epoch, tokens }));
        }
    }

    #[test]
    fn a_job_pays_so_many_tokens_and_a_worker_that_takes_no_vouchers_gets_no_texts() {
        let mut account = entered([1]);
        assert_eq!(account.promise(2, 6, 15), Err(AccountError::Spent { most: 15, owed: 10 }));
        assert_eq!(account.promise(2, 4, 15), Ok(()));
        assert_eq!(account.promise(3, 2, 15), Err(AccountError::Spent { most: 15, owed: 14 }));
        account.withdraw(2);
        assert_eq!(account.promise(3, 5, 15), Ok(()));
        assert_eq!(account.promise(3, 6, 15), Err(AccountError::Spent { most: 15, owed: 10 }));
        assert_eq!((account.tokens(), account.promise(3, 4, 15), account.tokens()), (15, Ok(()), 14), "not twice");
        assert!(account.promise(4, u32::MAX, u32::MAX).is_err());
        let mut many = entered(0..(EPOCH + WAITING) as u32);
        assert_eq!(many.promise(9999, 1, u32::MAX), Err(AccountError::Unpayable(EPOCH + WAITING)));
    }

    #[test]
    fn what_was_under_way_at_a_restart_is_not_paid() {
        let mut account = entered([1, 2, 3]);
        account.finish(2);
        account.enter(2, id(2), 99);
        let json = serde_json::to_string(&account).unwrap();
        let mut account: Account = serde_json::from_str(&json).unwrap();
        account.withdraw_all();
        let voucher = account.due(LANE).unwrap();
        assert_eq!((voucher.tokens, voucher.receipts), (10, root([1, 2, 3])));
    }
}
