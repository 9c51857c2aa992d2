//! Chooses among workers those that the work fits, the cheapest that do.
//!
//! What fits is for the caller to say: of a training by how it can be cut for so much memory, of fixed programs by what
//! each stage needs ([`holds`]).

use std::cmp::Reverse;
use std::fmt;

use thiserror::Error;

use crate::hire::Candidate;

/// Stages whose orders are all tried: 120 of five.
const ORDERED: usize = 5;
/// Memories named in an error.
const NAMED: usize = 8;

/// Bytes, as people read them.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, shift) = match self.0 {
            0..1_024 => return write!(f, "{} B", self.0),
            1_024..1_048_576 => ("KiB", 10),
            1_048_576..1_073_741_824 => ("MiB", 20),
            _ => ("GiB", 30),
        };
        let tenths = (u128::from(self.0) * 10) >> shift;
        write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)
    }
}

/// No set of the workers that answer fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfit {
    /// Memory that each stage needs, bytes, first to last; of a training, what the largest stage of the most even cut
    /// needs.
    pub needed: Vec<u64>,
    /// Independent copies of the pipeline.
    pub replicas: usize,
    /// Memory of every worker that answers, bytes, most first.
    pub offered: Vec<u64>,
}

impl Unfit {
    /// For which the workers that answer are too small.
    pub fn new(needed: Vec<u64>, replicas: usize, candidates: &[Candidate]) -> Self {
        let mut offered: Vec<u64> = candidates.iter().map(|candidate| candidate.advert.memory).collect();
        offered.sort_unstable_by_key(|memory| Reverse(*memory));
        Self { needed, replicas, offered }
    }

    /// The tightest place: a stage, what it needs, and the most that is left for it once larger stages have theirs.
    fn tightest(&self) -> Option<(usize, u64, Option<u64>)> {
        let mut lanes: Vec<(usize, u64)> = self.needed.iter().copied().enumerate().collect();
        lanes.sort_by_key(|(_, needed)| Reverse(*needed));
        let lanes = lanes.iter().flat_map(|lane| std::iter::repeat_n(*lane, self.replicas));
        let pairs = lanes.enumerate().map(|(place, (stage, needed))| (stage, needed, self.offered.get(place).copied()));
        let mut short = pairs.clone().filter(|(_, needed, offered)| offered.is_none_or(|offered| offered < *needed));
        // Where each would fit alone, the layers cannot be dealt out so: the largest stage is the nearest cause.
        short.next().or_else(|| pairs.clone().next())
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |bytes: &[u64]| {
            let named: Vec<String> = bytes.iter().take(NAMED).map(|bytes| Bytes(*bytes).to_string()).collect();
            let more = if bytes.len() > NAMED { format!(" and {} more", bytes.len() - NAMED) } else { String::new() };
            format!("{}{more}", named.join(", "))
        };
        write!(
            f,
            "no set of the {} workers that answer fits: the {} stages need {} of memory, in {} replicas, and the workers \
             offer {}",
            self.offered.len(),
            self.needed.len(),
            list(&self.needed),
            self.replicas,
            list(&self.offered)
        )?;
        if let Some((stage, needed, offered)) = self.tightest() {
            let left = offered.map_or_else(|| "nobody is".to_owned(), |offered| format!("{} is", Bytes(offered)));
            write!(f, "; tightest is stage {stage}: it needs {}, and {left} left for it", Bytes(needed))?;
        }
        f.write_str(": start workers with more memory, use more --stages, or make the model or its batches smaller")
    }
}

impl std::error::Error for Unfit {}

/// Why nobody was chosen.
#[derive(Debug, Error)]
pub enum ChooseError<E> {
    /// No set of workers fits.
    #[error("no set of the workers that answer fits")]
    Unfit,
    /// What is asked cannot be done by any workers.
    #[error(transparent)]
    Other(E),
}

/// Whether each stage fits its workers: least memory of its replicas, and what it needs, bytes, stage by stage.
pub fn holds(memories: &[u64], needed: &[u64]) -> bool {
    memories.len() == needed.len() && memories.iter().zip(needed).all(|(memory, needed)| memory >= needed)
}

