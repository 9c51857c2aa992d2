//! A lane's receipts and vouchers on disk, epoch by epoch: what a kill at any moment leaves whole.
//!
//! Receipts of the open epoch are lines of a file, in the order in which they were signed. What was paid and which
//! epochs are over is a record that is replaced as a whole. An epoch that ends leaves the receipts that its last
//! voucher did not name to the next one, whose file is written before the record says that it is open.

mod epochs;
mod record;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_node::Journal;
use tensorlink_node::journal::{JournalError, Lines};
use tensorlink_node::serving::MAX_RECEIPTS;
use tensorlink_node::wire::rpc::Receipt;
use tensorlink_types::ClaimId;
use tensorlink_types::abi::Claim;
use thiserror::Error;
use tokio::sync::watch;

pub use self::record::{Entry, Progress, Signed};
use self::record::{Record, epoch_file, file_name};
use super::voucher::{Payer, VoucherError, named};

/// Epochs that wait to be redeemed when another one is begun, at most: each takes a transaction, and a job that is
/// closed redeems for a window only. Users sign for two that are not redeemed.
const WAITING: usize = 2;

/// Why a receipt cannot be entered.
#[derive(Debug, Error)]
pub enum EnterError {
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The text has ended before, and was another.
    #[error("text {0} has ended already, with other tokens: give every text a number of its own")]
    OtherText(u32),
    /// The epoch is full.
    #[error("epoch {0} holds {MAX_RECEIPTS} receipts, the most: send a voucher of the next epoch")]
    Full(u32),
}

