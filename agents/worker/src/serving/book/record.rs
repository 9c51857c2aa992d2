//! What a lane's book is on disk.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tensorlink_node::wire::rpc::Receipt;
use tensorlink_types::Lane;
use tensorlink_types::abi::Voucher;

/// A receipt, and what it takes to repeat its text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The receipt.
    pub receipt: Receipt,
    /// CID of the tensor received.
    pub inputs: String,
}

/// A voucher that was found good.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Signed {
    /// What the user owes.
    pub voucher: Voucher,
    /// Its signature.
    pub signature: Vec<u8>,
}

/// How far the voucher of an epoch that is over has come.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// To be redeemed.
    Due,
    /// Mined; a reorganisation may undo it.
    Sent,
    /// Confirmed.
    Confirmed,
}

/// An epoch that is over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Over {
    /// Its last voucher.
    pub(super) signed: Signed,
    /// Receipts that it names.
    pub(super) receipts: usize,
    /// When it ended, seconds.
    pub(super) ended_at: u64,
    pub(super) progress: Progress,
}

/// What is replaced as a whole.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) lane: Lane,
    /// The open epoch; from 1.
    pub(super) epoch: u32,
    /// Its best voucher, and how many of its receipts that names.
    pub(super) best: Option<(Signed, usize)>,
    /// Tokens of the receipts of epochs that are over.
    pub(super) before: u64,
    pub(super) over: BTreeMap<u32, Over>,
}

impl Record {
    /// Tokens of the best voucher.
    pub(super) fn paid(&self) -> u32 {
        self.best_tokens().unwrap_or_else(|| self.begun())
    }

    /// Tokens of the open epoch's best voucher, if it has any.
    pub(super) fn best_tokens(&self) -> Option<u32> {
        self.best.as_ref().map(|(signed, _)| signed.voucher.tokens)
    }

    /// Tokens of the vouchers of the epochs that are over: what those of the open one begin at. The last of them is
    /// always kept.
    pub(super) fn begun(&self) -> u32 {
        self.over.values().last().map_or(0, |over| over.signed.voucher.tokens)
    }
}

pub(super) fn file_name(lane: Lane) -> String {
    format!("serving-{}-{}-{}", lane.job, lane.stage, lane.replica)
}

pub(super) fn epoch_file(lane: Lane, epoch: u32) -> String {
    format!("receipts-{}-{}-{}-{epoch}", lane.job, lane.stage, lane.replica)
}
