//! One text on its way: the rows that crossed each boundary, and the lane that holds it at each stage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::{join, join_all};
use tensorlink_node::wire::rpc::Receipt;
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
use tensorlink_types::{Address, JobId, TensorRoot, TensorType};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use super::archive::{StageReceipt, TextReceipts};
use super::exchange::{Given, Task};
use super::fault::{LaneFault, TextError};
use super::lane::LaneClient;
use super::receipt::{Due, ReceiptFault};
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
    controls: Vec<u8>,
    seats: Vec<Seat>,
    /// Lanes that were sent rows, by stage and replica.
    touched: BTreeSet<(usize, usize)>,
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

/// What a stage gave; with the last tokens also its receipt, and the root of the whole.
type Stepped = (Vec<u8>, Option<(StageReceipt, TensorRoot)>);

/// Which lane of a stage holds the text.
#[derive(Clone, Copy, Debug)]
struct Seat {
    replica: usize,
    /// Tokens that the lane has.
    held: u32,
}

impl State {
    pub(super) fn new(shared: Arc<Shared>, number: u32, place: OwnedSemaphorePermit) -> Self {
        let stages = shared.boundaries.stages();
        let seat = |stage| Seat { replica: shared.first_replica(stage, number), held: 0 };
        let seats = (0..stages).map(seat).collect();
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
        for (stage, seat) in self.seats.iter().enumerate() {
            if let Some(lane) = self.shared.lane(stage, seat.replica) {
                lane.account().promise(self.number, tokens, self.shared.most).map_err(TextError::Spent)?;
            }
        }
        Ok(())
    }

    /// Sends the next tokens through all stages, if any; what came out for them, or for the whole text where that is
    /// one row. `gone` says that nobody waits for it any more.
    pub(super) async fn advance(&mut self, fresh: &Fresh, last: bool, gone: Gone<'_>) -> Result<Vec<u8>, TextError> {
        let shared = Arc::clone(&self.shared);
        let count = fresh.tokens.len().checked_div(shared.boundaries.row(0)).unwrap_or(0);
        self.tokens = self.tokens.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.crossed(0, &fresh.tokens);
        self.controls.extend_from_slice(&fresh.controls);
        let (mut receipts, mut sent) = (BTreeMap::new(), None);
        let mut output = Vec::new();
        for stage in 0..shared.boundaries.stages() {
            // Who ends a text has no rows for a stage that has given all of its own.
            let apart = shared.boundaries.receipt_apart(stage);
            if apart && count == 0 {
                continue;
            }
            let root = if last && !apart { Some(sent.map_or_else(|| self.root(stage), Ok)?) } else { None };
            let (given, signed) = self.stage(stage, root, gone).await?;
            self.crossed(stage.saturating_add(1), &given);
            output = given;
            sent = signed.map(|(receipt, got)| {
                receipts.insert(stage, receipt);
                got
            });
        }
        if last {
            self.sign(&mut receipts, gone).await?;
            // It may go on elsewhere, and is paid there.
            if gone() {
                return Err(TextError::Left);
            }
            self.deliver(receipts.into_values().collect()).await?;
        }
        Ok(output)
    }

    /// Asks the stages that have not signed for the text, all at once, and checks what they sign.
    async fn sign(&mut self, receipts: &mut BTreeMap<usize, StageReceipt>, gone: Gone<'_>) -> Result<(), TextError> {
        let missing: Vec<usize> =
            (0..self.shared.boundaries.stages()).filter(|stage| !receipts.contains_key(stage)).collect();
        let asked = join_all(missing.iter().map(|stage| self.ending(*stage)));
        // Hashed here while they hash there.
        let roots = |stage: &usize| Ok((self.root(*stage)?, self.root(stage.saturating_add(1))?));
        let hashed = async { missing.iter().map(roots).collect::<Result<Vec<_>, TextError>>() };
        let (answers, roots) = join(asked, hashed).await;
        let signed = missing.into_iter().zip(answers).zip(roots?).map(|((stage, answer), roots)| {
            let receipt = answer.and_then(|(lane, receipt)| self.signed(stage, lane, roots, receipt));
            (stage, roots.0, receipt)
        });
        for (stage, sent, receipt) in signed.collect::<Vec<_>>() {
            let receipt = match receipt {
                Ok(receipt) => receipt,
                Err(fault) => {
                    self.fails(stage, &fault);
                    let (_, signed) = self.stage(stage, Some(sent), gone).await?;
                    signed.ok_or(TextError::Closed)?.0
                }
            };
            receipts.insert(stage, receipt);
        }
        Ok(())
    }