/// Chooses workers for the lanes of so many stages and replicas, in the order of lanes (`replica · stages + stage`),
/// by candidates that are ranked best first: those that fit of the shortest beginning of the ranking in which some
/// do. `fits` takes the least memory of each stage's workers, and gives what it made of that, or none where they do
/// not fit.
///
/// Where those that come first do not fit in the order of their rank, other orders of stages are tried: all of up to
/// five stages, of more only those by memory.
///
/// # Errors
/// [`ChooseError::Unfit`] if no set fits.
pub fn choose<T, E>(
    ranked: &[Candidate],
    (stages, replicas): (usize, usize),
    mut fits: impl FnMut(&[u64]) -> Result<Option<T>, E>,
) -> Result<(Vec<Candidate>, T), ChooseError<E>> {
    let lanes = stages.saturating_mul(replicas);
    if lanes == 0 || ranked.len() < lanes {
        return Err(ChooseError::Unfit);
    }
    let mut attempt = |count: usize| {
        let set = largest(ranked.get(..count).unwrap_or(ranked), lanes);
        arrange(&set, (stages, replicas), &mut fits).map_err(ChooseError::Other)
    };
    // The more candidates, the more memory the largest of them have: what fits goes on to fit.
    let (mut unfit, mut fit) = (lanes.saturating_sub(1), ranked.len());
    if let Some(chosen) = attempt(lanes)? {
        return Ok(chosen);
    }
    let Some(mut chosen) = attempt(fit)? else { return Err(ChooseError::Unfit) };
    while fit.saturating_sub(unfit) > 1 {
        let middle = unfit.midpoint(fit);
        match attempt(middle)? {
            Some(found) => (fit, chosen) = (middle, found),
            None => unfit = middle,
        }
    }
    Ok(chosen)
}

/// The `count` candidates with the most memory, of equals the better ranked, in the order of their rank.
fn largest(ranked: &[Candidate], count: usize) -> Vec<Candidate> {
    let mut places: Vec<(usize, &Candidate)> = ranked.iter().enumerate().collect();
    places.sort_by_key(|(place, candidate)| (Reverse(candidate.advert.memory), *place));
    places.truncate(count);
    places.sort_by_key(|(place, _)| *place);
    places.into_iter().map(|(_, candidate)| candidate.clone()).collect()
}

/// Puts just enough candidates on lanes, if they fit in some order.
fn arrange<T, E>(
    set: &[Candidate],
    (stages, replicas): (usize, usize),
    fits: &mut impl FnMut(&[u64]) -> Result<Option<T>, E>,
) -> Result<Option<(Vec<Candidate>, T)>, E> {
    let least = |lanes: &[Candidate]| -> Vec<u64> {
        let of_stage = |stage| lanes.iter().skip(stage).step_by(stages).map(|candidate| candidate.advert.memory).min();
        (0..stages).map(|stage| of_stage(stage).unwrap_or_default()).collect()
    };
    if let Some(made) = fits(&least(set))? {
        return Ok(Some((set.to_vec(), made)));
    }
    // Those of like memory stand in for each other.
    let mut sorted = set.to_vec();
    sorted.sort_by_key(|candidate| Reverse(candidate.advert.memory));
    for order in orders(stages) {
        let lane = |lane: usize| {
            let group = order.get(lane % stages)?;
            sorted.get(group.saturating_mul(replicas).saturating_add(lane / stages)).cloned()
        };
        let Some(lanes) = (0..set.len()).map(lane).collect::<Option<Vec<_>>>() else { continue };
        if let Some(made) = fits(&least(&lanes))? {
            return Ok(Some((lanes, made)));
        }
    }
    Ok(None)
}

/// Memory with which so many workers who offer equally much could hold a work, bytes.
pub fn least_even(stages: usize, fits: impl Fn(&[u64]) -> bool) -> u64 {
    // What fits goes on to fit with more: the least that does lies in (unfit, fit].
    let (mut unfit, mut fit) = (0u64, u64::MAX);
    while fit.saturating_sub(unfit) > 1 {
        let middle = u64::midpoint(unfit, fit);
        if fits(&vec![middle; stages]) { fit = middle } else { unfit = middle }
    }
    fit
}

