//! Cuts a network into pipeline stages by the memory of the workers that stand in a ring.
//!
//! Each worker takes consecutive layers, at least one; among all such cuts, the one that fills the fullest worker
//! least, relative to its memory.

use std::ops::Range;

use thiserror::Error;

/// Why a network could not be cut.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PartitionError {
    /// No workers.
    #[error("no worker offers memory; start a worker or raise the price")]
    NoWorkers,
    /// More workers than layers.
    #[error(
        "{workers} stages for {layers} layers: a stage needs a layer; use at most {layers} stages{}",
        if *layers == 1 { " (a decoder whose output weights are its embedding is one layer: let stages share its sequences with `--shares`, or to cut it write `\"tied\": false` in its model file, `\"untie\": true` if it is imported)" } else { "" }
    )]
    TooManyStages {
        /// Workers given.
        workers: usize,
        /// Layers to give them.
        layers: usize,
    },
    /// Shares of different lengths.
    #[error("{stages} stages are not {shares} shares of as many each: use a multiple of {shares} stages")]
    Shares {
        /// Stages in all.
        stages: usize,
        /// Shares.
        shares: usize,
    },
    /// No cut fits.
    #[error(
        "the network needs {needed} bytes, the {workers} workers offer {offered}, and no cut between layers fits every worker; add workers or memory, or use smaller batches"
    )]
    DoesNotFit {
        /// Bytes of all layers.
        needed: u64,
        /// Bytes of all workers.
        offered: u64,
        /// Workers given.
        workers: usize,
    },
}

/// Cuts layers of `layers[i]` bytes among workers of `workers[j]` bytes, in both orders as given: the result has one
/// range for each worker.
///
/// # Errors
/// A [`PartitionError`] that says what is missing.
pub fn partition(layers: &[u64], workers: &[u64]) -> Result<Vec<Range<usize>>, PartitionError> {
    if workers.is_empty() {
        return Err(PartitionError::NoWorkers);
    }
    if workers.len() > layers.len() {
        return Err(PartitionError::TooManyStages { workers: workers.len(), layers: layers.len() });
    }
    let total = |bytes: &[u64]| bytes.iter().fold(0u64, |sum, b| sum.saturating_add(*b));
    // cuts[i]: the best way to give the first i layers to the workers so far.
    let mut cuts: Vec<Option<Cut>> = vec![None; layers.len().saturating_add(1)];
    if let Some(start) = cuts.first_mut() {
        *start = Some(Cut { fullest: Load { bytes: 0, memory: 1 }, ends: Vec::new() });
    }
    for &memory in workers {
        let extend = |end: usize| {
            let candidates = cuts.iter().take(end).enumerate().filter_map(|(start, cut)| {
                let cut = cut.as_ref()?;
                let load = Load { bytes: total(layers.get(start..end)?), memory };
                let fullest = if load.exceeds(&cut.fullest) { load } else { cut.fullest };
                let ends = cut.ends.iter().copied().chain([end]).collect();
                (load.bytes <= memory).then_some(Cut { fullest, ends })
            });
            candidates.reduce(|best, next| if best.fullest.exceeds(&next.fullest) { next } else { best })
        };
        cuts = (0..=layers.len()).map(extend).collect();
    }
    let Some(best) = cuts.pop().flatten() else {
        let (needed, offered) = (total(layers), total(workers));
        return Err(PartitionError::DoesNotFit { needed, offered, workers: workers.len() });
    };
    let starts = [0].into_iter().chain(best.ends.clone());
    Ok(starts.zip(best.ends).map(|(start, end)| start..end).collect())
}

/// The first layers, given to the workers so far.
#[derive(Clone)]
struct Cut {
    fullest: Load,
    ends: Vec<usize>,
}

/// How full a worker is.
#[derive(Clone, Copy)]
struct Load {
    bytes: u64,
    memory: u64,
}

impl Load {
    /// Compares fractions without rounding.
    fn exceeds(&self, other: &Self) -> bool {
        u128::from(self.bytes) * u128::from(other.memory) > u128::from(other.bytes) * u128::from(self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_memory() {
        assert_eq!(partition(&[10; 8], &[300, 100]), Ok(vec![0..6, 6..8]));
        assert_eq!(partition(&[10; 8], &[100, 300]), Ok(vec![0..2, 2..8]));
        assert_eq!(partition(&[80, 10, 10], &[100, 100, 100]), Ok(vec![0..1, 1..2, 2..3]));
    }

    #[test]
    fn says_what_is_missing() {
        assert_eq!(partition(&[1], &[]), Err(PartitionError::NoWorkers));
        assert_eq!(partition(&[1], &[9, 9]), Err(PartitionError::TooManyStages { workers: 2, layers: 1 }));
        let needed = PartitionError::DoesNotFit { needed: 30, offered: 34, workers: 2 };
        assert_eq!(partition(&[10, 10, 10], &[17, 17]), Err(needed));
        // A worker without memory cannot take the layer it must take.
        assert!(matches!(partition(&[10, 10], &[100, 0]), Err(PartitionError::DoesNotFit { .. })));
    }
}
