//! Program root (C-5).

use alloy_primitives::{B256, keccak256};
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

/// Hash of a wiring's ABI encoding.
pub fn wiring_hash(wiring: &abi::Wiring) -> B256 {
    keccak256(wiring.abi_encode())
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
    /// Preimage of the header's wiring.
    pub wiring: abi::Wiring,
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
        let wiring = abi::Wiring {
            state: program.state.iter().map(|slot| slot.producer).collect(),
            toNext: program.to_next.clone(),
            toPrevious: program.to_previous.clone(),
        };
        let header = abi::ProgramHeader {
            operatorCount: count(operators.len())?,
            constantCount: count(constants.len())?,
            stateCount: count(program.state.len())?,
            microBatches: program.micro_batches,
            edges: boundaries_of(program),
            operators: operators.root(),
            constants: constants.root(),
            wiring: wiring_hash(&wiring),
        };
        Ok(Self { header, operators, constants, wiring })
    }

    /// Program root, as `JobTerms.programs` registers it.
    pub fn root(&self) -> B256 {
        program_hash(&self.header)
    }
}