    fn crossed(&mut self, boundary: usize, rows: &[u8]) {
        let by_token = self.shared.boundaries.by_token(boundary);
        if let Some(kept) = self.boundaries.get_mut(boundary) {
            if !by_token {
                kept.clear();
            }
            kept.extend_from_slice(rows);
        }
    }

    fn rows(&self, boundary: usize) -> &[u8] {
        self.boundaries.get(boundary).map(Vec::as_slice).unwrap_or_default()
    }

    /// Root of the whole tensor on a boundary that we filled ourselves or checked before.
    fn root(&self, boundary: usize) -> Result<TensorRoot, TextError> {
        let ty = self.shared.boundaries.ty(boundary, self.tokens)?.ok_or(TextError::Closed)?;
        Tensor::from_bytes(ty, self.rows(boundary)).map(|tensor| tensor_root(&tensor)).map_err(|_| TextError::Closed)
    }

    /// Root of the controls of the whole text, for a stage that takes them.
    fn controls_root(&self, stage: usize) -> Result<Option<TensorRoot>, LaneFault> {
        let boundaries = &self.shared.boundaries;
        if boundaries.controls_row(stage) == 0 {
            return Ok(None);
        }
        let ty = boundaries.controls(self.tokens).ok().flatten().ok_or(LaneFault::OffTopic)?;
        Ok(Some(tensor_root(&Tensor::from_bytes(ty, &self.controls)?)))
    }

    /// What a stage gave for some tokens: rows of its type, and where tokens are chosen, tokens of the model.
    fn check(&self, stage: usize, ty: TensorType, rows: &[u8]) -> Result<Tensor, LaneFault> {
        let boundaries = &self.shared.boundaries;
        let given = Tensor::from_bytes(ty, rows)?;
        if boundaries.controls_row(stage) > 0 {
            let known = 0..i64::from(boundaries.vocabulary());
            if let Some(wrong) = given.mantissas().to_vec().into_iter().find(|id| !known.contains(id)) {
                return Err(LaneFault::Token(wrong));
            }
        }
        Ok(given)
    }

    /// Brings the text forward in one stage, by the lane that holds it or another replica.
    async fn stage(&mut self, stage: usize, sent: Option<TensorRoot>, gone: Gone<'_>) -> Result<Stepped, TextError> {
        let shared = Arc::clone(&self.shared);
        let mut faults: Vec<(Address, LaneFault)> = Vec::new();
        let replicas = shared.replicas(stage);
        for _ in 0..replicas {
            if gone() {
                return Err(TextError::Left);
            }
            let Some(seat) = self.seats.get(stage).copied() else { break };
            let Some(lane) = shared.lane(stage, seat.replica) else { break };
            self.touched.insert((stage, seat.replica));
            match self.in_lane(lane, (stage, seat.held), sent).await {
                Ok(done) => {
                    let tokens = self.tokens;
                    self.seats.iter_mut().skip(stage).take(1).for_each(|seat| seat.held = tokens);
                    shared.answered(stage, seat.replica);
                    return Ok(done);
                }
                Err(fault) => {
                    self.fails(stage, &fault);
                    faults.push((lane.worker, fault));
                }
            }
        }
        Err(TextError::Stage { stage: u16::try_from(stage).unwrap_or(u16::MAX), faults })
    }

    /// The lane that holds the text in a stage does not go on with it: another replica begins anew.
    fn fails(&mut self, stage: usize, fault: &LaneFault) {
        let replicas = self.shared.replicas(stage).max(1);
        let Some(seat) = self.seats.get_mut(stage) else { return };
        let replica = self.shared.lane(stage, seat.replica).map(|lane| lane.lane.replica);
        tracing::warn!(stage, replica, text = self.number, %fault, "a lane fails");
        self.shared.failed(stage, seat.replica, fault);
        *seat = Seat { replica: seat.replica.saturating_add(1) % replicas, held: 0 };
    }

    /// What the lanes of a stage are asked for.
    fn task(&self, stage: usize, last: bool) -> Result<(Task<'_>, TensorType), LaneFault> {
        let (boundaries, out) = (&self.shared.boundaries, stage.saturating_add(1));
        let ty = boundaries.ty(out, self.tokens).ok().flatten().ok_or(LaneFault::OffTopic)?;
        let by_token = boundaries.by_token(out);
        let task = Task {
            text: self.number,
            tokens: self.tokens,
            input: (self.rows(stage), boundaries.row(stage)),
            controls: Some(boundaries.controls_row(stage))
                .filter(|row| *row > 0)
                .map(|row| (self.controls.as_slice(), row)),
            known: if by_token { (self.rows(out), boundaries.row(out)) } else { (&[], 0) },
            whole: usize::try_from(ty.byte_len()).unwrap_or(usize::MAX),
            part: boundaries.part(stage),
            last,
        };
        Ok((task, ty))
    }

