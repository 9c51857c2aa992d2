//! What a user owes a lane: the receipts of an epoch in the order in which the worker signed them, and the voucher
//! for them.
//!
//! | state of a receipt | move | next |
//! |---|---|---|
//! | — | the worker's answer, checked ([`Account::enter`]) | entered |
//! | entered | its text is delivered whole ([`Account::finish`]) | owed |
//! | — | the worker's list, while its text is under way here ([`Account::sync`]) | awaited |
//! | awaited | the worker's answer | entered |
//! | entered or awaited | its text fails in another lane ([`Account::withdraw`]) | void: listed, for 0 tokens |
//! | — | the worker's list, of a text that nobody waits for | void |
//! | owed or void | every earlier one is, too ([`Account::due`]) | in the voucher |
//!
//! An epoch is full with [`EPOCH`] receipts, or with the tokens of [`TEXTS`] texts of the greatest length. The next one
//! begins at the tokens that this one pays, so that the worker can redeem it only after just that voucher; and only
//! once the chain has the epoch before this one ([`Account::is_ahead`]): what auditors are not drawn for yet is never
//! worth a stake.
//!
//! A voucher's list is a beginning of the worker's list. Answers may have been lost, or overtaken one another: then the
//! worker's own list tells its order ([`Account::sync`]). To list a receipt binds the worker, not us: we pay the
//! tokens, and those are of owed texts only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tensorlink_node::ports::chain::RedeemedView;
use tensorlink_proof::commit::receipt::{epoch_record, receipt_list};
use tensorlink_types::abi::Voucher;
use tensorlink_types::{ClaimId, Lane};
use thiserror::Error;

/// Receipts of an epoch: bounds what an auditor has to fetch for one that it draws, and what is kept here.
pub const EPOCH: usize = 256;
/// Receipts that wait for the worker to take the voucher of a full epoch, or to redeem one; beyond them it gets no
/// more texts.
pub const WAITING: usize = 256;
/// Texts of the greatest length that an epoch pays for, the last of which may go beyond: bounds what a worker earns
/// before auditors are drawn for it, in two epochs, to less than makes cheating on all of it worth a stake
/// (`contracts/SPEC.md`, Economics).
pub const TEXTS: u32 = 16;
/// Epochs that are signed for and that the chain does not have.
const AHEAD: u32 = 2;

/// Why an account does not fit what the chain or the job says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AccountError {
    /// The chain paid something else than this account signed for last.
    #[error(
        "the lane has redeemed {tokens} tokens in epoch {epoch}, which is not what was signed for here: use the data directory \
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
    /// The worker does not take vouchers, or does not redeem them.
    #[error(
        "{0} receipts wait for the worker to take a voucher, or to redeem one: it gets no more texts until it does"
    )]
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
    /// The worker lists it, and its answer may be on its way. Its tokens are those that its text is promised.
    Awaited,
    Entered,
    Owed,
    Void,
}

impl State {
    /// Whether its text is under way.
    const fn is_open(self) -> bool {
        matches!(self, Self::Awaited | Self::Entered)
    }
}

impl Entry {
    /// Tokens to pay for it.
    const fn due(&self) -> u32 {
        match self.state {
            State::Void | State::Awaited => 0,
            State::Entered | State::Owed => self.tokens,
        }
    }
}

/// The account of a lane; on disk between texts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Account {
    /// The present epoch, from 1.
    epoch: u32,
    /// Tokens that the vouchers of the epochs before pay.
    before: u32,
    /// Tokens beyond those of receipts that these vouchers list: their answers came when the voucher was signed.
    late: u32,
    /// Receipts of this epoch and what waits for the next, in the worker's order as far as it is known.
    receipts: Vec<Entry>,
    /// How many of them the worker has a voucher for.
    paid: usize,
    /// Tokens that this voucher pays, or that the epoch begins with.
    #[serde(default)]
    pays: u32,
    /// How many of them any voucher lists: the worker may have it though it did not say so, and takes none that
    /// lists fewer.
    signed: usize,
    /// The last voucher that was made, to be sent again to a worker that may have lost it.
    latest: Option<Voucher>,
    /// Tokens that fill an epoch.
    full: u32,
    /// The last epoch that the chain had when it was asked.
    #[serde(skip)]
    redeemed: u32,
    /// Tokens of texts for which a receipt is awaited.
    #[serde(skip)]
    promised: BTreeMap<u32, u32>,
}

