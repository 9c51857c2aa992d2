//! How a node's address is found: by Kademlia, as here, and by Chord, while tables are stale.
//!
//! Each network is built whole; then a share of its nodes is gone, and nobody has noticed. Records lie with the 20
//! nodes that the rule of each names, the number that libp2p keeps. Who is gone does not answer, and is waited for.

mod chord;
mod kademlia;

use tensorlink_draws::{Draws, word};
use tensorlink_placement::generate::World;

use crate::table::quantile;

/// Nodes that a record lies with.
const HOLDERS: usize = 20;
/// Seconds after which somebody is taken to be gone.
const TIMEOUT: f64 = 2.0;
const LOOKUPS: u64 = 400;

/// Nodes in the order of their numbers on the ring.
struct Net {
    world: World,
    ids: Vec<u64>,
    gone: Vec<bool>,
}

/// What a lookup came to.
struct Looked {
    /// Seconds, if the record was found.
    found: Option<f64>,
    questions: u32,
}

impl Net {
    fn new(seed: u64, nodes: usize) -> Self {
        let mut ids: Vec<u64> = (0..nodes as u64).map(|node| word(seed, node)).collect();
        ids.sort_unstable();
        Self { world: World::generate(seed, nodes), ids, gone: vec![false; nodes] }
    }

    fn len(&self) -> usize {
        self.ids.len()
    }

    fn id(&self, node: usize) -> u64 {
        self.ids.get(node).copied().unwrap_or_default()
    }

    fn is_gone(&self, node: usize) -> bool {
        self.gone.get(node).copied().unwrap_or_default()
    }

    /// Seconds of a question and its answer.
    fn asking(&self, from: usize, to: usize) -> f64 {
        if self.is_gone(to) {
            return TIMEOUT;
        }
        self.world.link(from, to).seconds + self.world.link(to, from).seconds
    }

    /// The first node whose number is this or more, round the ring.
    fn successor(&self, id: u64) -> usize {
        let at = self.ids.partition_point(|other| *other < id);
        if at < self.len() { at } else { 0 }
    }

    /// A share of the nodes is gone.
    fn lose(&mut self, share: f64, draws: &mut Draws) {
        self.gone = self.ids.iter().map(|_| draws.happens(share)).collect();
    }

    fn somebody(&self, draws: &mut Draws) -> usize {
        loop {
            let node = draws.below(self.len());
            if !self.is_gone(node) {
                return node;
            }
        }
    }
}

fn cell(looked: &[Looked]) -> String {
    let times: Vec<f64> = looked.iter().filter_map(|looked| looked.found).collect();
    let questions: Vec<f64> = looked.iter().map(|looked| f64::from(looked.questions)).collect();
    let found = 100.0 * times.len() as f64 / looked.len() as f64;
    let [median, high] = [0.5, 0.95].map(|share| quantile(&times, share));
    format!(
        "{found:.1} % | {median:.2} ({high:.2}) | {:.0} ({:.0})",
        quantile(&questions, 0.5),
        quantile(&questions, 0.95)
    )
}

pub(crate) fn run() {
    println!("{LOOKUPS} lookups, a record with {HOLDERS} nodes, {TIMEOUT} s for who is gone");
    println!("found; seconds: median (95th percentile); questions: median (95th percentile)\n");
    println!("| nodes | gone | Chord: found | s | questions | Kademlia: found | s | questions |");
    println!("|---|---|---|---|---|---|---|---|");
    for nodes in [100, 1_000, 10_000] {
        let mut net = Net::new(1, nodes);
        let (chord, kademlia) = (chord::Tables::new(&net), kademlia::Tables::new(&net, &mut Draws::of(2, 0)));
        for gone in [0.0, 0.1, 0.3, 0.5] {
            net.lose(gone, &mut Draws::of(3, nodes as u64));
            let (mut rings, mut buckets) = (Vec::new(), Vec::new());
            for lookup in 0..LOOKUPS {
                let mut draws = Draws::of(4, lookup);
                let (asker, key) = (net.somebody(&mut draws), draws.bits());
                rings.push(chord.look_up(&net, asker, key));
                buckets.push(kademlia.look_up(&net, asker, key));
            }
            println!("| {nodes} | {:.0} % | {} | {} |", gone * 100.0, cell(&rings), cell(&buckets));
        }
    }
}
