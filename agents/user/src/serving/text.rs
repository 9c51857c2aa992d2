//! One text on its way: the rows that crossed each boundary, and the lane that holds it at each stage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::{join, join_all};
use tensorlink_node::wire::rpc::{Advance, Receipt, Request, Response};
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
use tensorlink_types::{Address, TensorRoot, TensorType};
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
    /// Once the text is delivered.
    pub(super) delivered: Option<TextReceipts>,
    /// Rows that crossed each boundary; the last boundary may have one row for the whole text. They are sent again to
    /// workers that lost them, so they are kept to the end: for each of at most [`TEXTS`](super::pipeline::TEXTS) texts
    /// those of at most the job's longest.
    boundaries: Vec<Vec<u8>>,
    /// Rows of controls, sent to the last stage; none if it chooses no tokens.
    controls: Vec<u8>,
    /// Roots of what crossed the boundaries, once it is whole.
    roots: BTreeMap<usize, TensorRoot>,
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

/// What is asked of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wanted {
    /// Rows of a text that goes on.
    Rows,
    /// The last rows; the stage signs apart.
    LastRows,
    /// The last rows, if any are missing, and the receipt.
    Receipt,
}

/// What a stage gave, its receipt, and roots of boundaries that are whole now.
struct Stepped {
    rows: Vec<u8>,
    receipt: Option<StageReceipt>,
    roots: Vec<(usize, TensorRoot)>,
}

