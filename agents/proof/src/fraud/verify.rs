//! The checks of `contracts/core/Disputes.sol`, so that no validator pays for a transaction that reverts. In the same
//! order, but for what the bytes of an element proof leave out (C-17): it is checked here where it is given, and by the
//! contract in what was registered and signed.

use alloy_primitives::{Address, B256};
use tensorlink_num::{StepContext, element};
use tensorlink_types::abi::{
    BoundaryLogs, Claim, ContradictionProof, ProgramHeader, SINK_STATE, SINK_TO_NEXT, StepStatement, WiringProof,
};
use tensorlink_types::{Operator, Source, TensorType};

use super::{Case, ElementProof, Opened, OpenedTensor, Refusal, Work, decode, openings};
use crate::commit::programs::verify_program;
use crate::commit::{
    Boundary, io_root, is_receipt, operator_hash, program_hash, record_hash, verify_signer, wired, wiring_place,
};
use crate::merkle::tensor::leaf_count;
use crate::merkle::{LEAF_BYTES, verify_membership};

/// What a proof establishes; the fields of the event `Convicted`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conviction {
    /// Who earns the bounty.
    pub auditor: Address,
    /// Absolute step.
    pub step: u32,
    /// Operator (element and wiring proofs).
    pub operator: u32,
    /// Element (element proofs) or entry of the sink (wiring proofs).
    pub element: u64,
    /// What the trace holds (element proofs).
    pub claimed: i64,
    /// What the operator gives (element proofs).
    pub recomputed: i64,
}

/// `Disputes.proveSigned`.
///
/// # Errors
/// The [`Refusal`] that the contract would answer with.
pub fn verify_element_proof(case: &Case, proof: &ElementProof) -> Result<Conviction, Refusal> {
    check_claim(case, &proof.claim, proof.committed_at)?;
    check_about(case, &proof.claim, &proof.statement)?;
    check_program(case, &proof.statement, &proof.program, &proof.program_membership)?;
    verify_signer(&proof.signature, case.contracts.statement(&proof.statement), case.worker)?;
    let index = u64::from(proof.operator_index);
    let count = proof.program.operatorCount.into();
    // INVARIANT: the operator is the registered program's.
    let hash = operator_hash(&proof.operator);
    verify_membership(proof.program.operators, count, index, hash, &proof.operator_membership)
        .map_err(|_| Refusal::WrongOperator)?;
    let operator = decode::operator(&proof.operator)?;

    let claimed = claimed(proof, &operator)?;
    let recomputed = recomputed(case, proof, &operator)?;
    // INVARIANT: who computed right is never convicted (P-15).
    if claimed == recomputed {
        return Err(Refusal::NoFault);
    }
    Ok(Conviction {
        auditor: proof.statement.auditor,
        step: proof.statement.step,
        operator: proof.operator_index,
        element: proof.element,
        claimed,
        recomputed,
    })
}

/// The element as the tensor in the signed trace holds it.
fn claimed(proof: &ElementProof, operator: &Operator) -> Result<i64, Refusal> {
    let ty = &operator.output;
    // INVARIANT: the opening has nothing that is not looked at.
    if proof.output.ranges.len() != 1 {
        return Err(Refusal::WrongOutput(proof.element));
    }
    // INVARIANT: the output is the one the worker signed, under the type the program gives it.
    let root = root_of(&proof.output, ty, Opened::Output)?;
    let (index, count) = (proof.operator_index.into(), proof.program.operatorCount.into());
    verify_membership(proof.statement.trace, count, index, root, &proof.output.membership)
        .map_err(|_| Refusal::WrongMembership(Opened::Output))?;
    // INVARIANT: the element lies in the tensor or in the padding of its last leaf.
    let capacity = leaf_count(ty).saturating_mul((LEAF_BYTES / ty.width().bytes()) as u64);
    if proof.element >= capacity {
        return Err(Refusal::ElementOutOfRange(proof.element));
    }
    openings::mantissa(&proof.output.ranges, ty, proof.element).ok_or(Refusal::WrongOutput(proof.element))
}

