//! A text under way: the rows that crossed each boundary, and the lanes that hold it at each stage.

use std::collections::BTreeSet;
use std::sync::Arc;

use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
use tensorlink_types::{JobId, TensorRoot};
use tokio::sync::OwnedSemaphorePermit;

use super::archive::{StageReceipt, TextReceipts};
use super::fault::TextError;
use super::shared::Shared;

/// A text under way. Dropped before its end it is abandoned, and nobody is paid for it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) shared: Arc<Shared>,
    pub(super) number: u32,
    pub(super) tokens: u32,
    /// The job and number by which its receipts are asked for, where that is not its own.
    pub(super) known_as: Option<(JobId, u32)>,
    /// Once the text is delivered.
    pub(super) delivered: Option<TextReceipts>,
    /// Rows that crossed each boundary; the last boundary may have one row for the whole text. They are sent again to
    /// workers that lost them, so they are kept to the end: for each of at most [`TEXTS`](super::pipeline::TEXTS) texts
    /// those of at most the job's longest.
    boundaries: Vec<Vec<u8>>,
    /// Rows of controls, sent to the last stage; none if it chooses no tokens.
    pub(super) controls: Vec<u8>,
    /// The lanes of each stage that hold the text: as many as must agree, or the text goes no further.
    pub(super) seats: Vec<Vec<Seat>>,
    /// Lanes that were sent rows, by stage and replica.
    pub(super) touched: BTreeSet<(usize, usize)>,
    _place: OwnedSemaphorePermit,
}

/// The next tokens of a text: their rows, and those of their controls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Fresh {
    pub(super) tokens: Vec<u8>,
    pub(super) controls: Vec<u8>,
}

/// Says that nobody waits for the text any more.
pub(super) type Gone<'a> = &'a (dyn Fn() -> bool + Sync);

/// A lane that holds the text in a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) replica: usize,
    /// Tokens that the lane has.
    pub(super) held: u32,
}

impl Seat {
    pub(super) const fn new(replica: usize) -> Self {
        Self { replica, held: 0 }
    }
}

impl State {
    pub(super) fn new(shared: Arc<Shared>, number: u32, place: OwnedSemaphorePermit) -> Self {
        let stages = shared.boundaries.stages();
        let of_stage = |stage| shared.first_replicas(stage, number).into_iter().map(Seat::new).collect();
        let seats = (0..stages).map(of_stage).collect();
        let boundaries = vec![Vec::new(); stages.saturating_add(1)];
        let (controls, touched) = (Vec::new(), BTreeSet::new());
        Self {
            shared,
            number,
            tokens: 0,
            known_as: None,
            delivered: None,
            boundaries,
            controls,
            seats,
            touched,
            _place: place,
        }
    }

    /// Promises the lanes that hold the text to pay it when it has `tokens` tokens.
    ///
    /// # Errors
    /// [`TextError::Spent`]; the text is as it was.
    pub(super) fn promise(&self, tokens: u32) -> Result<(), TextError> {
        for (stage, seat) in self.seated() {
            if let Some(lane) = self.shared.lane(stage, seat.replica) {
                lane.account().promise(self.number, tokens, self.shared.most).map_err(TextError::Spent)?;
            }
        }
        Ok(())
    }

    /// What lanes signed for the text as far as it has come.
    pub(super) fn receipts(&self, stages: Vec<StageReceipt>) -> TextReceipts {
        let terms = Some(self.shared.boundaries.setting().into());
        TextReceipts { job: self.shared.job, text: self.number, tokens: self.tokens, terms, stages }
    }

    /// The replica of a lane that holds the text.
    pub(super) fn replica(&self, stage: usize, index: usize) -> Option<usize> {
        Some(self.seats.get(stage)?.get(index)?.replica)
    }

    /// The lanes that hold the text, with their stages.
    pub(super) fn seated(&self) -> impl Iterator<Item = (usize, Seat)> {
        self.seats.iter().enumerate().flat_map(|(stage, seats)| seats.iter().map(move |seat| (stage, *seat)))
    }

    pub(super) fn crossed(&mut self, boundary: usize, rows: &[u8]) {
        let by_token = self.shared.boundaries.by_token(boundary);
        if let Some(kept) = self.boundaries.get_mut(boundary) {
            if !by_token {
                kept.clear();
            }
            kept.extend_from_slice(rows);
        }
    }

    pub(super) fn rows(&self, boundary: usize) -> &[u8] {
        self.boundaries.get(boundary).map(Vec::as_slice).unwrap_or_default()
    }

    /// Root of the whole tensor on a boundary that we filled ourselves or checked before.
    pub(super) fn root(&self, boundary: usize) -> Result<TensorRoot, TextError> {
        let ty = self.shared.boundaries.ty(boundary, self.tokens)?.ok_or(TextError::Closed)?;
        Tensor::from_bytes(ty, self.rows(boundary)).map(|tensor| tensor_root(&tensor)).map_err(|_| TextError::Closed)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for (stage, replica) in &self.touched {
            if let Some(lane) = self.shared.lane(*stage, *replica) {
                lane.abandon(self.number);
            }
        }
        // Lanes that were promised the text and never saw it.
        for (stage, seat) in self.seated().filter(|_| self.delivered.is_none()) {
            if let Some(lane) = self.shared.lane(stage, seat.replica) {
                lane.account().withdraw(self.number);
            }
        }
    }
}
