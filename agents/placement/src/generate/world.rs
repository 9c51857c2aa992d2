//! Fleets of strangers: heterogeneous devices in regions, each with its own line.

use std::collections::BTreeMap;

use tensorlink_draws::{Draws, word};

use crate::fleet::Fleet;
use crate::node::{Profile, Rates};
use crate::proximity::{Coordinate, Link, Proximity};

/// Up to this many nodes, a generated fleet knows every link.
pub const MATRIX_NODES: usize = 1_000;
/// So many nearest neighbours each node of a larger fleet has measured.
pub const MEASURED: usize = 16;
/// The share of a maker's peak that matrices of a model's sizes reach.
const EFFICIENCY: f64 = 0.4;
/// The share of a memory's peak rate that reading weights reaches.
const MEMORY_EFFICIENCY: f64 = 0.7;
/// The share of a device's memory that the rest of its machine leaves.
const FREE: f64 = 0.85;

/// A fleet as it is, whatever its nodes say and know.
#[derive(Clone, PartialEq, Debug)]
pub struct World {
    seed: u64,
    /// What each device does when measured.
    pub nodes: Vec<Profile>,
    homes: Vec<Home>,
}

/// Where a node is.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Home {
    place: Coordinate,
    region: usize,
    /// Changes with every node that came, so that its links are its own.
    born: u64,
}

impl World {
    /// `count` nodes, in two regions and one more for each fifty nodes, up to eight.
    pub fn generate(seed: u64, count: usize) -> Self {
        let mut draws = Draws::of(seed, 0);
        let regions = (2 + count / 50).min(8);
        // Seconds, one way: a region is tens of milliseconds from the next.
        let centres: Vec<[f64; 2]> = (0..regions).map(|_| [draws.between(0.0, 0.1), draws.between(0.0, 0.1)]).collect();
        let mut world = Self { seed, nodes: vec![], homes: vec![] };
        for at in 0..count {
            let region = draws.below(regions);
            world.nodes.push(device(&mut draws, at));
            let centre = centres.get(region).copied().unwrap_or_default();
            world.homes.push(Home { place: place(&mut draws, centre), region, born: at as u64 });
        }
        world
    }

    /// The link between two nodes as it is. Both directions differ. One that never delivers if either is unknown.
    pub fn link(&self, from: usize, to: usize) -> Link {
        if from == to {
            return Link::NONE;
        }
        let (Some(own), Some(other)) = (self.homes.get(from), self.homes.get(to)) else { return Link::NEVER };
        let (here, there) = (own.born, other.born);
        let mut pair = Draws::of(word(self.seed, here.min(there) + 1), here.max(there));
        let shared = pair.log_normal(1.0, 0.15);
        let backbone = pair.log_normal(25e6, 0.5);
        let directed = Draws::of(word(self.seed, here + 1), (1 << 32) | there).log_normal(1.0, 0.05);
        let direct = own.place.link(&other.place);
        let rate = if own.region == other.region { direct.rate } else { direct.rate.min(backbone) };
        Link { seconds: (0.001 + direct.seconds) * shared * directed, rate }
    }

    /// What a planner knows if all nodes are honest: profiles, and every link of a small fleet. In a large one it knows
    /// coordinates, and the links between each node and its [`MEASURED`] nearest.
    pub fn fleet(&self) -> Fleet {
        Fleet { nodes: self.nodes.clone(), proximity: self.proximity() }
    }

    /// The part of [`World::fleet`] that nodes measure of each other.
    pub fn proximity(&self) -> Proximity {
        let nodes = self.nodes.len();
        if nodes <= MATRIX_NODES {
            let links = (0..nodes * nodes).map(|at| self.link(at / nodes, at % nodes)).collect();
            return Proximity::Matrix { nodes, links };
        }
        let mut measured = BTreeMap::new();
        for from in 0..nodes {
            // A node asks some of its own region at random, and keeps the nearest.
            let mut draws = Draws::of(self.seed, 1 << 40 | from as u64);
            let mut asked: Vec<usize> =
                (0..8 * MEASURED).map(|_| draws.below(nodes)).filter(|to| *to != from).collect();
            asked.sort_unstable_by(|a, b| self.link(from, *a).seconds.total_cmp(&self.link(from, *b).seconds));
            asked.dedup();
            for to in asked.into_iter().take(MEASURED) {
                measured.insert((from as u32, to as u32), self.link(from, to));
                measured.insert((to as u32, from as u32), self.link(to, from));
            }
        }
        Proximity::Coordinates { places: self.homes.iter().map(|home| home.place).collect(), measured }
    }

