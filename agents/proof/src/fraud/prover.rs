//! Building proofs. Every proof is checked as the contract would before it is handed out.

use alloy_primitives::B256;
use tensorlink_num::{OpError, StepContext, Tensor, accessor, reads};
use tensorlink_types::abi::{
    self, Claim, ContradictionProof, LeafRange, SINK_STATE, SINK_TO_NEXT, SINK_TO_PREVIOUS, WiringProof,
};
use tensorlink_types::{Operator, Program, Source, TensorRoot, TensorType};

use super::{
    Case, ElementProof, FraudError, OpenedTensor, Refusal, Signed, openings, verify_contradiction_proof,
    verify_element_proof, verify_wiring_proof,
};
use crate::commit::{Boundary, Logs, ProgramCommitment, program::ProgramTooLarge, tensor_list, wiring_place};
use crate::merkle::tensor::leaves_of;
use crate::merkle::{Entries, List, OpeningError, TensorTree};

/// Where an operator's output goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sink {
    /// Into a state tensor.
    State,
    /// To the next stage.
    ToNext,
    /// To the previous stage.
    ToPrevious,
}

impl Sink {
    /// On-chain number.
    pub const fn to_number(self) -> u8 {
        match self {
            Self::State => SINK_STATE,
            Self::ToNext => SINK_TO_NEXT,
            Self::ToPrevious => SINK_TO_PREVIOUS,
        }
    }
}

/// A worker's answer about one step, with the lists of roots that open it.
#[derive(Clone, Copy, Debug)]
pub struct StepAnswer<'a> {
    /// What it signed.
    pub said: &'a Signed,
    /// The output roots that its trace commits to.
    pub trace: &'a [TensorRoot],
    /// The tensor roots of the state before the step; read for element proofs only.
    pub before: &'a [TensorRoot],
    /// The tensor roots of the state after the step; read for [`Sink::State`] only.
    pub after: &'a [TensorRoot],
}

/// The same, where the lists may be known in part only.
#[derive(Clone, Copy)]
pub struct StepLists<'a> {
    /// What it signed.
    pub said: &'a Signed,
    /// The outputs' roots.
    pub trace: &'a dyn Entries,
    /// The tensor roots of the state before the step; read for element proofs only.
    pub before: &'a dyn Entries,
    /// The tensor roots of the state after the step; read for [`Sink::State`] only.
    pub after: &'a dyn Entries,
}

/// The output that a worker's trace holds, as far as it is known.
pub trait Claimed: Send + Sync {
    /// Commitment of the tensor, under the type that the program gives it.
    fn root(&self, ty: &TensorType) -> TensorRoot;

    /// Opens a leaf.
    ///
    /// # Errors
    /// [`OpeningError`] beyond the tensor, or where not enough is known.
    fn opening(&self, leaf: u64) -> Result<LeafRange, OpeningError>;
}

impl Claimed for TensorTree<'_> {
    fn root(&self, ty: &TensorType) -> TensorRoot {
        if self.ty() == ty { self.root() } else { TensorRoot::default() }
    }

    fn opening(&self, leaf: u64) -> Result<LeafRange, OpeningError> {
        self.open(leaf, 1)
    }
}

/// One claim or receipt against one program: builds proofs from a worker's answers.
#[derive(Clone)]
pub struct Prover<'a> {
    case: Case,
    program: &'a Program,
    commitment: ProgramCommitment,
    membership: Vec<B256>,
    claim: &'a Claim,
    committed_at: u64,
    logs: &'a dyn Logs,
}

impl<'a> Prover<'a> {
    /// Prepares for a claim, the timestamp it was committed at, and its boundary logs as the worker gave them.
    ///
    /// # Errors
    /// [`ProgramTooLarge`]; no checked program is.
    pub fn new(
        case: Case,
        program: &'a Program,
        claim: &'a Claim,
        committed_at: u64,
        logs: &'a dyn Logs,
    ) -> Result<Self, ProgramTooLarge> {
        let commitment = ProgramCommitment::new(program)?;
        Ok(Self { case, program, commitment, membership: Vec::new(), claim, committed_at, logs })
    }

    /// Prepares for a receipt, the program for its text's number of tokens, and the siblings by which the stage
    /// registered that program ([`crate::commit::ProgramList::prove`]).
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_receipt(
        case: Case,
        program: &'a Program,
        membership: Vec<B256>,
        receipt: &'a Claim,
        logs: &'a dyn Logs,
    ) -> Result<Self, ProgramTooLarge> {
        Ok(Self { membership, ..Self::new(case, program, receipt, 0, logs)? })
    }

    /// What the chain knows.
    pub const fn case(&self) -> &Case {
        &self.case
    }