    /// What a lane gives. With the root of what was `sent` it is the last, and its receipt is entered in the
    /// lane's account.
    async fn in_lane(
        &self,
        lane: &LaneClient,
        (stage, held): (usize, u32),
        sent: Option<TensorRoot>,
    ) -> Result<Stepped, LaneFault> {
        let (ports, boundaries, out) = (&self.shared.ports, &self.shared.boundaries, stage.saturating_add(1));
        let (task, ty) = self.task(stage, sent.is_some())?;
        // Before anything is computed that could not be paid.
        lane.account().promise(self.number, self.tokens, self.shared.most)?;
        let Some(sent) = sent else {
            let rows = lane.advance(ports, task, held).await?.rows;
            if let Some(fresh) = rows.len().checked_div(task.known.1).and_then(|rows| u32::try_from(rows).ok())
                && let Some(ty) = boundaries.ty(out, fresh).ok().flatten()
            {
                self.check(stage, ty, &rows)?;
            }
            return Ok((rows, None));
        };
        let Given { rows, receipt } = lane.advance(ports, task, held).await?;
        let whole = self.check(stage, ty, &[task.known.0, &rows].concat())?;
        let got = tensor_root(&whole);
        let receipt = self.signed(stage, lane, (sent, got), receipt.ok_or(ReceiptFault::Absent)?)?;
        Ok((rows, Some((receipt, got))))
    }

    /// What the lane that holds the text in a stage signs for it, all of whose rows are known.
    async fn ending(&self, stage: usize) -> Result<(&LaneClient, Receipt), LaneFault> {
        let seat = self.seats.get(stage).ok_or(LaneFault::OffTopic)?;
        let lane = self.shared.lane(stage, seat.replica).ok_or(LaneFault::OffTopic)?;
        let (task, _) = self.task(stage, true)?;
        let Given { receipt, .. } = lane.advance(&self.shared.ports, task, seat.held).await?;
        Ok((lane, receipt.ok_or(ReceiptFault::Absent)?))
    }

    /// Checks a lane's receipt for what was sent and got, and enters it in the lane's account.
    fn signed(
        &self,
        stage: usize,
        lane: &LaneClient,
        (sent, got): (TensorRoot, TensorRoot),
        receipt: Receipt,
    ) -> Result<StageReceipt, LaneFault> {
        let controls = self.controls_root(stage)?;
        let (lane_of, text, tokens) = (lane.lane, self.number, self.tokens);
        let due = Due { lane: lane_of, worker: lane.worker, text, tokens, sent, controls, got };
        let id = due.check(&self.shared.ports.contracts, &receipt)?;
        lane.account().enter(self.number, id, self.tokens);
        Ok(StageReceipt::new(lane.worker, id, receipt))
    }

    /// The text is whole: its lanes are owed for it. All of that is on disk when this returns, written side by side.
    async fn deliver(&mut self, stages: Vec<StageReceipt>) -> Result<(), TextError> {
        let terms = Some(self.shared.boundaries.setting().into());
        let receipts = TextReceipts { job: self.shared.job, text: self.number, tokens: self.tokens, terms, stages };
        let mut writing = JoinSet::new();
        let (shared, kept, known_as) = (Arc::clone(&self.shared), receipts.clone(), self.known_as);
        writing.spawn_blocking(move || shared.archive().keep(&kept, known_as));
        for (stage, seat) in self.seats.iter().enumerate() {
            let (shared, text, replica) = (Arc::clone(&self.shared), self.number, seat.replica);
            if let Some(lane) = shared.lane(stage, replica) {
                lane.account().finish(text);
                self.touched.remove(&(stage, replica));
            }
            writing.spawn_blocking(move || {
                let Some(lane) = shared.lane(stage, replica) else { return Ok(()) };
                let saved = lane.save(&shared.ports);
                lane.wake.notify_one();
                saved
            });
        }
        while let Some(written) = writing.join_next().await {
            written.map_err(|_| TextError::Closed)??;
        }
        self.delivered = Some(receipts);
        Ok(())
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
        for (stage, seat) in self.seats.iter().enumerate().filter(|_| self.delivered.is_none()) {
            if let Some(lane) = self.shared.lane(stage, seat.replica) {
                lane.account().withdraw(self.number);
            }
        }
    }
}