/// Orders of so many stages.
fn orders(stages: usize) -> Vec<Vec<usize>> {
    if stages > ORDERED {
        return vec![(0..stages).collect(), (0..stages).rev().collect()];
    }
    let mut orders = vec![Vec::new()];
    for _ in 0..stages {
        let longer = |order: &Vec<usize>| {
            let left: Vec<usize> = (0..stages).filter(|stage| !order.contains(stage)).collect();
            let order = order.clone();
            left.into_iter().map(move |stage| order.iter().copied().chain([stage]).collect::<Vec<_>>())
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    orders
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tensorlink_model::partition::{PartitionError, partition};
    use tensorlink_node::Speed;
    use tensorlink_node::price::Prices;
    use tensorlink_node::wire::gossip::WorkerAdvert;
    use tensorlink_types::Address;

    use super::*;

    /// Ranked by these memories.
    fn ranked(memories: &[u64]) -> Vec<Candidate> {
        let candidate = |(n, memory): (usize, &u64)| Candidate {
            address: Address::with_last_byte(n as u8),
            advert: WorkerAdvert {
                memory: *memory,
                disk: 1,
                speed: Speed::LEAST,
                free_lanes: 1,
                prices: Prices { sno: n as u128, eth: None },
                engine: String::new(),
            },
            price_per_gmac: n as u128,
        };
        memories.iter().enumerate().map(candidate).collect()
    }

    /// Ranks of those that are chosen for programs of these needs, lane by lane.
    fn held(memories: &[u64], needed: &[u64], replicas: usize) -> Option<Vec<u8>> {
        let fits = |memories: &[u64]| Ok::<_, Infallible>(holds(memories, needed).then_some(()));
        let chosen = choose(&ranked(memories), (needed.len(), replicas), fits).ok()?.0;
        Some(chosen.iter().map(|candidate| candidate.address.as_slice()[19]).collect())
    }

    fn cut(layers: &[u64]) -> impl FnMut(&[u64]) -> Result<Option<Vec<usize>>, PartitionError> + '_ {
        |memories| match partition(layers, memories) {
            Ok(ranges) => Ok(Some(ranges.iter().map(ExactSizeIterator::len).collect())),
            Err(PartitionError::DoesNotFit { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[test]
    fn the_first_are_chosen_in_their_order_where_they_fit() {
        assert_eq!(held(&[10, 20, 30], &[5, 5], 1).unwrap(), [0, 1]);
    }

    #[test]
    fn who_is_too_small_is_passed_over_however_cheap() {
        assert_eq!(held(&[1, 20, 30, 40], &[5, 5], 1).unwrap(), [1, 2]);
        assert_eq!(held(&[1, 2, 3, 9], &[8], 1).unwrap(), [3]);
        assert_eq!(held(&[1, 2, 3, 9], &[10], 1), None);
        assert_eq!(held(&[9], &[1, 1], 1), None, "too few");
    }

    #[test]
    fn stages_are_dealt_out_by_what_they_need() {
        assert_eq!(held(&[5, 50], &[40, 4], 1).unwrap(), [1, 0]);
        assert_eq!(held(&[5, 50, 6, 60], &[40, 4], 2).unwrap(), [3, 2, 1, 0], "two replicas of each");
        assert_eq!(held(&[5, 50, 6, 30], &[40, 4], 2), None, "one of them lacks the memory");
        let many: Vec<u64> = (1..=7).collect();
        assert!(held(&[7, 6, 5, 4, 3, 2, 1], &many, 1).is_some(), "more stages than all orders are tried of");
    }

    #[test]
    fn a_training_is_cut_for_the_first_workers_that_it_fits() {
        let (chosen, layers) = choose(&ranked(&[1, 100, 300]), (2, 1), cut(&[10; 8])).unwrap();
        assert_eq!((chosen[0].address, chosen[1].address), (Address::with_last_byte(1), Address::with_last_byte(2)));
        assert_eq!(layers, [2, 6]);
        // In the other order it fits.
        let (chosen, layers) = choose(&ranked(&[10, 100]), (2, 1), cut(&[80, 10])).unwrap();
        assert_eq!((chosen[0].address, layers), (Address::with_last_byte(1), vec![1, 1]));
        assert!(matches!(choose(&ranked(&[10, 20]), (2, 1), cut(&[80, 10])), Err(ChooseError::Unfit)));
        let too_many = choose(&ranked(&[10, 20]), (2, 1), cut(&[80]));
        assert!(matches!(too_many, Err(ChooseError::Other(PartitionError::TooManyStages { .. }))));
    }

    #[test]
    fn the_least_memory_of_equal_workers_is_found() {
        assert_eq!(least_even(2, |memories| partition(&[10, 20, 30], memories).is_ok()), 30);
        assert_eq!(least_even(1, |memories| memories == [u64::MAX]), u64::MAX);
    }

    #[test]
    fn the_tightest_stage_is_named() {
        let unfit = Unfit::new(vec![3 << 20, 8 << 20], 1, &ranked(&[1 << 10, 5 << 20, 4 << 20]));
        let told = unfit.to_string();
        for part in ["3 workers", "3.0 MiB, 8.0 MiB", "5.0 MiB, 4.0 MiB, 1.0 KiB"] {
            assert!(told.contains(part), "`{part}` is not in {told}");
        }
        assert!(told.contains("stage 1: it needs 8.0 MiB, and 5.0 MiB is left for it"), "{told}");
        let lanes = Unfit::new(vec![8 << 20], 2, &ranked(&[9 << 20, 1 << 10])).to_string();
        assert!(lanes.contains("stage 0: it needs 8.0 MiB, and 1.0 KiB is left for it"), "{lanes}");
    }
}
