//! Candidates as a planner sees them.

use tensorlink_node::link::Link as Bandwidth;
use tensorlink_placement::fleet::Fleet;
use tensorlink_placement::measured::{Observation, Trust};
use tensorlink_placement::node::{Profile, Rates};
use tensorlink_placement::proximity::{Link, Proximity};

use super::{Reach, Work};
use crate::hire::Candidate;

/// Bytes a second that are assumed of every link where none was measured.
pub const ASSUMED: f64 = 125e6;

/// A candidate, how it is reached, and how fast it was.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// Who.
    pub candidate: &'a Candidate,
    /// From this node.
    pub reach: Reach,
    /// What was seen of its speed, against what it says; nothing of whom nobody saw.
    pub observed: Vec<Observation>,
}

impl Seen<'_> {
    /// What is believed of the speed that it says, as a part of that; none where nobody saw it.
    pub fn believed(&self) -> Option<f64> {
        // What cannot be weighed says nothing.
        (!self.observed.is_empty()).then(|| trust().share(&self.observed).unwrap_or(1.0))
    }
}

/// Who was not seen is tried, and believed what it says.
fn trust() -> Trust {
    Trust::default().trying()
}

/// These candidates, for work of a kind. Whoever was seen to be slower than it says is taken for as fast as it was, and
/// nobody is believed to be more than a few times as fast as others of its tier.
/// A hop between two of them passes through this node.
pub fn fleet(work: &Work, candidates: &[Seen<'_>]) -> Fleet {
    let profiles: Vec<Profile> = (0..).zip(candidates).map(|(number, seen)| profile(work, number, seen)).collect();
    let unknown = unknown(candidates);
    let ways: Vec<(f64, Bandwidth)> =
        candidates.iter().map(|seen| (seen.reach.away, seen.reach.link.unwrap_or(unknown))).collect();
    let hop = |(here, (away, link)): (&(f64, Bandwidth), &(f64, Bandwidth))| Link {
        seconds: here.0 + away,
        rate: 1.0 / (1.0 / here.1.from + 1.0 / link.to),
    };
    let links = ways.iter().flat_map(|here| ways.iter().map(move |there| hop((here, there)))).collect();
    let observed: Vec<Vec<Observation>> = candidates.iter().map(|seen| seen.observed.clone()).collect();
    let capped = trust().capped(&profiles);
    let mut nodes = trust().believed(&profiles, &observed).unwrap_or_else(|_| capped.clone());
    // What was seen is no more than that others did not do much better: two who lie alike are not found by it.
    nodes.iter_mut().zip(&capped).for_each(|(node, capped)| *node = slower(node, capped));
    Fleet { nodes, proximity: Proximity::Matrix { nodes: ways.len(), links } }
}

/// The bandwidth of those of whom it is not known: as of the slowest other, so that few gain by keeping it secret.
fn unknown(candidates: &[Seen<'_>]) -> Bandwidth {
    let known: Vec<Bandwidth> = candidates.iter().filter_map(|seen| seen.reach.link).collect();
    Bandwidth::slowest(&known).unwrap_or(Bandwidth { to: ASSUMED, from: ASSUMED })
}

/// As slow as each of two profiles of a worker.
fn slower(one: &Profile, other: &Profile) -> Profile {
    let rates = Rates {
        int4: one.rates.int4.min(other.rates.int4),
        int8: one.rates.int8.min(other.rates.int8),
        int16: one.rates.int16.min(other.rates.int16),
    };
    Profile { rates, memory_rate: one.memory_rate.min(other.memory_rate), ..*one }
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
