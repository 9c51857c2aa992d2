//! A stage's part in a text: the lanes that hold it there are asked side by side, and what they give is used if all
//! give the same. A lane that fails makes room for another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tensorlink_node::wire::rpc::Receipt;
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
use tensorlink_types::{Address, TensorRoot, TensorType};

use super::archive::StageReceipt;
use super::exchange::{Given, Task};
use super::fault::{LaneFault, TextError};
use super::lane::LaneClient;
use super::pace::Kind;
use super::rate::Answered;
use super::receipt::{Due, ReceiptFault};
use super::state::{Gone, Seat, State};

/// What a lane gave for some tokens.
#[derive(Debug)]
pub(super) struct OfLane {
    pub(super) replica: usize,
    pub(super) rows: Vec<u8>,
    /// With the last of them: its receipt, and the root of the whole.
    pub(super) signed: Option<(StageReceipt, TensorRoot)>,
    /// How long the lane took, where nothing held it up.
    pub(super) took: Option<Duration>,
}

/// The same of a stage: what all of its lanes gave.
#[derive(Debug)]
pub(super) struct OfStage {
    pub(super) rows: Vec<u8>,
    pub(super) signed: Option<(Vec<StageReceipt>, TensorRoot)>,
}

impl State {
    /// Brings the text forward in one stage, by the lanes that hold it or other replicas. What some have `given` by
    /// seat they are not asked for again.
    pub(super) async fn stage(
        &mut self,
        stage: usize,
        (sent, mut given): (Option<TensorRoot>, BTreeMap<usize, OfLane>),
        gone: Gone<'_>,
    ) -> Result<OfStage, TextError> {
        let shared = Arc::clone(&self.shared);
        let failed = |faults| TextError::Stage { stage: u16::try_from(stage).unwrap_or(u16::MAX), faults };
        let mut faults: Vec<(Address, LaneFault)> = Vec::new();
        let mut tried = BTreeSet::new();
        let seats = self.seats.get(stage).map_or(0, Vec::len);
        if seats < shared.agreeing() {
            return Err(failed(shared.liars_of(stage).into_iter().map(|liar| (liar, LaneFault::Wrong)).collect()));
        }
        while given.len() < seats {
            if gone() {
                return Err(TextError::Left);
            }
            let seats = self.seats.get(stage).map(Vec::as_slice).unwrap_or_default();
            let asked: Vec<(usize, Seat)> =
                seats.iter().copied().enumerate().filter(|(index, _)| !given.contains_key(index)).collect();
            self.touched.extend(asked.iter().map(|(_, seat)| (stage, seat.replica)));
            let answers = join_all(asked.iter().map(|(_, seat)| self.ask((stage, *seat), sent))).await;
            let mut exhausted = false;
            for ((index, seat), answer) in asked.into_iter().zip(answers) {
                match answer {
                    Ok(done) => {
                        let held = self.tokens;
                        self.seat(stage, index, Seat { held, ..seat });
                        given.insert(index, done);
                    }
                    Err(fault) => {
                        tried.insert(seat.replica);
                        exhausted |= !self.fails((stage, index), &fault, &tried);
                        faults.extend(shared.lane(stage, seat.replica).map(|lane| (lane.worker, fault)));
                    }
                }
            }
            if exhausted {
                return Err(failed(faults));
            }
        }
        let given: Vec<OfLane> = given.into_values().collect();
        let replicas: Vec<usize> = given.iter().map(|lane| lane.replica).collect();
        match agreed(given) {
            Ok(agreed) => {
                replicas.into_iter().for_each(|replica| shared.answered(stage, replica));
                Ok(agreed)
            }
            Err(given) => Err(failed(self.differ(stage, given).await)),
        }
    }

    fn seat(&mut self, stage: usize, index: usize, seat: Seat) {
        if let Some(place) = self.seats.get_mut(stage).and_then(|seats| seats.get_mut(index)) {
            *place = seat;
        }
    }