impl Account {
    /// Of a lane whose texts have at most `longest` tokens.
    pub fn new(longest: u32) -> Self {
        let (receipts, promised) = (Vec::new(), BTreeMap::new());
        let full = longest.saturating_mul(TEXTS);
        let (paid, pays, signed, latest) = (0, 0, 0, None);
        Self { epoch: 1, before: 0, late: 0, receipts, paid, pays, signed, latest, full, redeemed: 0, promised }
    }

    /// Tokens since the job began, those of texts under way among them.
    pub fn tokens(&self) -> u32 {
        let before = self.tokens_of(0);
        let promised = self.promised.values().fold(before, |sum, tokens| sum.saturating_add(*tokens));
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

    /// Promises to pay a text of `tokens`, of a job that pays for `most`. A text that grows is promised again; if that
    /// fails, what was promised before stays so.
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
            Some(known) if matches!(known.state, State::Void | State::Awaited) => *known = entry,
            Some(_) => {}
            None => self.receipts.push(entry),
        }
    }

    /// The text is delivered: its receipt will be paid.
    pub fn finish(&mut self, text: u32) {
        self.promised.remove(&text);
        for entry in self.receipts.iter_mut().filter(|entry| entry.text == text) {
            entry.state = match entry.state {
                State::Entered => State::Owed,
                // The worker lists another receipt for the text than it has answered with.
                State::Awaited => State::Void,
                done => done,
            };
        }
    }

    /// The text was not delivered: its receipt will not be paid.
    pub fn withdraw(&mut self, text: u32) {
        self.promised.remove(&text);
        let open = |entry: &&mut Entry| entry.text == text && entry.state.is_open();
        self.receipts.iter_mut().filter(open).for_each(|entry| entry.state = State::Void);
    }

    /// What was under way when this was written is not delivered.
    pub fn withdraw_all(&mut self) {
        self.promised.clear();
        self.receipts.iter_mut().filter(|entry| entry.state.is_open()).for_each(|entry| entry.state = State::Void);
    }

    /// Whether nothing is signed for until the lane has redeemed an epoch.
    pub const fn is_ahead(&self) -> bool {
        self.epoch > self.redeemed.saturating_add(AHEAD)
    }

    /// How many receipts fill the epoch; no fewer than a voucher lists.
    fn room(&self) -> usize {
        let mut tokens = 0_u32;
        let fills = |entry: &Entry| {
            tokens = tokens.saturating_add(entry.due());
            tokens >= self.full
        };
        let last = self.receipts.iter().take(EPOCH).position(fills);
        last.map_or(EPOCH, |last| last.saturating_add(1)).max(self.signed)
    }

    /// How many receipts a voucher has to list for the worker to have all that is owed of this epoch: those up to the
    /// first whose text is under way. None if the voucher that it has does as well; if it `asks`, it gets one also for
    /// receipts that pay nothing.
    fn unpaid(&self, asks: bool) -> Option<usize> {
        let room = self.room();
        let settled = self.receipts.iter().take(room).take_while(|entry| !entry.state.is_open()).count();
        // An answer may come late for one that a voucher lists: it is waited for.
        if settled < self.paid.max(self.signed) {
            return None;
        }
        // By its tokens: what a voucher lists for nothing may be owed since.
        let owed = settled > 0 && self.tokens_of(settled) > self.pays;
        // A full epoch ends even if nothing of it is owed; also one that an answer has filled which came after the
        // voucher that lists it.
        (owed || settled >= room || (asks && settled > self.paid)).then_some(settled)
    }

    /// Whether the worker waits for a voucher, and has to redeem an epoch first.
    pub fn waits(&self) -> bool {
        self.is_ahead() && self.unpaid(false).is_some()
    }

    /// The voucher that the worker should have and has not, if any: for all that is owed of this epoch, up to the first
    /// text under way. A worker that `asks` gets one also for texts that came to nothing: it gives no more credit for
    /// what no voucher lists.
    pub fn due(&mut self, lane: Lane, asks: bool) -> Option<Voucher> {
        let settled = self.unpaid(asks).filter(|_| !self.is_ahead())?;
        let ids: Vec<ClaimId> = self.receipts.iter().take(settled).map(|entry| entry.receipt).collect();
        let voucher = Voucher {
            job: lane.job.0,
            stage: lane.stage,
            replica: lane.replica,
            epoch: self.epoch,
            before: self.before,
            tokens: self.tokens_of(settled),
            receipts: receipt_list(&ids).root(),
        };
        self.signed = settled;
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
        let room = self.room();
        if let Some(count) = (self.paid..=ids.len().min(room)).rev().find(named) {
            (self.paid, self.pays) = (count, voucher.tokens);
            if count >= room {
                self.end_epoch(count, voucher.tokens);
            }
        }
    }

    /// Takes over the worker's order: `listed` are its receipts of this epoch, each with the number of its text. What
    /// we do not know was signed in an answer that is on its way, if its text is; else in one that never came.
    pub fn sync(&mut self, listed: &[(u32, ClaimId)]) {
        let mut ours = std::mem::take(&mut self.receipts);
        for (text, receipt) in listed {
            let known = ours.iter().position(|entry| entry.receipt == *receipt);
            let state = if self.promised.contains_key(text) { State::Awaited } else { State::Void };
            let unknown = Entry { text: *text, receipt: *receipt, tokens: 0, state };
            self.receipts.push(known.map_or(unknown, |place| ours.remove(place)));
        }
        // What the worker does not list is owed all the same, and listed in vain; what it does not list any more and is
        // not owed it has dropped.
        let kept = |entry: &Entry| matches!(entry.state, State::Entered | State::Owed);
        self.receipts.extend(ours.into_iter().filter(kept));
    }

    /// What the lane has redeemed last: what is owed beyond is of the next epoch, for none is redeemed twice.
    ///
    /// # Errors
    /// [`AccountError::Stale`].
    pub fn redeemed(&mut self, last: RedeemedView) -> Result<(), AccountError> {
        let RedeemedView { epoch, tokens, .. } = last;
        if epoch < self.epoch {
            // What is signed since then begins at the tokens of the epoch before.
            let last = epoch.saturating_add(1) == self.epoch;
            if tokens > self.before || (last && tokens < self.before) {
                return Err(AccountError::Stale { epoch, tokens });
            }
            self.redeemed = epoch;
            return Ok(());
        }
        let count = self.listed_by(&last).filter(|_| epoch == self.epoch);
        self.end_epoch(count.ok_or(AccountError::Stale { epoch, tokens })?, tokens);
        self.redeemed = epoch;
        Ok(())
    }

    /// How many receipts the voucher lists that ended this epoch on chain. Known by its list: others may pay as many
    /// tokens, and answers that came since then make the list worth more than it pays.
    fn listed_by(&self, last: &RedeemedView) -> Option<usize> {
        let signed = self.receipts.get(..self.signed).unwrap_or(&self.receipts);
        let ids: Vec<ClaimId> = signed.iter().map(|entry| entry.receipt).collect();
        let root = |count: usize| receipt_list(ids.get(..count).unwrap_or_default()).root();
        let mut counts = (1..=ids.len()).rev();
        let count = counts.find(|count| epoch_record(root(*count), last.at) == last.record)?;
        (self.tokens_of(count) >= last.tokens).then_some(count)
    }

    /// Tokens of the first `count` receipts and of the epochs before.
    fn tokens_of(&self, count: usize) -> u32 {
        let before = self.before.saturating_add(self.late);
        self.receipts.iter().take(count).fold(before, |sum, entry| sum.saturating_add(entry.due()))
    }

    /// The epoch ends with a voucher of `tokens` that lists the first `count` receipts.
    fn end_epoch(&mut self, count: usize, tokens: u32) {
        self.late = self.tokens_of(count).saturating_sub(tokens);
        self.before = tokens;
        self.receipts.drain(..count.min(self.receipts.len()));
        self.epoch = self.epoch.saturating_add(1);
        (self.paid, self.pays, self.signed) = (0, tokens, 0);
    }
}

#[cfg(test)]
mod tests;