    /// Proves that element `element` of operator `operator`'s output is wrong.
    ///
    /// `theirs` is the tensor the worker claims for the output, `operands` are the operator's operands, which by the
    /// choice of the first difference are the worker's as well as one's own. An element in the padding of the last leaf
    /// (at or above the type's count) is wrong if it is not zero.
    ///
    /// # Errors
    /// [`FraudError`]; never hands out a proof that the contract would refuse.
    pub fn element(
        &self,
        step: &StepAnswer<'_>,
        operator: u32,
        element: u64,
        theirs: &TensorTree<'_>,
        operands: &[&Tensor],
    ) -> Result<ElementProof, FraudError> {
        let said = step.said;
        let trace = opening_list(step.trace, said.statement.trace, "trace")?;
        let before = opening_list(step.before, said.statement.preState, "state before the step")?;
        let lists = StepLists { said, trace: &trace, before: &before, after: &before };
        self.element_of(&lists, operator, element, theirs, operands)
    }

    /// As [`Self::element`], from lists and an output that may be known in part only.
    ///
    /// # Errors
    /// As [`Self::element`].
    pub fn element_of(
        &self,
        lists: &StepLists<'_>,
        operator: u32,
        element: u64,
        theirs: &dyn Claimed,
        operands: &[&Tensor],
    ) -> Result<ElementProof, FraudError> {
        let op = self.operator(operator)?;
        let said = lists.said;
        let output = self.output(op, operator, element, theirs, lists.trace)?;
        // Padding is not computed from anything.
        let operands =
            if element < op.output.elements() { self.operands(op, element, operands, lists)? } else { Vec::new() };
        let proof = ElementProof {
            claim: self.claim.clone(),
            committed_at: self.committed_at,
            statement: said.statement.clone(),
            signature: said.signature.clone(),
            program: self.commitment.header.clone(),
            program_membership: self.membership.clone(),
            logs: op.receives().then(|| self.logs.roots()),
            operator: abi::Operator::from(op),
            operator_index: operator,
            operator_membership: self.operator_membership(operator)?,
            element,
            output,
            operands,
        };
        verify_element_proof(&self.case, &proof)?;
        Ok(proof)
    }

    /// Opens the worker's output at the element, against its trace.
    fn output(
        &self,
        op: &Operator,
        operator: u32,
        element: u64,
        theirs: &dyn Claimed,
        trace: &dyn Entries,
    ) -> Result<OpenedTensor, FraudError> {
        let signed = item(trace, operator.into(), "operator")?;
        let actual = theirs.root(&op.output).into();
        if signed != actual {
            return Err(FraudError::NotInTrace { signed, actual });
        }
        let last = op.output.elements().saturating_sub(1);
        // Padding lies in the leaf of the last element.
        let (leaf, _) = leaves_of(&op.output, element.min(last), 1)?;
        Ok(OpenedTensor { membership: trace.prove(operator.into())?, ranges: vec![theirs.opening(leaf)?] })
    }

    /// Opens what the element is computed from, each operand against the commitment its source names.
    fn operands(
        &self,
        op: &Operator,
        element: u64,
        operands: &[&Tensor],
        lists: &StepLists<'_>,
    ) -> Result<Vec<OpenedTensor>, FraudError> {
        if op.operands.len() != operands.len() {
            let (expected, actual) = (op.operands.len(), operands.len());
            return Err(OpError::OperandCount { opcode: op.opcode, expected, actual }.into());
        }
        let context = StepContext::new(self.case.lineage, lists.said.statement.step);
        let reads = reads(op, accessor(operands), element, &context)?;
        let mut opened = Vec::with_capacity(operands.len());
        for (i, (operand, tensor)) in op.operands.iter().zip(operands).enumerate() {
            let (expected, actual) = (&operand.ty, tensor.ty());
            if expected != actual {
                let (expected, actual) = (expected.clone(), actual.clone());
                return Err(OpError::OperandType { operand: i, expected, actual }.into());
            }
            let tree = TensorTree::new(tensor);
            let (list, index) = self.place(operand.source, lists)?;
            let (committed, actual) = (item(list, index, "operand source")?, tree.root().into());
            if committed != actual {
                return Err(FraudError::Operand { operand: i, committed, actual });
            }
            let ranges = openings::open(&tree, &openings::ranges(&operand.ty, &reads, i)?)?;
            let membership = if ranges.is_empty() { Vec::new() } else { list.prove(index)? };
            opened.push(OpenedTensor { membership, ranges });
        }
        Ok(opened)
    }

