//! The worker's side of serving: a lane from its job's start to its settlement, and the requests about it.

use std::sync::Arc;

use tensorlink_model::CacheEngine;
use tensorlink_node::blocking;
use tensorlink_node::interval::Span;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::Owner;
use tensorlink_node::wire::rpc::{Advance, Response};
use tensorlink_types::abi::{JobKind, Voucher};
use tensorlink_types::{Address, ClaimId, JobId, Lane};
use thiserror::Error;

use super::book::{Book, Progress, Signed};
use super::lane::{ServingLane, pay};
use super::redeem;
use super::voucher::Payer;
use crate::audit_answers::Repeatable;
use crate::quote::fetch_serving;
use crate::record::{Interval, LaneLog};
use crate::role::{BACK_OFF, Worker};

/// Why a request about a lane is not for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
enum Unserved {
    /// Not the user.
    #[error("only the job's user may ask for this")]
    Stranger,
    /// Not ours, or not a serving lane.
    #[error("this worker does not serve that lane")]
    Elsewhere,
    /// Its stage is on its way here.
    #[error("the lane is not loaded yet: ask again")]
    Loading,
}

impl From<Unserved> for Response {
    fn from(unserved: Unserved) -> Self {
        if unserved == Unserved::Loading { Self::Busy } else { Self::Declined(unserved.to_string()) }
    }
}

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// The book of a lane whose job has started.
    pub(crate) fn open_book(&self, lane: Lane) -> Result<Arc<Book>, JournalError> {
        let user = self.context.roster.members(lane.job).map(|members| members.user).unwrap_or_default();
        let most = self.posted().get(&lane.job).map_or(0, |posted| posted.intervals);
        let payer = Payer { lane, user, most, contracts: self.context.ports.contracts };
        let book = Arc::new(Book::open(self.context.ports.journal.clone(), payer)?);
        if let Some(running) = self.lanes().get_mut(&lane) {
            running.book = Some(book.clone());
        }
        Ok(book)
    }

    pub(crate) fn book_of(&self, lane: Lane) -> Option<Arc<Book>> {
        self.lanes().get(&lane).and_then(|running| running.book.clone())
    }

    /// Everything a serving lane needs, until it is over.
    pub(crate) async fn serve(self: Arc<Self>, log: Arc<LaneLog>, book: Arc<Book>) {
        let lane = book.payer().lane;
        let Some(all) = self.lanes().get(&lane).map(|running| running.all.clone()) else { return };
        let redeeming = async {
            let (chain, clock) = (self.context.ports.chain.clone(), self.context.ports.clock.clone());
            // Until the settlement is confirmed: a reorganisation may undo it, and what was redeemed last.
            while !all.is_cancelled() {
                redeem::run((chain.clone(), clock.clone()), book.clone(), all.clone()).await;
                self.settle(lane.job, &all).await;
            }
        };
        let serving = async {
            loop {
                match self.try_serve(&log, &book).await {
                    Ok(None) => return,
                    Ok(Some(serving)) => {
                        tokio::select! {
                            () = all.cancelled() => return,
                            () = serving.ended() => tracing::error!(%lane, "its thread has ended; starting another"),
                        }
                    }
                    Err(error) => tracing::warn!(%lane, error, "cannot serve yet"),
                }
                tokio::select! {
                    () = all.cancelled() => return,
                    () = self.context.ports.clock.sleep(BACK_OFF) => {}
                }
            }
        };
        self.own_inputs(&book).await;
        // Vouchers of an earlier life wait for no shard.
        tokio::join!(redeeming, serving);
        self.let_go_if_settled(lane).await;
    }

    /// Fetches the stage and starts its engine; none if the job is over.
    async fn try_serve(&self, log: &LaneLog, book: &Arc<Book>) -> Result<Option<Arc<ServingLane>>, String> {
        let record = log.get();
        let lane = record.lane;
        let Some(job) = self.unsettled_job(lane).await? else { return Ok(None) };
        let (owner, room) = (self.owner_for(lane), self.promises.owed(lane));
        let fetched = fetch_serving(&self.context, &job, (lane.stage, record.manifest()?), (owner, &room)).await;
        let shard = fetched.map_err(|e| e.to_string())?;
        self.promises.fetched(lane);
        let closing = self.lanes().get(&lane).map(|running| running.compute.clone()).unwrap_or_default();
        let more = self.promises.more(lane).map_err(|error| error.to_string())?;
        let serving = ServingLane::start(&self.context, (shard, more), book.clone(), closing).await;
        let serving = Arc::new(serving.map_err(|e| e.to_string())?);
        if let Some(running) = self.lanes().get_mut(&lane).filter(|running| !running.all.is_cancelled()) {
            running.serving = Some(serving.clone());
        }
        tracing::info!(%lane, "serving");
        Ok(Some(serving))
    }

    /// A confirmed voucher of ours; old epochs need not be kept any more.
    pub(crate) async fn redeemed(&self, lane: Lane, epoch: u32) -> Result<(), JournalError> {
        let Some(book) = self.book_of(lane) else { return Ok(()) };
        book.mark(epoch, Progress::Confirmed)?;
        let window = self.posted().get(&lane.job).map_or(u64::MAX, |posted| posted.window);
        // A text that comes meanwhile may name the same file.
        let _pins = self.context.ports.pins.lock().await;
        // Its receipts are audited for a window after this; it may have ended long before.
        let (stale, inputs) = book.stale(self.context.ports.clock.now(), window.saturating_mul(2));
        self.unpin(lane, inputs).await;
        // Last, so that a kill before it leaves nothing pinned for ever.
        if stale.is_empty() { Ok(()) } else { book.forget(&stale) }
    }

    /// Drops what a settled lane leaves.
    pub(crate) async fn close_book(&self, lane: Lane) -> Result<(), JournalError> {
        let book = self.lanes().get_mut(&lane).and_then(|running| {
            running.serving = None;
            running.book.take()
        });
        let Some(book) = book else { return Ok(()) };
        let _pins = self.context.ports.pins.lock().await;
        self.unpin(lane, book.inputs()).await;
        book.clear()
    }

    async fn unpin(&self, lane: Lane, cids: impl IntoIterator<Item = String>) {
        let store = self.context.ports.store.of(Owner::Lane(lane));
        for cid in cids {
            if let Ok(cid) = cid.parse()
                && let Err(error) = store.unpin(&cid).await
            {
                tracing::debug!(%cid, %error, "not unpinned");
            }
        }
    }

    /// The lane that serves.
    fn serving(&self, lane: Lane) -> Result<Arc<ServingLane>, Unserved> {
        let ours = self.posted().get(&lane.job).is_some_and(|posted| posted.kind == JobKind::Serving);
        let lanes = self.lanes();
        let Some(running) = lanes.get(&lane).filter(|_| ours) else { return Err(Unserved::Elsewhere) };
        match &running.serving {
            Some(serving) => Ok(serving.clone()),
            // Not fetched, or the start of the job is not confirmed here yet.
            None if !running.log.get().over => Err(Unserved::Loading),
            None => Err(Unserved::Elsewhere),
        }
    }

    fn check_user(&self, peer: Address, job: JobId) -> Result<(), Unserved> {
        let user = self.context.roster.members(job).map(|members| members.user);
        if user == Some(peer) { Ok(()) } else { Err(Unserved::Stranger) }
    }

    pub(crate) async fn advance(&self, peer: Address, request: Advance) -> Response {
        let lane = request.lane;
        match self.check_user(peer, lane.job).and_then(|()| self.serving(lane)) {
            Ok(serving) => serving.advance(request).await,
            Err(unserved) => unserved.into(),
        }
    }

    pub(crate) fn abandon(&self, peer: Address, lane: Lane, text: u32) -> Response {
        match self.check_user(peer, lane.job).and_then(|()| self.serving(lane)) {
            Ok(serving) => serving.abandon(text),
            Err(unserved) => unserved.into(),
        }
    }

    pub(crate) async fn pay(&self, peer: Address, voucher: Voucher, signature: Vec<u8>) -> Response {
        let lane = Lane { job: JobId(voucher.job), stage: voucher.stage, replica: voucher.replica };
        if let Err(unserved) = self.check_user(peer, lane.job) {
            return unserved.into();
        }
        match self.book_of(lane) {
            Some(book) => pay(book, Signed { voucher, signature }, self.context.ports.clock.now()).await,
            None => Unserved::Elsewhere.into(),
        }
    }

    pub(crate) fn receipts(&self, lane: Lane, epoch: u32) -> Response {
        match self.book_of(lane).map(|book| book.claims(epoch)) {
            Some(Some(claims)) => Response::Receipts(claims),
            Some(None) => Response::Declined(format!("epoch {epoch} has not begun, or is not kept any more")),
            None => Unserved::Elsewhere.into(),
        }
    }

    /// A receipt of ours by its id, with the shard of its length; none if there is none of this id.
    pub(crate) async fn repeatable_receipt(&self, id: ClaimId) -> Result<Option<Repeatable>, Response> {
        let books: Vec<_> = self.lanes().values().filter_map(|running| running.book.clone()).collect();
        let Some((lane, entry)) = books.iter().find_map(|book| Some((book.payer().lane, book.get(id)?))) else {
            return Ok(None);
        };
        let shard = self.serving(lane).map_err(|unserved| Response::Declined(unserved.to_string()))?.shard().clone();
        let tokens = entry.receipt.tokens;
        let shard = blocking(move || shard.shard(tokens)).await.map_err(|e| Response::Declined(e.to_string()))?;
        let lineage = self.log_of(lane).and_then(|log| log.get().lineage).unwrap_or_default();
        // The job's start was confirmed before anything was served.
        let interval = Interval {
            confirmed: true,
            ..Interval::new(entry.receipt.claim, entry.receipt.logs, String::new(), entry.inputs)
        };
        Ok(Some(Repeatable {
            id,
            interval,
            shard: Arc::new(shard),
            lineage,
            span: Span { first_step: tokens, steps: 1 },
        }))
    }
}
