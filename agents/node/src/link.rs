//! How many bytes a second pass between two nodes.
//!
//! Who wants to know sends short bursts: a larger one as long as the last was soon over. Who is asked answers within
//! limits, and only where its owner lets it.
//!
//! A burst's request begins with the length of the answer that it wants (u32, little-endian). All else is filler.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use tensorlink_types::Address;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::ports::{Incoming, Net, Protocol};

/// Bytes of one burst after the other.
const BURSTS: [u32; 3] = [64 << 10, 256 << 10, MOST];
/// Most bytes of a burst, either way.
pub const MOST: u32 = 1 << 20;
/// Bytes before a request's filler.
pub const HEADER: usize = size_of::<u32>();
/// A burst that took so long, and so many round trips, is the last: a connection needs some of them to gain speed.
const ENOUGH: Duration = Duration::from_millis(100);
const ROUND_TRIPS: u32 = 5;
/// Bursts of nothing, of which the fastest tells the round trip.
const EMPTY: usize = 3;
/// The longest wait for one. If even the first takes longer, it counts as if it had arrived then.
const LONGEST: Duration = Duration::from_secs(1);

/// One part in so many of a burst's time is taken for that of its bytes, however long the round trip is: neither of the
/// two is measured more exactly than that.
const LEAST_SHARE: u32 = 16;

/// Bytes that bursts of all, and of one peer, may take in a window, both ways together.
const OF_ALL: u64 = 64 << 20;
const OF_ONE: u64 = 8 << 20;
const WINDOW: Duration = Duration::from_secs(60);
/// What a request costs at least, so that there are few in a window.
const LEAST: u64 = 4 << 10;

/// Bytes that nobody shortens on their way.
static FILLER: LazyLock<Bytes> = LazyLock::new(|| {
    // A tunnel that compresses finds nothing to shorten in the upper halves of a linear congruential generator.
    let mut filler = BytesMut::with_capacity(MOST as usize);
    let mut state = 1_u64;
    while filler.len() < MOST as usize {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        filler.put_u32_le((state >> 32) as u32);
    }
    filler.freeze()
});

/// Bytes a second to a peer and from it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// To it.
    pub to: f64,
    /// From it.
    pub from: f64,
}

impl Link {
    /// As narrow as the narrowest of these in each direction; none of none.
    pub fn slowest(links: &[Self]) -> Option<Self> {
        let narrower = |one: Self, other: &Self| Self { to: one.to.min(other.to), from: one.from.min(other.from) };
        let (first, others) = links.split_first()?;
        Some(others.iter().fold(*first, narrower))
    }

    /// Measures the link to a peer; none where it answers no bursts, or not as it should. A peer can make its link look
    /// wider than it is by answering the empty bursts late.
    pub async fn measure(net: &dyn Net, peer: Address) -> Option<Self> {
        let mut round_trip = LONGEST;
        for number in 0..EMPTY {
            let took = burst(net, peer, (0, 0)).await.filter(|took| *took < LONGEST)?;
            // The first may open a stream.
            if number > 0 {
                round_trip = round_trip.min(took);
            }
        }
        let to = rate(net, peer, round_trip, |bytes| (bytes, 0)).await?;
        let from = rate(net, peer, round_trip, |bytes| (0, bytes)).await?;
        Some(Self { to, from })
    }
}

/// What a burst takes that gives and wants so many bytes, at most [`LONGEST`]; none if it is not answered as it should
/// be.
async fn burst(net: &dyn Net, peer: Address, (given, wanted): (u32, u32)) -> Option<Duration> {
    let mut request = BytesMut::with_capacity(HEADER + given as usize);
    request.put_u32_le(wanted);
    request.extend_from_slice(&FILLER.slice(..given as usize));
    let began = Instant::now();
    match timeout(LONGEST, net.request(peer, Protocol::Burst, request.freeze())).await {
        Ok(answer) => (answer.ok()?.len() == wanted as usize).then(|| began.elapsed().min(LONGEST)),
        Err(_) => Some(LONGEST),
    }
}

/// Bytes a second of the last burst, which is the largest; `of` tells how much of one goes to the peer, and comes from
/// it. A peer that answers no more bursts has given enough.
async fn rate(net: &dyn Net, peer: Address, round_trip: Duration, of: impl Fn(u32) -> (u32, u32)) -> Option<f64> {
    let mut rate = None;
    for bytes in BURSTS {
        let Some(took) = burst(net, peer, of(bytes)).await else { break };
        let passing = took.saturating_sub(round_trip).max(took / LEAST_SHARE).max(Duration::from_nanos(1));
        if took < LONGEST || rate.is_none() {
            rate = Some(f64::from(bytes) / passing.as_secs_f64());
        }
        if took >= ENOUGH.max(round_trip * ROUND_TRIPS) {
            break;
        }
    }
    rate
}