/// Receipts of stages that sign while others compute.
type Early = JoinSet<Option<(usize, Receipt)>>;

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
        Self {
            shared,
            number,
            tokens: 0,
            delivered: None,
            boundaries,
            controls: Vec::new(),
            roots: BTreeMap::new(),
            seats,
            touched: BTreeSet::new(),
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
        self.roots.clear();
        let (mut receipts, mut early) = (BTreeMap::new(), Early::new());
        let mut output = Vec::new();
        for stage in 0..shared.boundaries.stages() {
            let apart = shared.boundaries.receipt_apart(stage);
            // Who ends a text has no rows for a stage that has given all of its own.
            if apart && count == 0 {
                continue;
            }
            // The last stage to compute signs at once: there is nobody whose work its signing could go beside.
            let before = apart && stage.saturating_add(1) < shared.boundaries.stages();
            let wanted = match (last, before) {
                (false, _) => Wanted::Rows,
                (true, true) => Wanted::LastRows,
                (true, false) => Wanted::Receipt,
            };
            let Stepped { rows, receipt, roots } = self.stage(stage, wanted, gone).await?;
            self.crossed(stage.saturating_add(1), &rows);
            output = rows;
            self.roots.extend(roots);
            receipts.extend(receipt.map(|receipt| (stage, receipt)));
            if wanted == Wanted::LastRows {
                early.spawn(self.early(stage));
            }
        }
        if last {
            self.sign(&mut receipts, early, gone).await?;
            self.deliver(receipts.into_values().collect()).await?;
        }
        Ok(output)
    }

    /// Asks the lane of a stage that has given all its rows to sign, while the next stage computes. Whatever else comes
    /// of it, the stage is asked again in the end, by who can send it what it has lost.
    fn early(&self, stage: usize) -> impl Future<Output = Option<(usize, Receipt)>> + Send + use<> {
        let (shared, text, position) = (Arc::clone(&self.shared), self.number, self.tokens);
        let replica = self.seats.get(stage).map(|seat| seat.replica);
        async move {
            let lane = shared.lane(stage, replica?)?;
            // No rows of the one tensor that a stage before the last receives.
            let inputs = vec![Vec::new()];
            let question = Advance { lane: lane.lane, text, position, inputs, last: true };
            match lane.ask(&shared.ports, &Request::Advance(question)).await {
                Ok(Response::Advanced { receipt, .. }) => receipt.map(|receipt| (stage, receipt)),
                _ => None,
            }
        }
    }

    /// Asks the stages that have not signed for the text, all at once, and checks what they sign.
    async fn sign(
        &mut self,
        receipts: &mut BTreeMap<usize, StageReceipt>,
        mut early: Early,
        gone: Gone<'_>,
    ) -> Result<(), TextError> {
        let mut signed: BTreeMap<usize, Receipt> = BTreeMap::new();
        while let Some(one) = early.join_next().await {
            signed.extend(one.ok().flatten());
        }
        let missing: Vec<usize> =
            (0..self.shared.boundaries.stages()).filter(|stage| !receipts.contains_key(stage)).collect();
        let asked = join_all(missing.iter().map(|stage| self.ending(*stage, signed.remove(stage))));
        // Hashed here while they hash there.
        let roots = |stage: &usize| Ok((self.root(*stage)?, self.root(stage.saturating_add(1))?));
        let hashed = async { missing.iter().map(roots).collect::<Result<Vec<_>, TextError>>() };
        let (answers, roots) = join(asked, hashed).await;
        let signed = missing.into_iter().zip(answers).zip(roots?).map(|((stage, answer), roots)| {
            (stage, answer.and_then(|(lane, receipt)| self.signed(stage, lane, roots, receipt)))
        });
        for (stage, receipt) in signed.collect::<Vec<_>>() {
            let receipt = match receipt {
                Ok(receipt) => receipt,
                Err(fault) => {
                    self.fails(stage, &fault);
                    let Stepped { receipt, .. } = self.stage(stage, Wanted::Receipt, gone).await?;
                    receipt.ok_or(TextError::Closed)?
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
        if let Some(known) = self.roots.get(&boundary) {
            return Ok(*known);
        }
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
    async fn stage(&mut self, stage: usize, wanted: Wanted, gone: Gone<'_>) -> Result<Stepped, TextError> {
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
            match self.in_lane(lane, (stage, seat.held), wanted).await {
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
        self.shared.failed(stage, seat.replica);
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

    /// What a lane gives. A receipt is checked, and entered in the lane's account.
    async fn in_lane(
        &self,
        lane: &LaneClient,
        (stage, held): (usize, u32),
        wanted: Wanted,
    ) -> Result<Stepped, LaneFault> {
        let (ports, boundaries, out) = (&self.shared.ports, &self.shared.boundaries, stage.saturating_add(1));
        let (task, ty) = self.task(stage, wanted == Wanted::Receipt)?;
        // Before anything is computed that could not be paid.
        lane.account().promise(self.number, self.tokens, self.shared.most)?;
        let advancing = lane.advance(ports, task, held);
        // Hashed here while the lane computes: what it was sent is whole with the last tokens.
        let hashing = async { (wanted != Wanted::Rows).then(|| self.root(stage)).transpose() };
        let (given, sent) = join(advancing, hashing).await;
        let (Given { rows, receipt }, sent) = (given?, sent.map_err(|_| LaneFault::OffTopic)?);
        let mut roots: Vec<_> = sent.map(|sent| (stage, sent)).into_iter().collect();
        let (Wanted::Receipt, Some(sent)) = (wanted, sent) else {
            if let Some(fresh) = rows.len().checked_div(task.known.1).and_then(|rows| u32::try_from(rows).ok())
                && let Some(ty) = boundaries.ty(out, fresh).ok().flatten()
            {
                self.check(stage, ty, &rows)?;
            }
            return Ok(Stepped { rows, receipt: None, roots });
        };
        let whole = self.check(stage, ty, &[task.known.0, &rows].concat())?;
        let got = tensor_root(&whole);
        let receipt = self.signed(stage, lane, (sent, got), receipt.ok_or(ReceiptFault::Absent)?)?;
        roots.push((out, got));
        Ok(Stepped { rows, receipt: Some(receipt), roots })
    }

    /// What the lane that holds the text in a stage signs for it, all of whose rows are known: what it has signed
    /// already, or what it is asked for now.
    async fn ending(&self, stage: usize, signed: Option<Receipt>) -> Result<(&LaneClient, Receipt), LaneFault> {
        let seat = self.seats.get(stage).ok_or(LaneFault::OffTopic)?;
        let lane = self.shared.lane(stage, seat.replica).ok_or(LaneFault::OffTopic)?;
        if let Some(receipt) = signed {
            return Ok((lane, receipt));
        }
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
        let (shared, kept) = (Arc::clone(&self.shared), receipts.clone());
        writing.spawn_blocking(move || shared.archive().keep(&kept));
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
    }
}
