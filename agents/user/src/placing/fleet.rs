//! Candidates as a planner sees them.

use tensorlink_placement::fleet::Fleet;
use tensorlink_placement::measured::Trust;
use tensorlink_placement::node::{Profile, Rates};
use tensorlink_placement::proximity::{Coordinate, Proximity};

use super::Work;
use crate::hire::Candidate;

/// Bytes a second that a worker sends and receives: nobody measures it yet, so that it is assumed of all alike.
pub const BANDWIDTH: f64 = 125e6;

/// A candidate, and how far it is.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Who.
    pub candidate: &'a Candidate,
    /// Seconds between it and this node, one way.
    pub away: f64,
}

/// These candidates, for work of a kind. Nobody is believed to be more than a few times as fast as others of its tier.
pub fn fleet(work: &Work, candidates: &[Seen<'_>]) -> Fleet {
    let profiles: Vec<Profile> = (0..).zip(candidates).map(|(number, seen)| profile(work, number, seen)).collect();
    let place =
        |seen: &Seen<'_>| Coordinate { position: [0.0, 0.0], access: seen.away, up: BANDWIDTH, down: BANDWIDTH };
    let proximity =
        Proximity::Coordinates { places: candidates.iter().map(place).collect(), measured: Default::default() };
    Fleet { nodes: Trust::default().capped(&profiles), proximity }
}

/// Who runs a worker is not known: each is taken for an operator of its own.
fn profile(work: &Work, operator: u64, Seen { candidate, .. }: &Seen<'_>) -> Profile {
    let advert = &candidate.advert;
    let rate = advert.speed.multiply_adds(work.setting) as f64;
    Profile {
        // A worker tells its speed by setting, and this is the work's: whatever width is asked for.
        rates: Rates { int4: rate, int8: rate, int16: rate },
        memory_rate: advert.speed.memory() as f64,
        free_bytes: advert.memory.saturating_sub(work.beside) as f64,
        disk_bytes: advert.disk as f64,
        teraflops: advert.speed.teraflops(),
        // Work is paid by the multiply-add, however long it takes: a price is no matter of the cut.
        price_per_hour: 0.0,
        stake: 0.0,
        operator,
        watts: 0.0,
    }
}