    /// What nodes say of themselves: a share of them multiplies its speeds by a factor. Which ones is drawn.
    pub fn claimed(&self, liars: f64, factor: f64) -> Vec<Profile> {
        let mut draws = Draws::of(self.seed, 2);
        let claim = |node: &Profile| if draws.unit() < liars { faster(node, factor) } else { *node };
        self.nodes.iter().map(claim).collect()
    }

    /// The fleet after a round of churn: each node leaves with a chance, and a stranger takes its position.
    pub fn churned(&self, round: u64, chance: f64) -> Self {
        let mut draws = Draws::of(self.seed, word(3, round + 1));
        let mut next = self.clone();
        for at in 0..next.nodes.len() {
            if draws.unit() >= chance {
                continue;
            }
            let Some(neighbour) = next.homes.get(draws.below(next.nodes.len())).copied() else { continue };
            let (Some(node), Some(home)) = (next.nodes.get_mut(at), next.homes.get_mut(at)) else { continue };
            *node = device(&mut draws, at);
            let place = Coordinate { position: neighbour.place.position, ..place(&mut draws, [0.0; 2]) };
            *home = Home { place, region: neighbour.region, born: draws.bits() >> 32 };
        }
        next
    }

    /// The same nodes with more memory, so that a model fits that did not.
    pub(super) fn grow(&mut self, factor: f64) {
        for node in &mut self.nodes {
            node.free_bytes *= factor;
        }
    }
}

/// The same device with its speeds multiplied.
pub fn faster(node: &Profile, factor: f64) -> Profile {
    let Rates { int4, int8, int16 } = node.rates;
    let rates = Rates { int4: int4 * factor, int8: int8 * factor, int16: int16 * factor };
    Profile { rates, memory_rate: node.memory_rate * factor, teraflops: node.teraflops * factor, ..*node }
}

/// Bounds of each quantity for tiers A, B and C.
struct Ranges {
    share: f64,
    teraflops: (f64, f64),
    gigabytes: (f64, f64),
    memory_gigabytes_per_second: (f64, f64),
    price_per_hour: (f64, f64),
    teraflops_per_watt: (f64, f64),
}

const TIERS: [Ranges; 3] = [
    Ranges {
        share: 0.25,
        teraflops: (20.0, 90.0),
        gigabytes: (12.0, 80.0),
        memory_gigabytes_per_second: (400.0, 1800.0),
        price_per_hour: (0.25, 1.6),
        teraflops_per_watt: (0.1, 0.3),
    },
    Ranges {
        share: 0.45,
        teraflops: (5.0, 20.0),
        gigabytes: (8.0, 64.0),
        memory_gigabytes_per_second: (100.0, 500.0),
        price_per_hour: (0.06, 0.4),
        teraflops_per_watt: (0.05, 0.25),
    },
    Ranges {
        share: 0.3,
        teraflops: (0.5, 5.0),
        gigabytes: (4.0, 32.0),
        memory_gigabytes_per_second: (25.0, 120.0),
        price_per_hour: (0.01, 0.1),
        teraflops_per_watt: (0.03, 0.15),
    },
];

fn device(draws: &mut Draws, at: usize) -> Profile {
    let mut chance = draws.unit();
    let [.., last] = &TIERS;
    let drawn = TIERS.iter().find(|tier| {
        chance -= tier.share;
        chance < 0.0
    });
    let ranges = drawn.unwrap_or(last);
    let mut draw = |(low, high)| draws.log_between(low, high);
    let teraflops = draw(ranges.teraflops);
    // Two operations are one multiply-add.
    let int16 = teraflops * 1e12 / 2.0 * EFFICIENCY;
    let int8 = int16 * draw((1.0, 2.0));
    Profile {
        // 4 bits are unpacked to 8: reading is what they save.
        rates: Rates { int4: int8, int8, int16 },
        memory_rate: draw(ranges.memory_gigabytes_per_second) * 1e9 * MEMORY_EFFICIENCY,
        free_bytes: draw(ranges.gigabytes) * 1e9 * FREE,
        disk_bytes: draw((100e9, 4e12)),
        teraflops,
        price_per_hour: draw(ranges.price_per_hour),
        stake: draw((1e3, 1e5)),
        // One operator in five runs several devices.
        operator: if draws.unit() < 0.8 { at as u64 } else { draws.below(at / 4 + 1) as u64 },
        watts: teraflops / draws.log_between(ranges.teraflops_per_watt.0, ranges.teraflops_per_watt.1),
    }
}

fn place(draws: &mut Draws, centre: [f64; 2]) -> Coordinate {
    let up = draws.log_between(20e6, 2e9) / 8.0;
    Coordinate {
        position: centre.map(|axis| axis + draws.between(-0.008, 0.008)),
        access: draws.log_normal(0.003, 0.8),
        up,
        down: up.max(draws.log_between(100e6, 2e9) / 8.0),
    }
}
