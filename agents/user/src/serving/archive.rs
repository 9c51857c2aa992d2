//! Receipts of delivered texts, kept on disk by the number of the text, the newest of a job.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use tensorlink_model::Setting;
use tensorlink_node::Journal;
use tensorlink_node::journal::JournalError;
use tensorlink_node::wire::rpc::Receipt;
use tensorlink_types::abi::{BoundaryLogs, Claim};
use tensorlink_types::{Address, Bytes, ClaimId, JobId};

/// Texts whose receipts are kept: some days of a busy gateway, some tens of megabytes.
pub const KEPT: usize = 1 << 14;

/// The receipts of texts that were asked for together. As JSON it is what a gateway answers and
/// `tensorlink challenge --receipt` reads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipts {
    /// One entry for each text, in order.
    pub texts: Vec<TextReceipts>,
}

/// The receipts of a text, stage by stage. What a stage received is what the one before it gave: the roots in their
/// logs are equal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextReceipts {
    /// The job.
    pub job: JobId,
    /// Number of the text in the job.
    pub text: u32,
    /// Tokens of the text.
    pub tokens: u32,
    /// How it was computed; receipts of earlier versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
    /// One for each lane that computed it, by stage.
    pub stages: Vec<StageReceipt>,
}

/// How a job's texts are computed, for people: it follows from the job's programs, and nobody signs it here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// In how many bits.
    pub setting: Setting,
    /// Gas of convicting a worker by one element of a product over 4,096 elements; by shorter ones it costs less.
    pub conviction_gas: u64,
}

impl From<Setting> for Terms {
    fn from(setting: Setting) -> Self {
        Self { setting, conviction_gas: setting.conviction_gas() }
    }
}

/// A stage's receipt (rule C-12).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageReceipt {
    /// The stage.
    pub stage: u16,
    /// Who signed it.
    pub worker: Address,
    /// The claim's id, by which an auditor asks for it.
    pub claim_id: ClaimId,
    /// What it asserts.
    pub claim: Claim,
    /// Preimage of the claim's `io`.
    pub logs: BoundaryLogs,
    /// The worker's signature over the claim (rule C-9).
    pub signature: Bytes,
}

impl StageReceipt {
    /// Of a receipt that was checked.
    pub fn new(worker: Address, claim_id: ClaimId, receipt: Receipt) -> Self {
        let Receipt { claim, logs, tokens: _, signature } = receipt;
        Self { stage: claim.stage, worker, claim_id, claim, logs, signature: signature.into() }
    }
}

/// The newest receipts of a job.
#[derive(Debug)]
pub struct Archive {
    journal: Journal,
    job: JobId,
    /// Numbers of the texts that are kept, oldest first.
    kept: VecDeque<u32>,
    most: usize,
}

impl Archive {
    /// Opens the receipts of a job, of which at most `most` are kept.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(journal: &Journal, job: JobId, most: usize) -> Result<Self, JournalError> {
        let prefix = name(job, "");
        let mut kept: Vec<u32> =
            journal.names()?.iter().filter_map(|name| name.strip_prefix(&prefix)?.parse().ok()).collect();
        kept.sort_unstable();
        Ok(Self { journal: journal.clone(), job, kept: kept.into(), most })
    }

    /// Keeps the receipts of a text, if it is `known_as` another also for whoever asks by that one's job and number;
    /// the oldest make room.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn keep(&mut self, receipts: &TextReceipts, known_as: Option<(JobId, u32)>) -> Result<(), JournalError> {
        for (job, text) in [Some((self.job, receipts.text)), known_as].into_iter().flatten() {
            self.journal.write(&name(job, &text.to_string()), receipts)?;
            if job == self.job {
                self.kept.push_back(text);
            }
        }
        while self.kept.len() > self.most
            && let Some(oldest) = self.kept.pop_front()
        {
            self.journal.remove(&name(self.job, &oldest.to_string()))?;
        }
        Ok(())
    }

    /// The text that was delivered last.
    pub fn last(&self) -> Option<u32> {
        self.kept.back().copied()
    }

    /// The receipts of a text, if they are still kept.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn get(&self, text: u32) -> Result<Option<TextReceipts>, JournalError> {
        read(&self.journal, self.job, text)
    }
}

/// The receipts by which a text of any job is known, if they are still kept.
pub(super) fn read(journal: &Journal, job: JobId, text: u32) -> Result<Option<TextReceipts>, JournalError> {
    journal.read(&name(job, &text.to_string()))
}

fn name(job: JobId, text: &str) -> String {
    format!("text-{job}-{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipts(text: u32) -> TextReceipts {
        TextReceipts { job: JobId(1), text, tokens: 3, terms: Some(Setting::Fast.into()), stages: vec![] }
    }

    #[test]
    fn receipts_tell_their_terms_and_those_of_earlier_versions_are_read() {
        let json = serde_json::to_value(receipts(8)).unwrap();
        assert_eq!(json["terms"], serde_json::json!({ "setting": "fast", "conviction_gas": 447_256 }));
        let earlier = TextReceipts { terms: None, ..receipts(8) };
        let json = serde_json::to_value(&earlier).unwrap();
        assert!(json.get("terms").is_none());
        assert_eq!(serde_json::from_value::<TextReceipts>(json).unwrap(), earlier);
    }

    #[test]
    fn the_newest_are_kept_across_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let mut archive = Archive::open(&journal, JobId(1), 3).unwrap();
        for text in [8, 9, 10] {
            archive.keep(&receipts(text), None).unwrap();
        }
        let mut other = Archive::open(&journal, JobId(11), 3).unwrap();
        other.keep(&TextReceipts { job: JobId(11), ..receipts(8) }, None).unwrap();
        let mut archive = Archive::open(&journal, JobId(1), 3).unwrap();
        archive.keep(&receipts(11), None).unwrap();
        assert_eq!(archive.get(8).unwrap(), None);
        assert_eq!(archive.get(9).unwrap(), Some(receipts(9)));
        assert_eq!(archive.get(11).unwrap(), Some(receipts(11)));
        assert_eq!(other.get(8).unwrap().unwrap().job, JobId(11));
    }
    #[test]
    fn a_text_that_was_begun_anew_is_found_by_its_first_number() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let mut archive = Archive::open(&journal, JobId(1), 2).unwrap();
        archive.keep(&receipts(9), Some((JobId(1), 8))).unwrap();
        let moved = TextReceipts { job: JobId(2), ..receipts(0) };
        Archive::open(&journal, JobId(2), 2).unwrap().keep(&moved, Some((JobId(1), 7))).unwrap();
        assert_eq!(archive.get(8).unwrap(), Some(receipts(9)));
        assert_eq!(read(&journal, JobId(1), 7).unwrap(), Some(moved));
        archive.keep(&receipts(10), None).unwrap();
        assert_eq!((archive.get(9).unwrap(), archive.get(8).unwrap().is_some()), (None, true), "both count");
    }
}
