//! Boundary logs (C-8): which tensors crossed a stage's boundaries in an interval.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, keccak256};
use alloy_sol_types::SolValue;
use serde::{Deserialize, Serialize};
use tensorlink_types::abi::{BoundaryLogs, EdgeLog};
use tensorlink_types::{Lane, Program, TensorRoot};
use thiserror::Error;

use crate::merkle::{Entries, List};

/// Most entries of one log; bounds what a neighbour can make us keep.
pub const MAX_ENTRIES: u64 = 1 << 24;

/// One neighbour and direction: what crosses it in an interval has one log, which the sender signs as an `EdgeLog`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Boundary {
    /// Received from the previous stage.
    FromPrevious,
    /// Sent to the previous stage.
    ToPrevious,
    /// Received from the next stage.
    FromNext,
    /// Sent to the next stage.
    ToNext,
}

impl Boundary {
    /// In the order of `BoundaryLogs`.
    pub const ALL: [Self; 4] = [Self::FromPrevious, Self::ToPrevious, Self::FromNext, Self::ToNext];

    /// Place among the fields of `BoundaryLogs`.
    pub const fn number(self) -> u8 {
        match self {
            Self::FromPrevious => 0,
            Self::ToPrevious => 1,
            Self::FromNext => 2,
            Self::ToNext => 3,
        }
    }

    /// Bit of `ProgramHeader.edges`.
    pub const fn bit(self) -> u8 {
        1u8.wrapping_shl(self.number() as u32)
    }

    /// Whether a program has it.
    pub const fn is_in(self, program: &Program) -> bool {
        match self {
            Self::FromPrevious => !program.from_previous.is_empty(),
            Self::ToPrevious => !program.to_previous.is_empty(),
            Self::FromNext => !program.from_next.is_empty(),
            Self::ToNext => !program.to_next.is_empty(),
        }
    }

    /// Its root among those of a claim.
    pub const fn root(self, logs: &BoundaryLogs) -> B256 {
        match self {
            Self::FromPrevious => logs.fromPrevious,
            Self::ToPrevious => logs.toPrevious,
            Self::FromNext => logs.fromNext,
            Self::ToNext => logs.toNext,
        }
    }

    /// The same tensors as the neighbour at the other end logs them.
    pub const fn opposite(self) -> Self {
        match self {
            Self::FromPrevious => Self::ToNext,
            Self::ToPrevious => Self::FromNext,
            Self::FromNext => Self::ToPrevious,
            Self::ToNext => Self::FromPrevious,
        }
    }

    /// The stage at the other end; none before the first.
    pub const fn neighbour(self, stage: u16) -> Option<u16> {
        match self {
            Self::FromPrevious | Self::ToPrevious => stage.checked_sub(1),
            Self::FromNext | Self::ToNext => stage.checked_add(1),
        }
    }
}

/// What the sender at a boundary of a lane signs about an interval. None before the first stage.
pub fn edge_log(lane: Lane, interval: u32, boundary: Boundary, logs: &BoundaryLogs) -> Option<EdgeLog> {
    let neighbour = boundary.neighbour(lane.stage)?;
    let (from, to) = match boundary {
        Boundary::FromPrevious | Boundary::FromNext => (neighbour, lane.stage),
        Boundary::ToPrevious | Boundary::ToNext => (lane.stage, neighbour),
    };
    let root = boundary.root(logs);
    Some(EdgeLog { job: lane.job.0, replica: lane.replica, fromStage: from, toStage: to, interval, root })
}

/// The neighbours' signatures of what a lane received in an interval; empty where nothing was.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SenderSignatures {
    /// Of the previous stage's worker.
    pub previous: Bytes,
    /// Of the next stage's worker.
    pub next: Bytes,
}

impl SenderSignatures {
    /// Of the sender at a boundary; of boundaries over which the lane itself sends there is none.
    pub const fn at(&self, boundary: Boundary) -> Option<&Bytes> {
        match boundary {
            Boundary::FromPrevious => Some(&self.previous),
            Boundary::FromNext => Some(&self.next),
            Boundary::ToPrevious | Boundary::ToNext => None,
        }
    }
}

/// Extent of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogShape {
    /// Steps of an interval.
    pub steps: u32,
    /// Micro-batches of a step.
    pub micro_batches: u32,
}

