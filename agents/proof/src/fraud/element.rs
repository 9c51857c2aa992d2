//! A proof of a wrong element, whole.

use alloy_primitives::{B256, Bytes};
use tensorlink_types::abi::{BoundaryLogs, Claim, LeafRange, Operand, Operator, ProgramHeader, StepStatement};
use tensorlink_types::{Source, TensorType};

use crate::merkle::tensor::leaf_count;
use crate::merkle::{OpeningError, range_root, root_from_data};

/// A tensor's place in the list that its source names, and the leaves that are needed of it. Nothing leads to a tensor
/// of which nothing is needed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenedTensor {
    /// Siblings of the tensor's root, from the bottom.
    pub membership: Vec<B256>,
    /// Leaves, in order.
    pub ranges: Vec<LeafRange>,
}

impl OpenedTensor {
    /// Root of the tensor of this type, to which all ranges lead; of no tensor if there are none.
    ///
    /// # Errors
    /// The first range that does not lead there, and why.
    pub fn root(&self, ty: &TensorType) -> Result<B256, (usize, OpeningError)> {
        let mut data_root = None;
        for (i, range) in self.ranges.iter().enumerate() {
            let actual = range_root(leaf_count(ty), range).map_err(|error| (i, error))?;
            let expected = *data_root.get_or_insert(actual);
            if actual != expected {
                return Err((i, OpeningError::Root { expected, actual }));
            }
        }
        Ok(root_from_data(ty, data_root.unwrap_or_default()).into())
    }
}

/// Everything that convicts a worker whose signed trace holds one wrong element. [`super::bytes`] makes it what the
/// contract takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementProof {
    /// What the worker claimed.
    pub claim: Claim,
    /// When it did, Unix seconds; 0 of a receipt.
    pub committed_at: u64,
    /// What it signed about one step, to whom.
    pub statement: StepStatement,
    /// 65 bytes by the worker's key over the statement's digest.
    pub signature: Bytes,
    /// The program of the claim's stage.
    pub program: ProgramHeader,
    /// From the program to the registered list of a serving job; empty of a training job.
    pub program_membership: Vec<B256>,
    /// The operator whose output is wrong.
    pub operator: Operator,
    /// Its place in the program.
    pub operator_index: u32,
    /// Siblings of the operator's hash.
    pub operator_membership: Vec<B256>,
    /// The claim's boundary logs, if an operand is in one.
    pub logs: Option<BoundaryLogs>,
    /// Flat index of the element.
    pub element: u64,
    /// The output, where the element lies: one range.
    pub output: OpenedTensor,
    /// The operands; none if the element is padding.
    pub operands: Vec<OpenedTensor>,
}

/// Whether an operand is received, of an operator as a stranger spells it.
pub(super) fn receives(operator: &Operator) -> bool {
    let source = |operand: &Operand| Source::from_pair(operand.source, operand.index);
    operator.operands.iter().filter_map(source).any(Source::is_received)
}