    /// A lane that holds the text in a stage does not go on with it: another replica that was not `tried` begins anew,
    /// or itself if there is no other. False if there is none at all.
    pub(super) fn fails(&mut self, (stage, index): (usize, usize), fault: &LaneFault, tried: &BTreeSet<usize>) -> bool {
        let seats = self.seats.get(stage).map(Vec::as_slice).unwrap_or_default();
        let Some(seat) = seats.get(index).copied() else { return false };
        let replica = self.shared.lane(stage, seat.replica).map(|lane| lane.lane.replica);
        tracing::warn!(stage, replica, text = self.number, %fault, "a lane fails");
        self.shared.failed(stage, seat.replica, fault);
        let replicas = self.shared.replicas(stage).max(1);
        let elsewhere =
            |replica: usize| seats.iter().enumerate().any(|(at, seat)| at != index && seat.replica == replica);
        let next = (1..=replicas)
            .map(|offset| seat.replica.saturating_add(offset) % replicas)
            .find(|replica| !tried.contains(replica) && !elsewhere(*replica) && !self.shared.is_wrong(stage, *replica));
        next.map(|replica| self.seat(stage, index, Seat::new(replica))).is_some()
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

    /// What the lanes of a stage are asked for, that have given the rows `known` so far; and the type of all.
    fn task<'a>(&'a self, stage: usize, known: &'a [u8], last: bool) -> Result<(Task<'a>, TensorType), LaneFault> {
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
            known: if by_token { (known, boundaries.row(out)) } else { (&[], 0) },
            whole: usize::try_from(ty.byte_len()).unwrap_or(usize::MAX),
            part: boundaries.part(stage),
            last,
        };
        Ok((task, ty))
    }

    /// [`Self::in_lane`], and how long that takes.
    async fn ask(&self, (stage, seat): (usize, Seat), sent: Option<TensorRoot>) -> Result<OfLane, LaneFault> {
        let (boundaries, fresh) = (&self.shared.boundaries, self.tokens.saturating_sub(seat.held));
        let kind = Kind::of(fresh, seat.held, sent.is_some());
        let question = self.shared.paces.ask((stage, seat.replica));
        let given = self.in_lane((stage, seat), sent).await?;
        let at = self.shared.ports.clock.now();
        let rated = given.took.map(|took| Answered {
            tokens: fresh,
            multiply_adds: boundaries.multiply_adds(stage, seat.held..self.tokens),
            bytes: (boundaries.sent(stage, fresh), given.rows.len() as u64),
            seconds: took.as_secs_f64(),
            at,
        });
        question.answered((kind, rated), at);
        Ok(given)
    }

    /// What a lane gives. With the root of what was `sent` it is the last, and its receipt is entered in the
    /// lane's account.
    async fn in_lane(&self, (stage, seat): (usize, Seat), sent: Option<TensorRoot>) -> Result<OfLane, LaneFault> {
        let (ports, boundaries, out) = (&self.shared.ports, &self.shared.boundaries, stage.saturating_add(1));
        let Seat { replica, held } = seat;
        let lane = self.shared.lane(stage, replica).ok_or(LaneFault::OffTopic)?;
        let (task, ty) = self.task(stage, self.rows(out), sent.is_some())?;
        // Before anything is computed that could not be paid.
        lane.account().promise(self.number, self.tokens, self.shared.most)?;
        let Some(sent) = sent else {
            let Given { rows, took, .. } = lane.advance(ports, task, held).await?;
            if let Some(fresh) = rows.len().checked_div(task.known.1).and_then(|rows| u32::try_from(rows).ok())
                && let Some(ty) = boundaries.ty(out, fresh).ok().flatten()
            {
                self.check(stage, ty, &rows)?;
            }
            return Ok(OfLane { replica, rows, signed: None, took });
        };
        let Given { rows, receipt, took } = lane.advance(ports, task, held).await?;
        let whole = self.check(stage, ty, &[task.known.0, &rows].concat())?;
        let got = tensor_root(&whole);
        let receipt = self.signed(stage, (lane, receipt.ok_or(ReceiptFault::Absent)?), (sent, got))?;
        Ok(OfLane { replica, rows, signed: Some((receipt, got)), took })
    }

    /// What the lanes that hold the text in a stage sign for it, all of whose rows are known.
    pub(super) async fn endings(&self, stage: usize) -> Vec<Result<(&LaneClient, Receipt), LaneFault>> {
        let seats = self.seats.get(stage).map(Vec::as_slice).unwrap_or_default();
        join_all(seats.iter().map(|seat| self.ending(stage, *seat, self.rows(stage.saturating_add(1))))).await
    }

    /// What a lane signs for the text, which has given the rows `known`.
    async fn ending(&self, stage: usize, seat: Seat, known: &[u8]) -> Result<(&LaneClient, Receipt), LaneFault> {
        let lane = self.shared.lane(stage, seat.replica).ok_or(LaneFault::OffTopic)?;
        let (task, _) = self.task(stage, known, true)?;
        let Given { receipt, .. } = lane.advance(&self.shared.ports, task, seat.held).await?;
        Ok((lane, receipt.ok_or(ReceiptFault::Absent)?))
    }

    /// What a lane signs for the text as far as it has come, if it gave `rows` for the newest tokens.
    pub(super) async fn signed_so_far(
        &self,
        (stage, sent): (usize, TensorRoot),
        replica: usize,
        rows: &[u8],
    ) -> Result<StageReceipt, LaneFault> {
        let known = [self.rows(stage.saturating_add(1)), rows].concat();
        let (_, ty) = self.task(stage, &known, true)?;
        let got = tensor_root(&self.check(stage, ty, &known)?);
        let answer = self.ending(stage, Seat { replica, held: self.tokens }, &known).await?;
        self.signed(stage, answer, (sent, got))
    }

    /// Checks a lane's receipt for what was sent and got, and enters it in the lane's account.
    pub(super) fn signed(
        &self,
        stage: usize,
        (lane, receipt): (&LaneClient, Receipt),
        (sent, got): (TensorRoot, TensorRoot),
    ) -> Result<StageReceipt, LaneFault> {
        let controls = self.controls_root(stage)?;
        let (lane_of, text, tokens) = (lane.lane, self.number, self.tokens);
        let due = Due { lane: lane_of, worker: lane.worker, text, tokens, sent, controls, got };
        let id = due.check(&self.shared.ports.contracts, &receipt)?;
        lane.account().enter(self.number, id, self.tokens);
        Ok(StageReceipt::new(lane.worker, id, receipt))
    }
}

/// What lanes gave, if it is the same.
fn agreed(given: Vec<OfLane>) -> Result<OfStage, Vec<OfLane>> {
    let same = given.windows(2).all(|pair| matches!(pair, [one, other] if one.rows == other.rows));
    let Some(first) = given.first().filter(|_| same) else { return Err(given) };
    let got = first.signed.as_ref().map(|(_, got)| *got);
    let mut rows = Vec::new();
    let mut receipts = Vec::new();
    for lane in given {
        rows = lane.rows;
        receipts.extend(lane.signed.map(|(receipt, _)| receipt));
    }
    Ok(OfStage { rows, signed: got.map(|got| (receipts, got)) })
}
