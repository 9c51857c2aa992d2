//! The end of an epoch, what becomes of its voucher, and when it is forgotten.

use std::collections::HashSet;

use tensorlink_node::journal::JournalError;

use super::record::{Entry, Over, Progress, Signed, epoch_file, file_name};
use super::{Book, Inner, sum};

/// Epochs kept after they ended, beside those that ended within the challenge window.
const KEEP: usize = 4;

impl Book {
    /// Ends the open epoch, if it has a voucher, because the job takes no more texts.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn end_epoch(&self, now: u64) -> Result<(), JournalError> {
        let mut inner = self.inner();
        self.end(&mut inner, now, None)
    }

    /// Ends the open epoch and begins the next with a voucher, perhaps. One without a voucher goes on: it could not be
    /// redeemed, and no later one without it.
    pub(super) fn end(&self, inner: &mut Inner, now: u64, first: Option<(Signed, usize)>) -> Result<(), JournalError> {
        let (lane, epoch) = (self.payer.lane, inner.record.epoch);
        let Some((signed, receipts)) = inner.record.best.clone() else { return Ok(()) };
        let next = epoch.saturating_add(1);
        let named = inner.named();
        let (head, rest) = inner.open.split_at_checked(named).unwrap_or((&inner.open, &[]));
        let rest: Vec<Entry> = rest.iter().map(|(_, entry)| entry.clone()).collect();
        let mut record = inner.record.clone();
        record.epoch = next;
        record.before = record.before.saturating_add(sum(head));
        record.best = first;
        record.over.insert(epoch, Over { signed, receipts, ended_at: now, progress: Progress::Due });
        let lines = self.journal.replace_lines(&epoch_file(lane, next), &rest)?;
        self.journal.write(&file_name(lane), &record)?;
        let rest = inner.open.split_off(named.min(inner.open.len()));
        let head = std::mem::replace(&mut inner.open, rest);
        (inner.lines, inner.record) = (lines, record);
        inner.past.insert(epoch, head);
        Ok(())
    }

    /// The first epoch that is over and whose voucher is to be redeemed, after `redeemed`, the last that the chain
    /// holds: what it does not hold any more was undone.
    pub fn due(&self, redeemed: u32) -> Option<(u32, Signed)> {
        let inner = self.inner();
        let waits = |epoch: u32, over: &Over| match over.progress {
            Progress::Due => true,
            Progress::Sent => epoch > redeemed,
            Progress::Confirmed => false,
        };
        let mut over = inner.record.over.iter();
        over.find(|(epoch, over)| waits(**epoch, over)).map(|(epoch, over)| (*epoch, over.signed.clone()))
    }

    /// Writes down how far an epoch's voucher has come; one that is confirmed stays so.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn mark(&self, epoch: u32, progress: Progress) -> Result<(), JournalError> {
        let mut inner = self.inner();
        let mut record = inner.record.clone();
        if let Some(over) = record.over.get_mut(&epoch).filter(|over| over.progress != Progress::Confirmed) {
            over.progress = progress;
        }
        if record != inner.record {
            self.journal.write(&file_name(self.payer.lane), &record)?;
            inner.record = record;
        }
        Ok(())
    }

    /// Epochs that need not be kept at time `now` for a challenge window of `window` seconds, and the CIDs that only
    /// their receipts name.
    pub fn stale(&self, now: u64, window: u64) -> (Vec<u32>, Vec<String>) {
        let inner = self.inner();
        let old = |over: &Over| {
            let open = matches!(over.progress, Progress::Due | Progress::Sent);
            !open && over.ended_at.saturating_add(window) < now
        };
        let most = inner.record.over.len().saturating_sub(KEEP);
        let stale = inner.record.over.iter().take(most).take_while(|(_, over)| old(over)).map(|(epoch, _)| *epoch);
        let stale: Vec<u32> = stale.collect();
        let gone = &stale;
        let of = |wanted: bool| {
            let past = inner.past.iter().filter(move |(epoch, _)| gone.contains(epoch) == wanted);
            past.flat_map(|(_, entries)| entries).map(|(_, entry)| &entry.inputs)
        };
        let kept: HashSet<&String> = of(false).chain(inner.open.iter().map(|(_, entry)| &entry.inputs)).collect();
        let dropped: HashSet<&String> = of(true).collect();
        let dropped = dropped.difference(&kept).map(|cid| (*cid).clone()).collect();
        (stale, dropped)
    }

    /// The CIDs that receipts name, all of them.
    pub fn inputs(&self) -> HashSet<String> {
        let inner = self.inner();
        let all = inner.past.values().flatten().chain(&inner.open);
        all.map(|(_, entry)| entry.inputs.clone()).collect()
    }

    /// Removes the book from disk: its job is settled, and nobody can ask any more.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn clear(&self) -> Result<(), JournalError> {
        let inner = self.inner();
        for epoch in inner.record.over.keys().chain([&inner.record.epoch]) {
            self.journal.remove_lines(&epoch_file(self.payer.lane, *epoch))?;
        }
        self.journal.remove(&file_name(self.payer.lane))
    }

    /// Forgets epochs.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn forget(&self, epochs: &[u32]) -> Result<(), JournalError> {
        let mut inner = self.inner();
        let mut record = inner.record.clone();
        for epoch in epochs {
            self.journal.remove_lines(&epoch_file(self.payer.lane, *epoch))?;
            record.over.remove(epoch);
        }
        self.journal.write(&file_name(self.payer.lane), &record)?;
        inner.past.retain(|epoch, _| record.over.contains_key(epoch));
        inner.record = record;
        Ok(())
    }
}