/// Why a voucher is not accepted.
#[derive(Debug, Error)]
pub enum PayError {
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// It is not good.
    #[error(transparent)]
    Voucher(#[from] VoucherError),
}

struct Inner {
    record: Record,
    lines: Lines<Entry>,
    /// Receipts of the open epoch and of those that are kept, with their ids.
    open: Vec<(ClaimId, Entry)>,
    past: BTreeMap<u32, Vec<(ClaimId, Entry)>>,
}

/// The book of a lane; every change is on disk before it is visible.
pub struct Book {
    journal: Journal,
    payer: Payer,
    inner: Mutex<Inner>,
    /// Counts the changes of vouchers.
    version: watch::Sender<u64>,
}

fn sum(entries: &[(ClaimId, Entry)]) -> u64 {
    entries.iter().map(|(_, entry)| u64::from(entry.receipt.tokens)).sum()
}

impl Book {
    /// Starts the book of a lane, or takes up the one on disk.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub fn open(journal: Journal, payer: Payer) -> Result<Self, JournalError> {
        let lane = payer.lane;
        let fresh = || Record { lane, epoch: 1, best: None, before: 0, over: BTreeMap::new() };
        let record: Record = journal.read(&file_name(lane))?.unwrap_or_else(fresh);
        let with_ids = |entries: Vec<Entry>| {
            let id = |entry: Entry| (payer.contracts.claim_id(&entry.receipt.claim), entry);
            entries.into_iter().map(id).collect::<Vec<_>>()
        };
        let mut past = BTreeMap::new();
        for (epoch, over) in &record.over {
            let mut entries = journal.open_lines(&epoch_file(lane, *epoch))?.1;
            entries.truncate(over.receipts);
            past.insert(*epoch, with_ids(entries));
        }
        let (lines, open) = journal.open_lines(&epoch_file(lane, record.epoch))?;
        let inner = Mutex::new(Inner { record, lines, open: with_ids(open), past });
        Ok(Self { journal, payer, inner, version: watch::Sender::new(0) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whom and what vouchers must name.
    pub const fn payer(&self) -> &Payer {
        &self.payer
    }

    /// Tells of every change of vouchers from now on.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Wakes who watches.
    pub fn wake(&self) {
        self.version.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// Tokens of all receipts since the job began.
    pub fn delivered(&self) -> u64 {
        let inner = self.inner();
        inner.record.before.saturating_add(sum(&inner.open))
    }

    /// Tokens of receipts that no voucher settles.
    pub fn owed(&self) -> u64 {
        self.owed_with(0)
    }

    /// As [`Self::owed`], with `lost` tokens delivered without a receipt. A voucher settles the receipts that it names,
    /// also those of texts that came to nothing in another stage and are not paid: it is the user's word on what was
    /// delivered. What is named and not paid is lost, too, and counts where it is more than was ever paid.
    pub fn owed_with(&self, lost: u64) -> u64 {
        let inner = self.inner();
        let (before, paid) = (inner.record.before, u64::from(inner.record.paid()));
        let named = before.saturating_add(sum(inner.open.get(..inner.named()).unwrap_or_default()));
        let open = before.saturating_add(sum(&inner.open)).saturating_sub(named.max(paid));
        let lost = lost.saturating_add(named.saturating_sub(paid));
        open.saturating_add(lost.saturating_sub(paid))
    }

    /// The receipt of a text that has ended.
    pub fn of_text(&self, text: u32) -> Option<Receipt> {
        self.inner().find(|_, entry| entry.receipt.claim.interval == text).map(|entry| entry.receipt)
    }

    /// A receipt by its id.
    pub fn get(&self, id: ClaimId) -> Option<Entry> {
        self.inner().find(|known, _| known == id)
    }

    /// Enters a receipt and returns it, or the one that the same text got before. Blocks until it is on disk.
    ///
    /// # Errors
    /// [`EnterError`].
    pub fn enter(&self, entry: Entry) -> Result<Receipt, EnterError> {
        let mut inner = self.inner();
        let text = entry.receipt.claim.interval;
        if let Some(known) = inner.find(|_, known| known.receipt.claim.interval == text) {
            let same = known.receipt.claim == entry.receipt.claim;
            return if same { Ok(known.receipt) } else { Err(EnterError::OtherText(text)) };
        }
        if inner.open.len() >= MAX_RECEIPTS {
            return Err(EnterError::Full(inner.record.epoch));
        }
        inner.lines.append(&entry)?;
        let receipt = entry.receipt.clone();
        inner.open.push((self.payer.contracts.claim_id(&receipt.claim), entry));
        Ok(receipt)
    }

    /// Whether the open epoch takes no more receipts.
    ///
    /// # Errors
    /// [`EnterError::Full`].
    pub fn has_room(&self) -> Result<(), EnterError> {
        let inner = self.inner();
        if inner.open.len() < MAX_RECEIPTS { Ok(()) } else { Err(EnterError::Full(inner.record.epoch)) }
    }

    /// Claims of an epoch's receipts in order; none of one that is not kept. The next epoch's are those that would be
    /// of it if its first voucher came now.
    pub fn claims(&self, epoch: u32) -> Option<Vec<Claim>> {
        let inner = self.inner();
        let open = inner.record.epoch;
        let entries = match epoch {
            _ if epoch == open => Some(inner.open.as_slice()),
            _ if epoch == open.saturating_add(1) => inner.open.get(inner.named()..),
            _ => inner.past.get(&epoch).map(Vec::as_slice),
        };
        Some(entries?.iter().map(|(_, entry)| entry.receipt.claim.clone()).collect())
    }

    /// The epoch that is over whose list holds a receipt.
    pub fn epoch_of(&self, receipt: ClaimId) -> Option<u32> {
        let inner = self.inner();
        let holds = |entries: &[(ClaimId, Entry)]| entries.iter().any(|(id, _)| *id == receipt);
        inner.past.iter().find(|(_, entries)| holds(entries)).map(|(epoch, _)| *epoch)
    }

    /// Takes a voucher; one of the next epoch ends the open one, at time `now`. Blocks until it is on disk.
    ///
    /// # Errors
    /// [`PayError`]; nothing has changed then.
    pub fn pay(&self, signed: Signed, now: u64) -> Result<(), PayError> {
        let mut inner = self.inner();
        let (voucher, open) = (&signed.voucher, inner.record.epoch);
        self.payer.check(voucher, &signed.signature, inner.record.paid())?;
        let ends = voucher.epoch == open.saturating_add(1);
        if voucher.epoch != open && !ends {
            return Err(VoucherError::Epoch { epoch: voucher.epoch, open }.into());
        }
        // What no voucher of this epoch pays, none of the next can: the contract redeems them one after another.
        let due = if ends { inner.record.best_tokens() } else { Some(inner.record.begun()) };
        if due != Some(voucher.before) {
            return Err(VoucherError::Before { before: voucher.before, epoch: voucher.epoch, due }.into());
        }
        let waiting = inner.record.over.values().filter(|over| over.progress != Progress::Confirmed).count();
        if ends && waiting >= WAITING {
            return Err(VoucherError::Waiting { epoch: voucher.epoch, waiting }.into());
        }
        // A voucher of the next epoch leaves to this one what its last voucher named.
        let kept = inner.named();
        let (start, least) = if ends { (kept, 0) } else { (0, kept) };
        let rest = inner.open.get(start..).unwrap_or_default();
        let receipts: Vec<_> = rest.iter().map(|(id, entry)| (*id, entry.receipt.tokens)).collect();
        let count = named(voucher, &receipts, least)?;
        if ends {
            self.end(&mut inner, now, Some((signed, count)))?;
        } else {
            let record = Record { best: Some((signed, count)), ..inner.record.clone() };
            self.journal.write(&file_name(self.payer.lane), &record)?;
            inner.record = record;
        }
        drop(inner);
        self.wake();
        Ok(())
    }
}

impl Inner {
    /// How many receipts of the open epoch its best voucher names.
    fn named(&self) -> usize {
        self.record.best.as_ref().map_or(0, |(_, count)| *count)
    }

    fn find(&self, wanted: impl Fn(ClaimId, &Entry) -> bool) -> Option<Entry> {
        let all = self.open.iter().chain(self.past.values().rev().flatten());
        all.into_iter().find(|(id, entry)| wanted(*id, entry)).map(|(_, entry)| entry.clone())
    }
}