/// Why a log cannot take an entry or cannot be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum LogError {
    /// The job's terms ask for more entries than anyone keeps; do not take the job.
    #[error("a log of {0} entries: at most {MAX_ENTRIES} are kept")]
    TooLong(u64),
    /// The program has no such neighbour; refuse the message.
    #[error("the program has no {0:?} boundary")]
    NoBoundary(Boundary),
    /// A step or micro-batch outside the interval; refuse the message.
    #[error("local step {step}, micro-batch {micro_batch} is outside an interval of {} × {}", shape.steps, shape.micro_batches)]
    OutOfRange {
        /// Step counted from the interval's first.
        step: u32,
        /// Micro-batch.
        micro_batch: u32,
        /// Extent of the log.
        shape: LogShape,
    },
    /// Another tensor is logged at this place; the sender contradicts itself.
    #[error("{boundary:?} entry {index} is {logged} already, not {offered}")]
    Conflict {
        /// Which log.
        boundary: Boundary,
        /// Entry.
        index: u64,
        /// What stands there.
        logged: TensorRoot,
        /// What was offered.
        offered: TensorRoot,
    },
    /// The interval is not complete; wait for the tensor.
    #[error("{boundary:?} entry {index} is missing")]
    Missing {
        /// Which log.
        boundary: Boundary,
        /// First entry without a tensor.
        index: u64,
    },
}

impl LogShape {
    /// Entries of a log.
    pub fn entries(&self) -> u64 {
        u64::from(self.steps) * u64::from(self.micro_batches)
    }

    /// Place of a tensor: `local step · microBatches + micro-batch`.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`].
    pub fn index(&self, step: u32, micro_batch: u32) -> Result<u64, LogError> {
        if step >= self.steps || micro_batch >= self.micro_batches {
            return Err(LogError::OutOfRange { step, micro_batch, shape: *self });
        }
        Ok(u64::from(step) * u64::from(self.micro_batches) + u64::from(micro_batch))
    }
}

/// Logs of an interval while it runs. Entries arrive in any order.
#[derive(Clone, Debug)]
pub struct LogBuilder {
    shape: LogShape,
    boundaries: BTreeMap<Boundary, BTreeMap<u64, TensorRoot>>,
}

impl LogBuilder {
    /// Empty logs for the neighbours that a program has.
    ///
    /// # Errors
    /// [`LogError::TooLong`].
    pub fn new(program: &Program, steps: u32) -> Result<Self, LogError> {
        let shape = LogShape { steps, micro_batches: program.micro_batches };
        if shape.entries() > MAX_ENTRIES {
            return Err(LogError::TooLong(shape.entries()));
        }
        let boundaries = Boundary::ALL
            .into_iter()
            .filter(|boundary| boundary.is_in(program))
            .map(|boundary| (boundary, BTreeMap::new()));
        Ok(Self { shape, boundaries: boundaries.collect() })
    }

    /// Extent of the logs.
    pub const fn shape(&self) -> LogShape {
        self.shape
    }

    /// Enters a tensor; entering the same one again changes nothing.
    ///
    /// # Errors
    /// [`LogError::NoBoundary`], [`LogError::OutOfRange`], [`LogError::Conflict`].
    pub fn record(
        &mut self,
        boundary: Boundary,
        step: u32,
        micro_batch: u32,
        offered: TensorRoot,
    ) -> Result<(), LogError> {
        let index = self.shape.index(step, micro_batch)?;
        let entries = self.boundaries.get_mut(&boundary).ok_or(LogError::NoBoundary(boundary))?;
        let logged = *entries.entry(index).or_insert(offered);
        if logged == offered { Ok(()) } else { Err(LogError::Conflict { boundary, index, logged, offered }) }
    }

    /// Closes the logs.
    ///
    /// # Errors
    /// [`LogError::Missing`].
    pub fn finish(self) -> Result<BoundaryLists, LogError> {
        let mut lists = BTreeMap::new();
        for (boundary, entries) in self.boundaries {
            let index = (0..).zip(entries.keys()).take_while(|(index, key)| index == *key).count() as u64;
            if index < self.shape.entries() {
                return Err(LogError::Missing { boundary, index });
            }
            lists.insert(boundary, List::new(entries.into_values()));
        }
        Ok(BoundaryLists { lists })
    }
}

/// The closed logs of an interval with their trees.
#[derive(Clone, Debug, Default)]
pub struct BoundaryLists {
    lists: BTreeMap<Boundary, List>,
}

impl BoundaryLists {
    /// The log of a boundary, if the stage has that neighbour.
    pub fn get(&self, boundary: Boundary) -> Option<&List> {
        self.lists.get(&boundary)
    }

    /// Logs of one entry each: those of one step of one micro-batch.
    pub fn of_one(entries: impl IntoIterator<Item = (Boundary, TensorRoot)>) -> Self {
        Self { lists: entries.into_iter().map(|(boundary, root)| (boundary, List::new([root]))).collect() }
    }