/// Answers bursts within limits, as long as they are handed to it.
pub async fn answer_all(mut requests: mpsc::Receiver<Incoming>) {
    let mut spent = Spent::new(Instant::now());
    while let Some(Incoming { peer, body, reply }) = requests.recv().await {
        let Some(wanted) = wanted(&body).filter(|wanted| *wanted <= MOST) else { continue };
        let bytes = (body.len() as u64).saturating_add(wanted.into());
        if spent.admits(peer, bytes, Instant::now()) {
            // Who asked may have given up.
            let _ = reply.send(FILLER.slice(..wanted as usize));
        }
    }
}

/// Bytes that a request wants.
fn wanted(request: &[u8]) -> Option<u32> {
    request.first_chunk::<HEADER>().map(|wanted| u32::from_le_bytes(*wanted))
}

/// What bursts took in a window.
struct Spent {
    since: Instant,
    all: u64,
    by_peer: HashMap<Address, u64>,
}

impl Spent {
    fn new(since: Instant) -> Self {
        Self { since, all: 0, by_peer: HashMap::new() }
    }

    /// Whether so many more bytes of a peer are within limits; they count then.
    fn admits(&mut self, peer: Address, bytes: u64, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= WINDOW {
            *self = Self::new(now);
        }
        let bytes = bytes.max(LEAST);
        let all = self.all.saturating_add(bytes);
        let of_peer = self.by_peer.get(&peer).copied().unwrap_or(0).saturating_add(bytes);
        let is_within = all <= OF_ALL && of_peer <= OF_ONE;
        if is_within {
            self.all = all;
            self.by_peer.insert(peer, of_peer);
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Address = Address::repeat_byte(1);

    #[test]
    fn a_peer_gets_its_share_of_a_window_and_all_together_theirs() {
        let began = Instant::now();
        let mut spent = Spent::new(began);
        let times = |spent: &mut Spent, peer, now| (0..100).filter(|_| spent.admits(peer, MOST.into(), now)).count();
        assert_eq!(times(&mut spent, ONE, began), 8);
        let others: usize = (2..20).map(|n| times(&mut spent, Address::repeat_byte(n), began)).sum();
        assert_eq!(others, 64 - 8);
        assert!(!spent.admits(Address::repeat_byte(99), 1, began));
        assert_eq!(times(&mut spent, ONE, began + WINDOW), 8);
    }

    #[test]
    fn requests_of_nothing_count_too() {
        let mut spent = Spent::new(Instant::now());
        let admitted = (0..10_000).filter(|_| spent.admits(ONE, 0, spent.since)).count();
        assert_eq!(admitted as u64, OF_ONE / LEAST);
    }

    #[test]
    fn a_whole_measurement_is_within_what_a_peer_may_take() {
        let bytes: u64 = BURSTS.iter().map(|bytes| u64::from(*bytes) + HEADER as u64).sum();
        assert!(2 * 2 * bytes <= OF_ONE, "twice in a window");
    }

    #[tokio::test]
    async fn what_is_no_burst_or_wants_too_much_gets_no_answer() {
        let (to, requests) = mpsc::channel(8);
        tokio::spawn(answer_all(requests));
        let ask = async |body: Vec<u8>| {
            let (reply, answer) = tokio::sync::oneshot::channel();
            to.send(Incoming { peer: ONE, body: body.into(), reply }).await.expect("it runs");
            answer.await.ok().map(|answer| answer.len())
        };
        assert_eq!(ask(vec![]).await, None);
        assert_eq!(ask(vec![1, 0, 0]).await, None);
        assert_eq!(ask((MOST + 1).to_le_bytes().to_vec()).await, None);
        assert_eq!(ask(MOST.to_le_bytes().to_vec()).await, Some(MOST as usize));
        assert_eq!(ask([0; 4 + 100].to_vec()).await, Some(0));
    }

    #[test]
    fn filler_does_not_repeat() {
        let pieces: std::collections::HashSet<&[u8]> = FILLER.chunks(8).collect();
        assert_eq!(pieces.len(), MOST as usize / 8);
    }
}
