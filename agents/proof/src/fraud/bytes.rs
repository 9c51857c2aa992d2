//! A proof of a wrong element as the contract takes it (C-17): its fields in order and without gaps.
//!
//! Calldata is most of what a conviction costs. What follows from the rest is therefore not in the bytes: the claim's
//! id, the root of the program's operators, and the trace. The contract works them out and finds them in what was
//! registered and signed; so does [`decode`].

use alloy_primitives::{Address, B256, Bytes};
use tensorlink_types::TensorType;
use tensorlink_types::abi::{BoundaryLogs, Claim, LeafRange, Operand, Operator, ProgramHeader, StepStatement};
use thiserror::Error;

use super::element::receives;
use super::{ElementProof, OpenedTensor};
use crate::commit::{Boundary, Contracts, SIGNATURE_BYTES, operator_hash};
use crate::merkle::{LEAF_BYTES, OpeningError, list_root_over};

/// Why there are no such bytes, or no such proof.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BytesError {
    /// More is needed than is there.
    #[error("the proof ends too early")]
    TooShort,
    /// Something follows the proof.
    #[error("{0} bytes follow the proof")]
    TooLong(usize),
    /// A list is longer than the bytes can say, or a part is not of the length that it always has.
    #[error("a proof has no {0} of this length")]
    Length(&'static str),
    /// Logs without an operand from a neighbour, or such an operand without logs.
    #[error("a proof has boundary logs if an operand is in one, and only then")]
    Logs,
    /// The output's type is none.
    #[error("the operator's output has no type")]
    Type,
    /// What is opened cannot be a part of anything.
    #[error(transparent)]
    Opening(#[from] OpeningError),
}

/// The bytes of a proof.
///
/// # Errors
/// [`BytesError::Length`], [`BytesError::Logs`]; never of a proof that holds.
pub fn encode(proof: &ElementProof) -> Result<Vec<u8>, BytesError> {
    let mut to = Writer(Vec::new());
    to.claim(&proof.claim);
    to.put(proof.committed_at.to_be_bytes());
    let said = &proof.statement;
    to.put(said.auditor);
    to.put(said.step.to_be_bytes());
    to.put(said.preState);
    to.put(said.postState);
    let signature: &[u8; SIGNATURE_BYTES] =
        proof.signature.as_ref().try_into().map_err(|_| BytesError::Length("signature"))?;
    to.put(signature);
    to.program(&proof.program);
    to.siblings(&proof.program_membership)?;
    to.operator(&proof.operator)?;
    to.put(proof.operator_index.to_be_bytes());
    to.siblings(&proof.operator_membership)?;
    if proof.logs.is_some() != receives(&proof.operator) {
        return Err(BytesError::Logs);
    }
    if let Some(logs) = &proof.logs {
        Boundary::ALL.iter().for_each(|boundary| to.put(boundary.root(logs)));
    }
    to.put(proof.element.to_be_bytes());
    if proof.output.ranges.len() != 1 {
        return Err(BytesError::Length("list of the output's ranges"));
    }
    to.tensor(&proof.output)?;
    to.count(proof.operands.len(), "list of operands")?;
    for operand in &proof.operands {
        let ranges = u32::try_from(operand.ranges.len()).map_err(|_| BytesError::Length("list of ranges"))?;
        to.put(ranges.to_be_bytes());
        if ranges > 0 {
            to.tensor(operand)?;
        } else if !operand.membership.is_empty() {
            return Err(BytesError::Length("way to a tensor that is not opened"));
        }
    }
    Ok(to.0)
}

struct Writer(Vec<u8>);

impl Writer {
    fn put(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.extend_from_slice(bytes.as_ref());
    }

    /// A number of entries, in one byte.
    fn count(&mut self, count: usize, what: &'static str) -> Result<(), BytesError> {
        self.put([u8::try_from(count).map_err(|_| BytesError::Length(what))?]);
        Ok(())
    }

    fn siblings(&mut self, siblings: &[B256]) -> Result<(), BytesError> {
        self.count(siblings.len(), "list of siblings")?;
        siblings.iter().for_each(|sibling| self.put(sibling));
        Ok(())
    }

    fn claim(&mut self, claim: &Claim) {
        self.put(claim.job.to_be_bytes());
        self.put(claim.stage.to_be_bytes());
        self.put(claim.replica.to_be_bytes());
        self.put(claim.interval.to_be_bytes());
        self.put(claim.parentState);
        self.put(claim.newState);
        self.put(claim.io);
    }

    fn program(&mut self, program: &ProgramHeader) {
        for count in [program.operatorCount, program.constantCount, program.stateCount, program.microBatches] {
            self.put(count.to_be_bytes());
        }
        self.put([program.edges]);
        self.put(program.constants);
        self.put(program.wiring);
    }

    fn operator(&mut self, operator: &Operator) -> Result<(), BytesError> {
        self.put([operator.opcode]);
        self.put(operator.output.to_be_bytes::<32>());
        self.count(operator.operands.len(), "list of operands")?;
        for operand in &operator.operands {
            self.put([operand.source]);
            self.put(operand.index.to_be_bytes());
            self.put(operand.tensorType.to_be_bytes::<32>());
        }
        self.count(operator.attributes.len(), "list of attributes")?;
        operator.attributes.iter().for_each(|attribute| self.put(attribute.to_be_bytes()));
        Ok(())
    }

    fn tensor(&mut self, tensor: &OpenedTensor) -> Result<(), BytesError> {
        self.siblings(&tensor.membership)?;
        for range in &tensor.ranges {
            let whole = range.leaves.len().is_multiple_of(LEAF_BYTES);
            let leaves = range.leaves.len().checked_div(LEAF_BYTES).and_then(|leaves| u32::try_from(leaves).ok());
            let leaves = leaves.filter(|_| whole).ok_or(BytesError::Length("range of leaves"))?;
            self.put(range.firstLeaf.to_be_bytes());
            self.put(leaves.to_be_bytes());
            self.put(&range.leaves);
            self.siblings(&range.siblings)?;
        }
        Ok(())
    }
}

/// The proof that has these bytes; with what they leave out, so that it is what its prover made. Whether it holds is
/// another question.
///
/// # Errors
/// [`BytesError`] for every bytes that the contract refuses before it looks at what it knows, and none else.
pub fn decode(bytes: &[u8], contracts: &Contracts) -> Result<ElementProof, BytesError> {
    let mut from = Reader(bytes);
    let claim = from.claim()?;
    let committed_at = from.u64()?;
    let mut statement = StepStatement {
        claimId: contracts.claim_id(&claim).0,
        auditor: Address::from(from.array()?),
        step: from.u32()?,
        preState: from.word()?,
        postState: from.word()?,
        trace: B256::ZERO,
    };
    let signature = Bytes::from(from.array::<SIGNATURE_BYTES>()?);
    let mut program = from.program()?;
    let program_membership = from.siblings()?;
    let operator = from.operator()?;
    let operator_index = from.u32()?;
    let operator_membership = from.siblings()?;
    let logs = if receives(&operator) { Some(from.logs()?) } else { None };
    let element = from.u64()?;
    let output = from.tensor(1)?;
    let operands = from.operands()?;
    if !from.0.is_empty() {
        return Err(BytesError::TooLong(from.0.len()));
    }

    let (count, at) = (program.operatorCount.into(), operator_index.into());
    program.operators = list_root_over(count, at, operator_hash(&operator), &operator_membership)?;
    let ty = TensorType::from_word(operator.output).map_err(|_| BytesError::Type)?;
    let root = output.root(&ty).map_err(|(_, error)| error)?;
    statement.trace = list_root_over(count, at, root, &output.membership)?;
    Ok(ElementProof {
        claim,
        committed_at,
        statement,
        signature,
        program,
        program_membership,
        operator,
        operator_index,
        operator_membership,
        logs,
        element,
        output,
        operands,
    })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], BytesError> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(BytesError::TooShort)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BytesError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(BytesError::TooShort)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u8(&mut self) -> Result<u8, BytesError> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, BytesError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, BytesError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, BytesError> {
        self.array().map(u64::from_be_bytes)
    }

    fn word(&mut self) -> Result<B256, BytesError> {
        self.array().map(B256::new)
    }

    /// As many as a number of one byte says.
    fn list<T>(&mut self, mut entry: impl FnMut(&mut Self) -> Result<T, BytesError>) -> Result<Vec<T>, BytesError> {
        (0..self.u8()?).map(|_| entry(self)).collect()
    }

    fn siblings(&mut self) -> Result<Vec<B256>, BytesError> {
        self.list(Self::word)
    }

    fn claim(&mut self) -> Result<Claim, BytesError> {
        Ok(Claim {
            job: self.u64()?,
            stage: self.u16()?,
            replica: self.u16()?,
            interval: self.u32()?,
            parentState: self.word()?,
            newState: self.word()?,
            io: self.word()?,
        })
    }

    fn program(&mut self) -> Result<ProgramHeader, BytesError> {
        Ok(ProgramHeader {
            operatorCount: self.u32()?,
            constantCount: self.u32()?,
            stateCount: self.u32()?,
            microBatches: self.u32()?,
            edges: self.u8()?,
            operators: B256::ZERO,
            constants: self.word()?,
            wiring: self.word()?,
        })
    }

    fn operator(&mut self) -> Result<Operator, BytesError> {
        Ok(Operator {
            opcode: self.u8()?,
            output: self.word()?.into(),
            operands: self
                .list(|from| Ok(Operand { source: from.u8()?, index: from.u32()?, tensorType: from.word()?.into() }))?,
            attributes: self.list(|from| from.array().map(i64::from_be_bytes))?,
        })
    }

    fn logs(&mut self) -> Result<BoundaryLogs, BytesError> {
        Ok(BoundaryLogs {
            fromPrevious: self.word()?,
            toPrevious: self.word()?,
            fromNext: self.word()?,
            toNext: self.word()?,
        })
    }

    fn operands(&mut self) -> Result<Vec<OpenedTensor>, BytesError> {
        self.list(|from| match from.u32()? {
            0 => Ok(OpenedTensor::default()),
            ranges => from.tensor(ranges),
        })
    }

    fn tensor(&mut self, ranges: u32) -> Result<OpenedTensor, BytesError> {
        Ok(OpenedTensor {
            membership: self.siblings()?,
            ranges: (0..ranges).map(|_| self.range()).collect::<Result<_, _>>()?,
        })
    }

    fn range(&mut self) -> Result<LeafRange, BytesError> {
        let (first_leaf, leaves) = (self.u32()?, self.u32()?);
        let length = usize::try_from(leaves).ok().and_then(|leaves| leaves.checked_mul(LEAF_BYTES));
        let leaves = self.bytes(length.ok_or(BytesError::TooShort)?)?;
        Ok(LeafRange { firstLeaf: first_leaf, leaves: Bytes::copy_from_slice(leaves), siblings: self.siblings()? })
    }
}