    /// Roots; zero where there is no neighbour.
    pub fn roots(&self) -> BoundaryLogs {
        let root = |boundary| self.get(boundary).map(List::root).unwrap_or_default();
        BoundaryLogs {
            fromPrevious: root(Boundary::FromPrevious),
            toPrevious: root(Boundary::ToPrevious),
            fromNext: root(Boundary::FromNext),
            toNext: root(Boundary::ToNext),
        }
    }
}

/// The boundary logs of a claim, of which enough is known to open some entries.
pub trait Logs: Send + Sync {
    /// Roots; zero where there is no neighbour.
    fn roots(&self) -> BoundaryLogs;

    /// The log of a boundary, if there is one and anything is known of it.
    fn boundary(&self, boundary: Boundary) -> Option<&dyn Entries>;
}

impl Logs for BoundaryLists {
    fn roots(&self) -> BoundaryLogs {
        self.roots()
    }

    fn boundary(&self, boundary: Boundary) -> Option<&dyn Entries> {
        self.get(boundary).map(|list| list as &dyn Entries)
    }
}

/// `Claim.io`: hash of the logs' ABI encoding.
pub fn io_root(logs: &BoundaryLogs) -> B256 {
    keccak256(logs.abi_encode())
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use tensorlink_types::TensorType;

    use super::*;

    fn last_stage() -> Program {
        Program {
            operators: vec![],
            constants: vec![],
            state: vec![],
            micro_batches: 2,
            to_next: vec![],
            to_previous: vec![0, 0],
            from_previous: vec![TensorType::new(8, 0, &[1]).unwrap()],
            from_next: vec![],
            segments: vec![],
            names: vec![],
        }
    }

    fn root(i: u8) -> TensorRoot {
        TensorRoot(B256::repeat_byte(i))
    }

    #[test]
    fn complete_logs_close_and_absent_neighbours_are_zero() {
        let mut logs = LogBuilder::new(&last_stage(), 2).unwrap();
        for (step, micro_batch) in [(1, 1), (0, 0), (1, 0), (0, 1)] {
            for boundary in [Boundary::FromPrevious, Boundary::ToPrevious] {
                logs.record(boundary, step, micro_batch, root((step * 2 + micro_batch) as u8)).unwrap();
            }
        }
        let lists = logs.finish().unwrap();
        let roots = lists.roots();
        assert_eq!(roots.fromPrevious, crate::merkle::list_root((0..4).map(root)));
        assert_eq!(roots.toPrevious, roots.fromPrevious);
        assert_eq!((roots.fromNext, roots.toNext), (B256::ZERO, B256::ZERO));
    }

    #[test]
    fn refuses_what_does_not_belong() {
        let mut logs = LogBuilder::new(&last_stage(), 2).unwrap();
        assert_eq!(logs.record(Boundary::ToNext, 0, 0, root(1)), Err(LogError::NoBoundary(Boundary::ToNext)));
        assert!(matches!(logs.record(Boundary::ToPrevious, 2, 0, root(1)), Err(LogError::OutOfRange { .. })));
        assert!(matches!(logs.record(Boundary::ToPrevious, 0, 2, root(1)), Err(LogError::OutOfRange { .. })));
        logs.record(Boundary::ToPrevious, 0, 1, root(1)).unwrap();
        logs.record(Boundary::ToPrevious, 0, 1, root(1)).unwrap();
        assert!(matches!(logs.record(Boundary::ToPrevious, 0, 1, root(2)), Err(LogError::Conflict { index: 1, .. })));
        assert!(matches!(LogBuilder::new(&last_stage(), u32::MAX), Err(LogError::TooLong(_))));
    }

    #[test]
    fn names_the_first_missing_entry() {
        for present in [vec![], vec![0], vec![0, 1, 3], vec![1, 2, 3], vec![0, 1, 2]] {
            let mut logs = LogBuilder::new(&last_stage(), 2).unwrap();
            for i in 0..4 {
                logs.record(Boundary::FromPrevious, i / 2, i % 2, root(1)).unwrap();
            }
            for i in &present {
                logs.record(Boundary::ToPrevious, i / 2, i % 2, root(1)).unwrap();
            }
            let index = (0..4).find(|i| !present.contains(i)).unwrap();
            let missing = LogError::Missing { boundary: Boundary::ToPrevious, index: u64::from(index) };
            assert_eq!(logs.finish().unwrap_err(), missing, "{present:?}");
        }
    }
}