/// The element as the program gives it. Padding is zero (C-1).
fn recomputed(case: &Case, proof: &ElementProof, operator: &Operator) -> Result<i64, Refusal> {
    if proof.element >= operator.output.elements() {
        return Ok(0);
    }
    let count = operator.operands.len();
    if proof.operands.len() != count {
        return Err(Refusal::WrongMembership(Opened::Operand(proof.operands.len())));
    }
    for (i, (operand, opening)) in operator.operands.iter().zip(&proof.operands).enumerate() {
        // Of what is not read, nothing is looked at.
        if opening.ranges.is_empty() {
            continue;
        }
        let root = root_of(opening, &operand.ty, Opened::Operand(i))?;
        // INVARIANT: operands are the worker's own or the program's, under the type the program gives them (P-14).
        if !is_operand(case, proof, operand.source, root, &opening.membership)? {
            return Err(Refusal::WrongMembership(Opened::Operand(i)));
        }
    }
    let get = |operand: usize, index: u64| {
        let ty = &operator.operands.get(operand)?.ty;
        openings::mantissa(&proof.operands.get(operand)?.ranges, ty, index)
    };
    let context = StepContext::new(case.lineage, proof.statement.step);
    Ok(element(operator, get, proof.element, &context)?)
}

/// Whether `root` is the tensor that an operand's source names.
fn is_operand(
    case: &Case,
    proof: &ElementProof,
    source: Source,
    root: B256,
    siblings: &[B256],
) -> Result<bool, Refusal> {
    let (statement, program) = (&proof.statement, &proof.program);
    let member =
        |list, count: u32, index: u32| verify_membership(list, count.into(), index.into(), root, siblings).is_ok();
    let logged = |boundary: Boundary, micro_batch| {
        let logs = proof.logs.as_ref().ok_or(Refusal::WrongLogs)?;
        check_logs(&proof.claim, logs)?;
        Ok(is_logged(case, program, statement, boundary.root(logs), micro_batch, root, siblings))
    };
    match source {
        Source::Output(i) => Ok(i < proof.operator_index && member(statement.trace, program.operatorCount, i)),
        Source::State(i) => Ok(member(statement.preState, program.stateCount, i)),
        Source::Constant(i) => Ok(member(program.constants, program.constantCount, i)),
        Source::FromPrevious(i) => logged(Boundary::FromPrevious, i),
        Source::FromNext(i) => logged(Boundary::FromNext, i),
    }
}

/// `Disputes.proveSignedWiring`.
///
/// # Errors
/// The [`Refusal`] that the contract would answer with.
pub fn verify_wiring_proof(case: &Case, proof: &WiringProof) -> Result<Conviction, Refusal> {
    check_claim(case, &proof.claim, proof.committedAt)?;
    check_statement(case, &proof.claim, &proof.statement, &proof.signature)?;
    check_program(case, &proof.statement, &proof.program, &proof.programMembership)?;
    let (statement, program, operator) = (&proof.statement, &proof.program, proof.operatorIndex);
    let (place, entries) = wiring_place(program, proof.sink, proof.index).ok_or(Refusal::WrongOperator)?;
    // INVARIANT: the wiring is the registered program's.
    verify_membership(program.wiring, entries, place, wired(operator), &proof.wiringMembership)
        .map_err(|_| Refusal::WrongProgram)?;
    // INVARIANT: the worker signed this output for this operator …
    let count = program.operatorCount.into();
    verify_membership(statement.trace, count, operator.into(), proof.traceRoot, &proof.traceMembership)
        .map_err(|_| Refusal::WrongMembership(Opened::Operand(0)))?;
    // INVARIANT: … and committed to that tensor in the place which the output goes to.
    let (root, siblings) = (proof.sinkRoot, proof.sinkMembership.as_slice());
    let is_sink = if proof.sink == SINK_STATE {
        let count = program.stateCount.into();
        verify_membership(statement.postState, count, proof.index.into(), root, siblings).is_ok()
    } else {
        check_logs(&proof.claim, &proof.logs)?;
        let log = if proof.sink == SINK_TO_NEXT { proof.logs.toNext } else { proof.logs.toPrevious };
        is_logged(case, program, statement, log, proof.index, root, siblings)
    };
    if !is_sink {
        return Err(Refusal::WrongMembership(Opened::Operand(1)));
    }
    // INVARIANT: who put its outputs where they belong is never convicted (P-15).
    if proof.traceRoot == proof.sinkRoot {
        return Err(Refusal::NoFault);
    }
    let (auditor, step) = (statement.auditor, statement.step);
    Ok(Conviction { auditor, step, operator, element: proof.index.into(), claimed: 0, recomputed: 0 })
}

