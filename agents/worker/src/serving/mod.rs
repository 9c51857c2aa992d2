//! Lanes of serving jobs: texts computed for a user who pays by vouchers, a receipt for each. Here is a lane from its
//! job's start to its settlement, and what requests about it come to.
//!
//! | module | what lives there |
//! |---|---|
//! | [`texts`] | the texts that are open, and the bounds on them |
//! | [`runner`] | what computes rows: the program of the present length, or token by token with keys and values kept |
//! | [`thread`](mod@thread) | a lane's thread behind its bounded queue |
//! | [`book`], [`voucher`] | receipts and vouchers on disk, epoch by epoch; what a voucher must be |
//! | [`lane`] | answers to the user |
//! | [`redeem`] | vouchers to the chain; the end of a job |
//! | `served` | the lanes that serve: their books, and what answers |

pub mod book;
pub mod lane;
pub mod redeem;
pub mod runner;
mod served;
pub mod texts;
pub mod thread;
pub mod voucher;

use std::sync::Arc;

use tensorlink_model::CacheEngine;
use tensorlink_node::blocking;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::Owner;
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::rpc::{Advance, Response};
use tensorlink_types::abi::{JobKind, Voucher};
use tensorlink_types::{Address, ClaimId, JobId, Lane};
use thiserror::Error;

pub use self::book::{Book, Entry};
use self::book::{Progress, Signed};
pub use self::lane::ServingLane;
use self::lane::pay;
use self::served::Served;
use self::voucher::Payer;
use crate::context::{BACK_OFF, Context};
use crate::hiring::fetch_serving;
use crate::hiring::promises::Promises;
use crate::keeping::{Files, Payout};
use crate::record::LaneLog;
use crate::state::{Jobs, Lanes, Stops, unsettled_job};

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

/// A receipt of ours, and what it takes to repeat its text.
pub(crate) struct Receipted {
    pub(crate) lane: Lane,
    pub(crate) entry: Entry,
    /// The stage as it is for texts of this length.
    pub(crate) shard: Shard,
}

/// The serving of a worker.
pub(crate) struct Serving<E> {
    context: Arc<Context<E>>,
    lanes: Arc<Lanes>,
    jobs: Arc<Jobs>,
    promises: Arc<Promises>,
    files: Arc<Files>,
    payout: Arc<Payout>,
    served: Served,
}

