//! Program root (C-5).

use alloy_primitives::{B256, U256, keccak256};
use alloy_sol_types::SolValue;
use tensorlink_types::{Program, abi};
use thiserror::Error;

use super::Boundary;
use crate::merkle::List;

/// A program with more operators, constants or state tensors than 32 bits count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a program of {0} operators, constants or state tensors: at most {max} fit", max = u32::MAX)]
pub struct ProgramTooLarge(pub usize);

/// Hash of an operator's ABI encoding, which enters the list of operators.
pub fn operator_hash(operator: &abi::Operator) -> B256 {
    keccak256(operator.abi_encode())
}

/// An operator's entry in the list of a program's wiring: its index as a word.
pub fn wired(operator: u32) -> B256 {
    U256::from(operator).into()
}

/// Where the wiring has entry `index` of a sink ([`abi::WiringProof::sink`]), and how many entries it has in all;
/// `None` if the sink has no such entry.
pub fn wiring_place(header: &abi::ProgramHeader, sink: u8, index: u32) -> Option<(u64, u64)> {
    let sent = |boundary: Boundary| if header.edges & boundary.bit() == 0 { 0 } else { u64::from(header.microBatches) };
    let (to_next, to_previous) = (sent(Boundary::ToNext), sent(Boundary::ToPrevious));
    let state = u64::from(header.stateCount);
    let forward = state.saturating_add(to_next);
    let (first, entries) = match sink {
        abi::SINK_STATE => (0, state),
        abi::SINK_TO_NEXT => (state, to_next),
        abi::SINK_TO_PREVIOUS => (forward, to_previous),
        _ => return None,
    };
    let index = u64::from(index);
    // INVARIANT: an entry of one sink is never taken for one of another.
    (index < entries).then(|| (first.saturating_add(index), forward.saturating_add(to_previous)))
}

/// Program root: hash of the header's ABI encoding.
pub fn program_hash(header: &abi::ProgramHeader) -> B256 {
    keccak256(header.abi_encode())
}

/// Which boundary logs the program's stage has: bit n for the n-th of `BoundaryLogs`.
pub fn boundaries_of(program: &Program) -> u8 {
    Boundary::ALL
        .iter()
        .filter(|boundary| boundary.is_in(program))
        .fold(0, |boundaries, boundary| boundaries | boundary.bit())
}

/// A program's commitment with everything that opens it.
#[derive(Clone, Debug)]
pub struct ProgramCommitment {
    /// Preimage of the root.
    pub header: abi::ProgramHeader,
    /// Operators by their hashes.
    pub operators: List,
    /// Tensor roots of the constants.
    pub constants: List,
    /// The operators whose outputs leave the step ([`wired`]), as [`wiring_place`] finds them.
    pub wiring: List,
}

impl ProgramCommitment {
    /// Commits to a program.
    ///
    /// # Errors
    /// [`ProgramTooLarge`]; no checked program is.
    pub fn new(program: &Program) -> Result<Self, ProgramTooLarge> {
        let count = |n: usize| u32::try_from(n).map_err(|_| ProgramTooLarge(n));
        let operators = List::new(program.operators.iter().map(|op| operator_hash(&op.into())));
        let constants = List::new(program.constants.iter().map(|constant| constant.root));
        let state = program.state.iter().map(|slot| &slot.producer);
        let wiring =
            List::new(state.chain(&program.to_next).chain(&program.to_previous).map(|operator| wired(*operator)));
        let header = abi::ProgramHeader {
            operatorCount: count(operators.len())?,
            constantCount: count(constants.len())?,
            stateCount: count(program.state.len())?,
            microBatches: program.micro_batches,
            edges: boundaries_of(program),
            operators: operators.root(),
            constants: constants.root(),
            wiring: wiring.root(),
        };
        Ok(Self { header, operators, constants, wiring })
    }

    /// Program root, as `JobTerms.programs` registers it.
    pub fn root(&self) -> B256 {
        program_hash(&self.header)
    }
}
