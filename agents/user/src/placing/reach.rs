//! How workers are reached from this node: how far they are, and how many bytes a second pass.
//!
//! In serving, this node carries what one stage gives to the next, so that a hop is just the way to it and from it.
//! Between workers that train, such a detour is an upper bound.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use tensorlink_node::link::Link;
use tensorlink_node::ports::{Net, Protocol};
use tensorlink_types::Address;

/// Questions to each worker, of which the fastest answer counts: the first may open a connection.
const QUESTIONS: usize = 3;
/// Workers that are asked at once.
const AT_ONCE: usize = 32;
/// The longest wait for the first answer: a worker may have to be found, and a connection opened.
const OPENING: Duration = Duration::from_secs(5);
/// The longest wait for another, and what is taken for it of who gives none.
const LONGEST: Duration = Duration::from_secs(1);
/// Workers whose bandwidth is measured, the nearest. One after the other: together they would share this node's own.
const NEAREST: usize = 32;
/// How long that may take in all: a training may stand still meanwhile. Of these, who is left is measured next time.
const MEASURING: Duration = Duration::from_secs(4);
/// How long a distance holds that was measured: what was placed is shown by the same.
const NEAR: Duration = Duration::from_secs(10);
/// How long a bandwidth that was measured holds, and that there was none.
const HOLDS: (Duration, Duration) = (Duration::from_secs(600), Duration::from_secs(30));

/// How a worker is reached.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reach {
    /// Seconds to it, one way.
    pub away: f64,
    /// Bytes a second; none where that is not known.
    pub link: Option<Link>,
}

/// The workers whose bandwidth was measured lately, and those who do not let it be.
#[derive(Default)]
pub(crate) struct Reaches {
    measured: Mutex<HashMap<Address, (Instant, Option<Link>)>>,
    away: Mutex<HashMap<Address, (Instant, Duration)>>,
}

impl Reaches {
    /// How each of these workers is reached, in their order; their bandwidth as far as it is known, or `measured` now.
    pub(crate) async fn of(&self, net: &dyn Net, workers: &[Address], measured: bool) -> Vec<Reach> {
        let away = self.distances(net, workers).await;
        self.forget();
        if measured {
            // What is measured until then counts.
            let _ = tokio::time::timeout(MEASURING, self.measure(net, &away, workers)).await;
        }
        let measured = self.measured();
        let of = |(away, worker): (&Duration, &Address)| Reach {
            away: away.as_secs_f64(),
            link: measured.get(worker).and_then(|(_, link)| *link),
        };
        away.iter().zip(workers).map(of).collect()
    }

    /// The time to each worker, one way, in their order, asked for again where it is not known of lately.
    async fn distances(&self, net: &dyn Net, workers: &[Address]) -> Vec<Duration> {
        let lock = || self.away.lock().unwrap_or_else(PoisonError::into_inner);
        lock().retain(|_, (at, _)| at.elapsed() < NEAR);
        let mut known: HashMap<Address, (Instant, Duration)> = lock().clone();
        let asked: Vec<Address> = workers.iter().copied().filter(|worker| !known.contains_key(worker)).collect();
        let away = distances(net, &asked).await;
        let now = Instant::now();
        let fresh: Vec<_> = asked.into_iter().zip(away).map(|(worker, away)| (worker, (now, away))).collect();
        lock().extend(fresh.iter().copied());
        known.extend(fresh);
        workers.iter().map(|worker| known.get(worker).map_or(LONGEST / 2, |(_, away)| *away)).collect()
    }

    async fn measure(&self, net: &dyn Net, away: &[Duration], workers: &[Address]) {
        let mut nearest: Vec<(Duration, Address)> = away.iter().copied().zip(workers.iter().copied()).collect();
        nearest.sort_unstable();
        nearest.retain(|(away, _)| *away < LONGEST / 2);
        nearest.truncate(NEAREST);
        nearest.retain(|(_, worker)| !self.measured().contains_key(worker));
        for (away, worker) in nearest {
            // If the time is over before it is known, it is the turn of others.
            self.measured().insert(worker, (Instant::now(), None));
            let link = Link::measure(net, worker).await;
            tracing::debug!(%worker, ?away, ?link, "measured");
            self.measured().insert(worker, (Instant::now(), link));
        }
    }

    fn forget(&self) {
        self.measured().retain(|_, (at, link)| at.elapsed() < if link.is_some() { HOLDS.0 } else { HOLDS.1 });
    }

    fn measured(&self) -> MutexGuard<'_, HashMap<Address, (Instant, Option<Link>)>> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time to each worker, one way, in their order: half of what a short question and its answer take.
async fn distances(net: &dyn Net, workers: &[Address]) -> Vec<Duration> {
    let distance = |worker: Address| async move {
        let mut least = LONGEST;
        for number in 0..QUESTIONS {
            let asked = Instant::now();
            // Blocks are for everybody, before there is a job: that of no name is nowhere.
            let answer = net.request(worker, Protocol::Block, Bytes::new());
            let patience = if number == 0 { OPENING } else { LONGEST };
            let Ok(Ok(_)) = tokio::time::timeout(patience, answer).await else { break };
            least = least.min(asked.elapsed());
        }
        least / 2
    };
    futures::stream::iter(workers.iter().copied().map(distance)).buffered(AT_ONCE).collect().await
}