impl<E> Serving<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    pub(crate) fn new(
        context: Arc<Context<E>>,
        lanes: Arc<Lanes>,
        jobs: Arc<Jobs>,
        promises: Arc<Promises>,
        files: Arc<Files>,
        payout: Arc<Payout>,
    ) -> Self {
        Self { context, lanes, jobs, promises, files, payout, served: Served::default() }
    }

    /// Opens the book of a lane whose job has started.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn open_book(&self, lane: Lane) -> Result<Arc<Book>, JournalError> {
        let user = self.context.roster.members(lane.job).map(|members| members.user).unwrap_or_default();
        let most = self.jobs.get(lane.job).map_or(0, |posted| posted.intervals);
        let payer = Payer { lane, user, most, contracts: self.context.ports.contracts };
        let book = Arc::new(Book::open(self.context.ports.journal.clone(), payer)?);
        self.served.open(book.clone());
        Ok(book)
    }

    /// The epoch that a receipt of ours is in; none while it is not known.
    pub(crate) fn epoch_of(&self, lane: Lane, receipt: ClaimId) -> Option<u32> {
        self.served.book(lane)?.epoch_of(receipt)
    }

    /// The job of a lane is closing: what was earned is looked after at once.
    pub(crate) fn wake(&self, lane: Lane) {
        if let Some(book) = self.served.book(lane) {
            book.wake();
        }
    }

    /// Everything a serving lane needs, until it is over.
    pub(crate) async fn serve(self: Arc<Self>, log: Arc<LaneLog>, book: Arc<Book>) {
        let lane = book.payer().lane;
        let Some(all) = self.lanes.stops(lane).map(|stops| stops.all) else { return };
        let redeeming = async {
            let (chain, clock) = (self.context.ports.chain.clone(), self.context.ports.clock.clone());
            // Until the settlement is confirmed: a reorganisation may undo it, and what was redeemed last.
            while !all.is_cancelled() {
                redeem::run((chain.clone(), clock.clone()), book.clone(), all.clone()).await;
                self.payout.settle(lane.job, &all).await;
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
        self.files.own(lane, book.inputs().into_iter().collect()).await;
        // Vouchers of an earlier life wait for no shard.
        tokio::join!(redeeming, serving);
        self.files.let_go_if_settled(lane).await;
    }

    /// Fetches the stage and starts its engine; none if the job is over.
    async fn try_serve(&self, log: &LaneLog, book: &Arc<Book>) -> Result<Option<Arc<ServingLane>>, String> {
        let record = log.get();
        let lane = record.lane;
        let Some(job) = unsettled_job(self.context.ports.chain.as_ref(), lane).await? else { return Ok(None) };
        let (owner, room) = (self.files.owner_for(lane), self.promises.owed(lane));
        let fetched = fetch_serving(&self.context, &job, (lane.stage, record.manifest()?), (owner, &room)).await;
        let shard = fetched.map_err(|e| e.to_string())?;
        self.promises.fetched(lane);
        let Some(Stops { compute: closing, all }) = self.lanes.stops(lane) else { return Ok(None) };
        let more = self.promises.more(lane).map_err(|error| error.to_string())?;
        let serving = ServingLane::start(&self.context, (shard, more), book.clone(), closing).await;
        let serving = Arc::new(serving.map_err(|e| e.to_string())?);
        self.served.load(lane, &serving, &all);
        tracing::info!(%lane, "serving");
        Ok(Some(serving))
    }

    /// A confirmed voucher of ours; old epochs need not be kept any more.
    pub(crate) async fn redeemed(&self, lane: Lane, epoch: u32) -> Result<(), JournalError> {
        let Some(book) = self.served.book(lane) else { return Ok(()) };
        book.mark(epoch, Progress::Confirmed)?;
        let window = self.jobs.get(lane.job).map_or(u64::MAX, |posted| posted.window);
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
        let Some(book) = self.served.close(lane) else { return Ok(()) };
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
        let ours = self.jobs.get(lane.job).is_some_and(|posted| posted.kind == JobKind::Serving);
        let Some(log) = self.lanes.log(lane).filter(|_| ours) else { return Err(Unserved::Elsewhere) };
        match self.served.serving(lane) {
            Some(serving) => Ok(serving),
            // Not fetched, or the start of the job is not confirmed here yet.
            None if !log.get().over => Err(Unserved::Loading),
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
        match self.served.book(lane) {
            Some(book) => pay(book, Signed { voucher, signature }, self.context.ports.clock.now()).await,
            None => Unserved::Elsewhere.into(),
        }
    }

    pub(crate) fn receipts(&self, lane: Lane, epoch: u32) -> Response {
        match self.served.book(lane).map(|book| book.claims(epoch)) {
            Some(Some(claims)) => Response::Receipts(claims),
            Some(None) => Response::Declined(format!("epoch {epoch} has not begun, or is not kept any more")),
            None => Unserved::Elsewhere.into(),
        }
    }

    /// A receipt of ours by its id; none if there is none of this id.
    ///
    /// # Errors
    /// The answer to who asks, where its stage cannot be had.
    pub(crate) async fn receipt(&self, id: ClaimId) -> Result<Option<Receipted>, Response> {
        let books = self.served.books();
        let Some((lane, entry)) = books.iter().find_map(|book| Some((book.payer().lane, book.get(id)?))) else {
            return Ok(None);
        };
        let shard = self.serving(lane).map_err(|unserved| Response::Declined(unserved.to_string()))?.shard().clone();
        let tokens = entry.receipt.tokens;
        let shard = blocking(move || shard.shard(tokens)).await.map_err(|e| Response::Declined(e.to_string()))?;
        Ok(Some(Receipted { lane, entry, shard }))
    }
}
