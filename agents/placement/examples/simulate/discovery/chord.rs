//! Chord (Stoica et al., 2001): fingers at doubling distances round the ring, and successors; one question at a time.

use std::collections::HashSet;

use super::{HOLDERS, Looked, Net};

/// Whom each node knows: fingers, and the next nodes round the ring.
pub(super) struct Tables(Vec<Vec<usize>>);

impl Tables {
    pub(super) fn new(net: &Net) -> Self {
        let of = |node: usize| {
            let fingers = (0..u64::BITS).map(|bit| net.successor(net.id(node).wrapping_add(1 << bit)));
            let successors = (1..=HOLDERS).map(|next| (node + next) % net.len());
            let known: HashSet<usize> = fingers.chain(successors).filter(|other| *other != node).collect();
            known.into_iter().collect()
        };
        Self((0..net.len()).map(of).collect())
    }

    /// From who knows of somebody nearer to the record to that one, until one of its holders is asked. Who is gone is
    /// waited for, and the next best is asked.
    pub(super) fn look_up(&self, net: &Net, asker: usize, key: u64) -> Looked {
        let first = net.successor(key);
        let holds = |node: usize| (node + net.len() - first) % net.len() < HOLDERS;
        // How far a node is before the record, or, for its holders, nothing.
        let before = |node: usize| if holds(node) { 0 } else { key.wrapping_sub(net.id(node)) };
        let (mut at, mut seconds, mut questions, mut silent) = (asker, 0.0, 0, HashSet::new());
        if holds(asker) {
            return Looked { found: Some(0.0), questions };
        }
        loop {
            let known = self.0.get(at).into_iter().flatten().copied();
            let nearer = known.filter(|other| !silent.contains(other) && before(*other) < before(at));
            let Some(next) = nearer.min_by_key(|other| (before(*other), *other)) else {
                return Looked { found: None, questions };
            };
            questions += 1;
            seconds += net.asking(asker, next);
            if net.is_gone(next) {
                silent.insert(next);
            } else if holds(next) {
                return Looked { found: Some(seconds), questions };
            } else {
                at = next;
            }
        }
    }
}