    /// The list that a source names, and the place in it.
    fn place<'b>(&'b self, source: Source, lists: &StepLists<'b>) -> Result<(&'b dyn Entries, u64), FraudError> {
        Ok(match source {
            Source::Output(i) => (lists.trace, i.into()),
            Source::State(i) => (lists.before, i.into()),
            Source::Constant(i) => (&self.commitment.constants, i.into()),
            Source::FromPrevious(i) => self.logged(Boundary::FromPrevious, lists.said, i)?,
            Source::FromNext(i) => self.logged(Boundary::FromNext, lists.said, i)?,
        })
    }

    /// The log of a boundary, and the place of the statement's step and a micro-batch in it.
    fn logged(&self, boundary: Boundary, said: &Signed, micro_batch: u32) -> Result<(&dyn Entries, u64), FraudError> {
        let per_step = self.program.micro_batches;
        if micro_batch >= per_step {
            return Err(FraudError::OutOfProgram { what: "micro-batch", index: micro_batch.into() });
        }
        let local = self.case.work.local_step(said.statement.step);
        let list = self.logs.boundary(boundary).ok_or(FraudError::List("boundary log"))?;
        Ok((list, u64::from(local) * u64::from(per_step) + u64::from(micro_batch)))
    }

    /// Proves that entry `index` of a sink is not the output the program wires to it.
    ///
    /// # Errors
    /// As [`Self::element`].
    pub fn wiring(&self, step: &StepAnswer<'_>, sink: Sink, index: u32) -> Result<WiringProof, FraudError> {
        let said = step.said;
        let trace = opening_list(step.trace, said.statement.trace, "trace")?;
        let after = match sink {
            Sink::State => opening_list(step.after, said.statement.postState, "state after the step")?,
            Sink::ToNext | Sink::ToPrevious => List::new([B256::ZERO; 0]),
        };
        self.wiring_of(&StepLists { said, trace: &trace, before: &after, after: &after }, sink, index)
    }

    /// As [`Self::wiring`], from lists that may be known in part only.
    ///
    /// # Errors
    /// As [`Self::element`].
    pub fn wiring_of(&self, lists: &StepLists<'_>, sink: Sink, index: u32) -> Result<WiringProof, FraudError> {
        let (said, trace) = (lists.said, lists.trace);
        let ProgramCommitment { header, wiring, .. } = &self.commitment;
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let (source, (list, place)) = match sink {
            Sink::State => (self.program.state.get(at).map(|slot| slot.producer), (lists.after, u64::from(index))),
            Sink::ToNext => (self.program.to_next.get(at).copied(), self.logged(Boundary::ToNext, said, index)?),
            Sink::ToPrevious => {
                (self.program.to_previous.get(at).copied(), self.logged(Boundary::ToPrevious, said, index)?)
            }
        };
        let entry = wiring_place(header, sink.to_number(), index);
        let outside = FraudError::OutOfProgram { what: "entry of the sink", index: index.into() };
        let (source, (entry, _)) = source.zip(entry).ok_or(outside)?;
        let proof = WiringProof {
            claim: self.claim.clone(),
            committedAt: self.committed_at,
            logs: self.logs.roots(),
            statement: said.statement.clone(),
            signature: said.signature.clone(),
            program: header.clone(),
            programMembership: self.membership.clone(),
            sink: sink.to_number(),
            index,
            operatorIndex: source,
            wiringMembership: wiring.prove(entry)?,
            traceRoot: item(trace, source.into(), "operator")?,
            traceMembership: trace.prove(source.into())?,
            sinkRoot: item(list, place, "entry of the sink")?,
            sinkMembership: list.prove(place)?,
        };
        verify_wiring_proof(&self.case, &proof)?;
        Ok(proof)
    }

    /// Proves that two statements contradict each other, or that `first` contradicts the claim (`second` is then not
    /// looked at; pass `first` again).
    ///
    /// # Errors
    /// [`FraudError::Refused`].
    pub fn contradiction(&self, first: &Signed, second: &Signed) -> Result<ContradictionProof, FraudError> {
        let proof = ContradictionProof {
            claim: self.claim.clone(),
            committedAt: self.committed_at,
            first: first.statement.clone(),
            firstSignature: first.signature.clone(),
            second: second.statement.clone(),
            secondSignature: second.signature.clone(),
        };
        verify_contradiction_proof(&self.case, &proof)?;
        Ok(proof)
    }

    /// Siblings of an operator in the program's list.
    ///
    /// # Errors
    /// [`OpeningError::OutOfRange`].
    pub fn operator_membership(&self, operator: u32) -> Result<Vec<B256>, OpeningError> {
        self.commitment.operators.prove(operator.into())
    }

    fn operator(&self, index: u32) -> Result<&'a Operator, FraudError> {
        let operator = usize::try_from(index).ok().and_then(|i| self.program.operators.get(i));
        operator.ok_or(FraudError::OutOfProgram { what: "operator", index: index.into() })
    }
}

fn opening_list(roots: &[TensorRoot], committed: B256, what: &'static str) -> Result<List, FraudError> {
    let list = tensor_list(roots);
    if list.root() == committed { Ok(list) } else { Err(FraudError::List(what)) }
}

fn item(list: &dyn Entries, index: u64, what: &'static str) -> Result<B256, FraudError> {
    list.item(index).ok_or(FraudError::OutOfProgram { what, index })
}

impl From<ProgramTooLarge> for FraudError {
    fn from(error: ProgramTooLarge) -> Self {
        Self::OutOfProgram { what: "list of length", index: error.0 as u64 }
    }
}

impl FraudError {
    /// Whether the contract would find no fault: the worker is right, there is nothing to pursue.
    pub const fn is_no_fault(&self) -> bool {
        matches!(self, Self::Refused(Refusal::NoFault))
    }
}