/// `Disputes.proveSignedContradiction`.
///
/// # Errors
/// The [`Refusal`] that the contract would answer with.
pub fn verify_contradiction_proof(case: &Case, proof: &ContradictionProof) -> Result<Conviction, Refusal> {
    check_claim(case, &proof.claim, proof.committedAt)?;
    let first = &proof.first;
    check_statement(case, &proof.claim, first, &proof.firstSignature)?;
    if !contradicts_claim(&case.work, &proof.claim, first) {
        check_statement(case, &proof.claim, &proof.second, &proof.secondSignature)?;
        // INVARIANT: who signs what it computed is never convicted (P-15).
        if !contradict(&case.work, first, &proof.second) {
            return Err(Refusal::NoFault);
        }
    }
    let (auditor, step) = (first.auditor, first.step);
    Ok(Conviction { auditor, step, operator: 0, element: 0, claimed: 0, recomputed: 0 })
}

/// A claim's first step starts from its parent state, its last ends in its new state. The step of a receipt is both.
pub fn contradicts_claim(work: &Work, claim: &Claim, statement: &StepStatement) -> bool {
    let local = work.local_step(statement.step);
    (local == 0 && statement.preState != claim.parentState)
        || (local.checked_add(1) == Some(work.steps()) && statement.postState != claim.newState)
}

/// One step has one outcome, whoever asked; the next step starts where it ended. A text has one number of tokens.
pub fn contradict(work: &Work, first: &StepStatement, second: &StepStatement) -> bool {
    if first.step == second.step {
        return (first.preState, first.postState, first.trace) != (second.preState, second.postState, second.trace);
    }
    match work {
        Work::Training { .. } => first.step.checked_add(1) == Some(second.step) && first.postState != second.preState,
        Work::Serving { .. } => true,
    }
}

/// Whether a statement is about a step of this claim and signed by the worker: nothing else counts.
///
/// # Errors
/// [`Refusal::StatementMismatch`], [`Refusal::BadSignature`].
pub fn check_statement(case: &Case, claim: &Claim, statement: &StepStatement, signature: &[u8]) -> Result<(), Refusal> {
    check_about(case, claim, statement)?;
    Ok(verify_signer(signature, case.contracts.statement(statement), case.worker)?)
}

/// Whether a statement is about a step of this claim.
fn check_about(case: &Case, claim: &Claim, statement: &StepStatement) -> Result<(), Refusal> {
    let of_claim = statement.claimId == case.contracts.claim_id(claim).0;
    if of_claim && case.work.holds(claim, statement.step) { Ok(()) } else { Err(Refusal::StatementMismatch) }
}

fn check_claim(case: &Case, claim: &Claim, committed_at: u64) -> Result<(), Refusal> {
    let known = match &case.work {
        Work::Training { record, .. } => record_hash(claim, committed_at) == *record,
        Work::Serving { .. } => committed_at == 0 && is_receipt(claim),
    };
    if known { Ok(()) } else { Err(Refusal::UnknownClaim) }
}

/// The registered program, or, of a text, the one registered for its number of tokens.
fn check_program(
    case: &Case,
    statement: &StepStatement,
    program: &ProgramHeader,
    membership: &[B256],
) -> Result<(), Refusal> {
    let hash = program_hash(program);
    let registered = match &case.work {
        // INVARIANT: a proof has nothing that is not looked at.
        Work::Training { program, .. } => hash == *program && membership.is_empty(),
        Work::Serving { longest, programs } => {
            verify_program(*programs, *longest, statement.step, hash, membership).is_ok()
        }
    };
    if registered { Ok(()) } else { Err(Refusal::WrongProgram) }
}

fn check_logs(claim: &Claim, logs: &BoundaryLogs) -> Result<(), Refusal> {
    if io_root(logs) == claim.io { Ok(()) } else { Err(Refusal::WrongLogs) }
}

fn root_of(tensor: &OpenedTensor, ty: &TensorType, opened: Opened) -> Result<B256, Refusal> {
    tensor.root(ty).map_err(|(range, error)| Refusal::WrongOpening { opened, range, error })
}

/// Whether `root` is the tensor of the statement's step and a micro-batch in a boundary log (C-8).
fn is_logged(
    case: &Case,
    program: &ProgramHeader,
    statement: &StepStatement,
    log: B256,
    micro_batch: u32,
    root: B256,
    siblings: &[B256],
) -> bool {
    // INVARIANT: a micro-batch of another step is never taken for one of this.
    if micro_batch >= program.microBatches {
        return false;
    }
    let per_step = u64::from(program.microBatches);
    let index = u64::from(case.work.local_step(statement.step)) * per_step + u64::from(micro_batch);
    let count = u64::from(case.work.steps()) * per_step;
    verify_membership(log, count, index, root, siblings).is_ok()
}
