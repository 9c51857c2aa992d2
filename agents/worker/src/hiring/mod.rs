//! A worker offers itself: it tells everybody what is free and at what price, and binds itself to lanes for users.
//!
//! | module | what lives there |
//! |---|---|
//! | [`quote`](mod@quote) | whether to take a lane, and for how much |
//! | [`hours`] | hours of the day in which jobs are taken |
//! | [`promises`] | lanes, disk and memory held for what was offered |
//! | `places` | offers that are prepared at once |
//! | `fetching` | the files of a lane, fetched where there is room for them |

mod fetching;
pub mod hours;
mod places;
pub mod promises;
pub mod quote;

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::Event;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::gossip::{WORKERS, WorkerAdvert};
use tensorlink_node::wire::rpc::Response;
use tensorlink_program::engine::Engine;
use tensorlink_types::{Address, Lane};
use tokio_util::sync::CancellationToken;

pub(crate) use self::fetching::{fetch, fetch_serving};
use self::places::Places;
use self::promises::Promises;
use self::quote::quote;
use crate::context::Context;
use crate::state::{Jobs, Lanes, lane_of};

/// Time between two adverts.
const ADVERT: Duration = Duration::from_secs(2);
/// Offers prepared at once, and for one user. Files are fetched from who asks, who may be slow.
const QUOTES: usize = 4;
const QUOTES_EACH: usize = 2;

/// Adverts and offers of a worker.
pub(crate) struct Hiring<E> {
    context: Arc<Context<E>>,
    lanes: Arc<Lanes>,
    jobs: Arc<Jobs>,
    promises: Arc<Promises>,
    /// Offers that are being prepared.
    quotes: Places,
}

impl<E: Engine> Hiring<E> {
    pub(crate) fn new(context: Arc<Context<E>>, lanes: Arc<Lanes>, jobs: Arc<Jobs>, promises: Arc<Promises>) -> Self {
        Self { context, lanes, jobs, promises, quotes: Places::new(QUOTES, QUOTES_EACH) }
    }

    /// Takes in a confirmed event: what was promised is accepted, or not needed any more.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn apply(&self, event: &Event) -> Result<(), JournalError> {
        match event {
            Event::JobAccepted { job, offers } => {
                let own = self.context.ports.identity.address();
                self.promises.accepted(*job, lane_of(*job, offers, own));
                Ok(())
            }
            // Cancelled before any offer was accepted, perhaps.
            Event::JobSettled { job, .. } => self.promises.release(*job),
            _ => Ok(()),
        }
    }

    /// Tells everybody what is free, again and again, until `end`.
    pub(crate) async fn advertise(self: Arc<Self>, engine: String, end: CancellationToken) {
        loop {
            let now = self.context.ports.clock.now();
            let promised = self.promises.count(now);
            let free = if self.context.config.is_open_at(now) { self.free_lanes() } else { 0 };
            let advert = WorkerAdvert {
                memory: self.promises.left(),
                disk: self.disk().await,
                speed: self.context.config.speed,
                free_lanes: free.saturating_sub(promised),
                prices: self.context.config.prices,
                engine: engine.clone(),
            };
            if let Ok(message) = encode("advert", &advert)
                && let Err(error) = self.context.ports.net.publish(WORKERS, message).await
            {
                tracing::debug!(%error, "the advert was not published");
            }
            tokio::select! {
                () = end.cancelled() => return,
                () = self.context.ports.clock.sleep(ADVERT) => {}
            }
        }
    }

    /// Disk that is promised to nobody, bytes. None where the disk fails: no lane could begin.
    async fn disk(&self) -> u64 {
        match self.context.ports.store.room().await {
            Ok(room) => self.promises.disk_left(room),
            Err(error) => {
                tracing::debug!(%error, "no disk is advertised");
                0
            }
        }
    }

    /// Lanes beside those that are accepted and not over; some may be promised.
    fn free_lanes(&self) -> u16 {
        let busy = u16::try_from(self.lanes.busy()).unwrap_or(u16::MAX);
        self.context.config.max_lanes.saturating_sub(busy)
    }

    /// A binding offer for a lane.
    pub(crate) async fn offer(&self, peer: Address, lane: Lane) -> Response {
        let user = self.context.roster.members(lane.job).map(|members| members.user);
        let (Some(user), Some(posted)) = (user, self.jobs.get(lane.job)) else {
            return Response::Declined("the job is not confirmed here yet: ask again".into());
        };
        if user != peer {
            return Response::Declined("only the job's user gets offers".into());
        }
        let Some(_place) = self.quotes.take(peer) else {
            return Response::Declined("as many offers as may be are being prepared: ask again".into());
        };
        let promises = (self.promises.as_ref(), || self.free_lanes());
        match quote(&self.context, lane, (posted.terms, posted.manifest), promises).await {
            Ok((offer, signature)) => Response::Offer { offer, signature },
            Err(declined) if declined.is_final() => Response::Refused(declined.to_string()),
            Err(declined) => Response::Declined(declined.to_string()),
        }
    }
}
