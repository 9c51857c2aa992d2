//! Kademlia (Maymounkov and Mazières, 2002): up to 20 nodes of each distance by exclusive or; three questions at
//! a time.

use std::collections::{BTreeMap, HashSet};

use tensorlink_draws::Draws;

use super::{HOLDERS, Looked, Net};

/// Nodes of a bucket, and the nearest that are asked.
const BUCKET: usize = 20;
/// Questions on their way at a time.
const AT_ONCE: usize = 3;

/// Whom each node knows.
pub(super) struct Tables(Vec<Vec<usize>>);

impl Tables {
    /// Any nodes of each distance: those heard of first, which no rule names.
    pub(super) fn new(net: &Net, draws: &mut Draws) -> Self {
        let mut of = |node: usize| {
            let mut known = Vec::new();
            for bit in 0..u64::BITS {
                // Those that differ first in this bit stand side by side round the ring.
                let low = (net.id(node) ^ (1 << bit)) >> bit << bit;
                let from = net.ids.partition_point(|id| *id < low);
                let to = net.ids.partition_point(|id| *id <= low | ((1 << bit) - 1));
                let mut bucket: Vec<usize> = (from..to).collect();
                draws.shuffle(&mut bucket);
                bucket.truncate(BUCKET);
                known.extend(bucket);
            }
            known
        };
        Self((0..net.len()).map(&mut of).collect())
    }

    /// The nearest of those that are known are asked for nearer ones, until one has the record or none is left.
    pub(super) fn look_up(&self, net: &Net, asker: usize, key: u64) -> Looked {
        let holders = nearest(net, 0..net.len(), key, HOLDERS);
        let mut questions = 0;
        if holders.contains(&asker) {
            return Looked { found: Some(0.0), questions };
        }
        let mut known: BTreeMap<u64, usize> = self.known(net, asker, key).into_iter().collect();
        let (mut asked, mut on_their_way, mut now) = (HashSet::new(), Vec::<(f64, usize)>::new(), 0.0);
        loop {
            let near = known.values().copied().take(BUCKET);
            let next: Vec<usize> =
                near.filter(|node| !asked.contains(node)).take(AT_ONCE - on_their_way.len()).collect();
            for node in next {
                questions += 1;
                asked.insert(node);
                on_their_way.push((now + net.asking(asker, node), node));
            }
            on_their_way.sort_by(|one, other| other.0.total_cmp(&one.0));
            let Some((then, node)) = on_their_way.pop() else { return Looked { found: None, questions } };
            now = then;
            if net.is_gone(node) {
                known.remove(&(net.id(node) ^ key));
            } else if holders.contains(&node) {
                return Looked { found: Some(now), questions };
            } else {
                let told = self.known(net, node, key).into_iter();
                known.extend(told.filter(|(_, node)| !(asked.contains(node) && net.is_gone(*node))));
            }
        }
    }

    /// The nearest to a record that a node knows of, by their distance.
    fn known(&self, net: &Net, node: usize, key: u64) -> Vec<(u64, usize)> {
        let known = self.0.get(node).into_iter().flatten().copied();
        nearest(net, known, key, BUCKET).into_iter().map(|node| (net.id(node) ^ key, node)).collect()
    }
}

fn nearest(net: &Net, nodes: impl Iterator<Item = usize>, key: u64, count: usize) -> Vec<usize> {
    let mut nodes: Vec<usize> = nodes.collect();
    nodes.sort_unstable_by_key(|node| net.id(*node) ^ key);
    nodes.truncate(count);
    nodes
}
