//! How many lanes of a stage compute a text, and who says which of them is right where they differ.

use std::sync::Arc;

use async_trait::async_trait;

use super::archive::TextReceipts;

/// What is known of a receipt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It names what the program gives.
    Right,
    /// It names something else.
    Wrong,
    /// It could not be computed again, as its worker does not show what it received.
    Unknown,
}

/// Computes texts again.
#[async_trait]
pub trait Judge: Send + Sync {
    /// Whether a receipt is right. Whoever signed a wrong one is convicted of it in the background, if it can
    /// be proven.
    async fn judge(&self, signed: &TextReceipts) -> Verdict;
}

/// How many lanes of each stage compute a text: nothing that they give is used unless it is the same, byte for byte.
#[derive(Clone)]
pub struct Agreement {
    lanes: u16,
    judge: Option<Arc<dyn Judge>>,
}

impl Agreement {
    /// One, which is believed.
    pub const fn of_one() -> Self {
        Self { lanes: 1, judge: None }
    }

    /// Of so many (at least 1). Where they differ, no majority decides, but the `judge`.
    pub fn of(lanes: u16, judge: Arc<dyn Judge>) -> Self {
        Self { lanes: lanes.max(1), judge: Some(judge) }
    }

    /// How many.
    pub const fn lanes(&self) -> u16 {
        self.lanes
    }

    /// What is known of a receipt.
    pub(super) async fn judge(&self, signed: &TextReceipts) -> Verdict {
        match &self.judge {
            Some(judge) => judge.judge(signed).await,
            None => Verdict::Unknown,
        }
    }
}

impl std::fmt::Debug for Agreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agreement").field("lanes", &self.lanes).finish_non_exhaustive()
    }
}
