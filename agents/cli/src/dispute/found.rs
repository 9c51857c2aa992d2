//! What the proof shows that convicted a worker.

use tensorlink_node::ports::Call;
use tensorlink_proof::commit::Boundary;
use tensorlink_proof::fraud::{ElementProof, decode};
use tensorlink_types::abi::{
    Claim, ContradictionProof, EquivocationProof, JobKind, ProgramHeader, SINK_STATE, SINK_TO_NEXT, SINK_TO_PREVIOUS,
    StepStatement, WiringProof,
};
use tensorlink_types::{B256, ClaimId, TensorType};

use super::facts::{Clash, Conviction, Element, Equivocation, Found, Named, Operand, Sink, Terms, Wiring};

/// The claim that a proof is about, and its id: of every kind of proof that there is about receipts, which no event
/// tells of.
pub fn claim(proof: &Call) -> Option<(ClaimId, &Claim)> {
    Some(match proof {
        Call::Prove(proof) => (ClaimId(proof.statement.claimId), &proof.claim),
        Call::ProveWiring(proof) => (ClaimId(proof.statement.claimId), &proof.claim),
        Call::ProveContradiction(proof) => (ClaimId(proof.first.claimId), &proof.claim),
        _ => return None,
    })
}

/// The header of the program that a proof is about.
pub fn program(proof: &Call) -> Option<&ProgramHeader> {
    match proof {
        Call::Prove(proof) => Some(&proof.program),
        Call::ProveWiring(proof) => Some(&proof.program),
        _ => None,
    }
}

/// What the proof of a conviction shows. `terms` are those of its job.
pub fn read(proof: &Call, conviction: &Conviction, terms: &Terms) -> Option<Found> {
    match proof {
        Call::Prove(proof) => element(proof, conviction).map(Found::Element),
        Call::ProveWiring(proof) => wiring(proof).map(Found::Wiring),
        Call::ProveContradiction(proof) => Some(Found::Contradiction(clash(proof, terms))),
        Call::ProveEquivocation(proof) => Some(Found::Equivocation(equivocation(proof)?)),
        _ => None,
    }
}

const fn unnamed(index: u32) -> Named {
    Named { index, name: None }
}

fn element(proof: &ElementProof, Conviction { claimed, recomputed, .. }: &Conviction) -> Option<Element> {
    let operator = decode::operator(&proof.operator).ok()?;
    let operands = operator.operands.iter().map(|operand| Operand { source: operand.source, name: None });
    let exponent = operator.output.exponent();
    Some(Element {
        operator: unnamed(proof.operator_index),
        opcode: operator.opcode,
        operands: operands.collect(),
        place: place(&operator.output, proof.element),
        output: operator.output,
        real: real(claimed, exponent).zip(real(recomputed, exponent)),
    })
}

/// The index along each dimension of an element by its flat index; none behind the last element.
pub fn place(ty: &TensorType, element: u64) -> Option<Vec<u64>> {
    if element >= ty.elements() {
        return None;
    }
    let mut rest = element;
    let mut place = Vec::with_capacity(ty.dims().len());
    for dim in ty.dims().iter().rev().map(|dim| u64::from(*dim)) {
        place.push(rest.checked_rem(dim)?);
        rest = rest.checked_div(dim)?;
    }
    place.reverse();
    Some(place)
}

/// The number that a mantissa stands for; none if there is no exponent, or it is no number.
pub fn real(mantissa: &str, exponent: i16) -> Option<f64> {
    if exponent == 0 {
        return None;
    }
    let mantissa: f64 = mantissa.parse().ok()?;
    Some(mantissa * 2f64.powi(-i32::from(exponent)))
}

fn wiring(proof: &WiringProof) -> Option<Wiring> {
    let sink = match proof.sink {
        SINK_STATE => Sink::State,
        SINK_TO_NEXT => Sink::ToNext,
        SINK_TO_PREVIOUS => Sink::ToPrevious,
        _ => return None,
    };
    let (operator, place) = (unnamed(proof.operatorIndex), unnamed(proof.index));
    Some(Wiring { operator, sink, place, traced: proof.traceRoot, committed: proof.sinkRoot })
}

fn equivocation(proof: &EquivocationProof) -> Option<Equivocation> {
    let boundary = if proof.toNext { Boundary::ToNext } else { Boundary::ToPrevious };
    let (stage, claimed) = (boundary.neighbour(proof.claim.stage)?, boundary.root(&proof.logs));
    Some(Equivocation { stage, signed: proof.root, claimed })
}

/// In the order in which the contract looks.
fn clash(proof: &ContradictionProof, terms: &Terms) -> Clash {
    let ContradictionProof { claim, first, second, .. } = proof;
    let steps = if terms.kind == JobKind::Serving { 1 } else { terms.steps_per_interval.max(1) };
    let local = first.step % steps;
    if local == 0 && first.preState != claim.parentState {
        return Clash::Start { stated: first.preState, claimed: claim.parentState };
    }
    if local == steps - 1 && first.postState != claim.newState {
        return Clash::End { stated: first.postState, claimed: claim.newState };
    }
    let outcome = |said: &StepStatement| -> [B256; 3] { [said.preState, said.postState, said.trace] };
    if first.step == second.step {
        Clash::Outcomes { first: outcome(first), second: outcome(second) }
    } else if terms.kind == JobKind::Serving {
        Clash::Lengths { first: first.step, second: second.step }
    } else {
        Clash::Gap { ended: first.postState, started: second.preState }
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_node::ports::chain::Fault;
    use tensorlink_proof::fraud::OpenedTensor;
    use tensorlink_types::abi::BoundaryLogs;
    use tensorlink_types::{Address, Opcode, Operator, Source, U256};

    use super::*;
    use crate::amount::Wei;
    use crate::dispute::facts::Sent;

    #[test]
    fn a_flat_index_is_a_place_and_behind_the_tensor_there_is_none() {
        let ty = TensorType::new(8, 7, &[2, 3, 4]).unwrap();
        assert_eq!(place(&ty, 0), Some(vec![0, 0, 0]));
        assert_eq!(place(&ty, 17), Some(vec![1, 1, 1]));
        assert_eq!(place(&ty, 23), Some(vec![1, 2, 3]));
        assert_eq!(place(&ty, 24), None);
    }

    #[test]
    fn an_integer_stands_for_a_number_by_its_exponent() {
        assert_eq!(real("-127", 7), Some(-0.9921875));
        assert_eq!(real("3", -4), Some(48.0));
        assert_eq!((real("3", 0), real("three", 1)), (None, None));
    }

    fn proof(steps: (u32, u32), states: [[u8; 2]; 2]) -> ContradictionProof {
        let (parent, new) = (B256::repeat_byte(1), B256::repeat_byte(9));
        let claim = Claim { job: 1, stage: 0, replica: 0, interval: 2, parentState: parent, newState: new, io: new };
        ContradictionProof {
            claim,
            committedAt: 0,
            first: statement(steps.0, states[0]),
            firstSignature: Vec::new().into(),
            second: statement(steps.1, states[1]),
            secondSignature: Vec::new().into(),
        }
    }

    const TERMS: Terms = Terms {
        user: Address::ZERO,
        kind: JobKind::Training,
        steps_per_interval: 4,
        challenge_window: 1,
        stake: Wei(U256::ZERO),
    };

    fn statement(step: u32, [pre, post]: [u8; 2]) -> StepStatement {
        StepStatement {
            claimId: B256::ZERO,
            auditor: Address::ZERO,
            step,
            preState: B256::repeat_byte(pre),
            postState: B256::repeat_byte(post),
            trace: B256::ZERO,
        }
    }

    fn header() -> ProgramHeader {
        let zero = B256::ZERO;
        ProgramHeader {
            operatorCount: 3,
            constantCount: 0,
            stateCount: 2,
            microBatches: 1,
            edges: 0,
            operators: zero,
            constants: zero,
            wiring: zero,
        }
    }

    fn conviction(fault: Fault) -> Conviction {
        Conviction {
            claim: ClaimId::default(),
            interval: None,
            worker: Address::ZERO,
            auditor: Address::ZERO,
            fault,
            step: 8,
            operator: 2,
            element: 5,
            claimed: "-4".to_owned(),
            recomputed: "6".to_owned(),
            sent: Sent { transaction: B256::ZERO, block: 0, time: 0, cost: None },
            slash: None,
            found: None,
        }
    }

    #[test]
    fn the_proof_of_an_element_says_what_the_operator_is() {
        let ty = TensorType::new(8, 2, &[2, 3]).unwrap();
        let operand = tensorlink_types::Operand { source: Source::State(1), ty: ty.clone() };
        let operator =
            Operator { opcode: Opcode::Relu, operands: vec![operand], attributes: vec![], output: ty.clone() };
        let proof = ElementProof {
            claim: proof((8, 8), [[1, 2], [1, 2]]).claim,
            committed_at: 0,
            statement: statement(8, [1, 2]),
            signature: Vec::new().into(),
            program: header(),
            program_membership: vec![],
            operator: (&operator).into(),
            operator_index: 2,
            operator_membership: vec![],
            logs: None,
            element: 5,
            output: OpenedTensor::default(),
            operands: vec![],
        };
        let proof = Call::Prove(Box::new(proof));
        let found = read(&proof, &conviction(Fault::Element), &TERMS).unwrap();
        let operands = vec![Operand { source: Source::State(1), name: None }];
        let (operator, opcode, place, real) = (unnamed(2), Opcode::Relu, Some(vec![1, 2]), Some((-1.0, 1.5)));
        assert_eq!(found, Found::Element(Element { operator, opcode, operands, output: ty, place, real }));
        assert_eq!(claim(&proof).map(|(id, claim)| (id, claim.interval)), Some((ClaimId::default(), 2)));
        assert_eq!(program(&proof), Some(&header()));
    }

    fn logs() -> BoundaryLogs {
        let zero = B256::ZERO;
        BoundaryLogs { fromPrevious: zero, toPrevious: zero, fromNext: zero, toNext: zero }
    }

    #[test]
    fn the_proof_of_a_wiring_says_where_the_output_belongs() {
        let (traced, committed) = (B256::repeat_byte(5), B256::repeat_byte(6));
        let proof = |sink, index, operator| WiringProof {
            claim: proof((8, 8), [[1, 2], [1, 2]]).claim,
            committedAt: 0,
            logs: logs(),
            statement: statement(8, [1, 2]),
            signature: Vec::new().into(),
            program: header(),
            programMembership: vec![],
            sink,
            index,
            operatorIndex: operator,
            wiringMembership: vec![],
            traceRoot: traced,
            traceMembership: vec![],
            sinkRoot: committed,
            sinkMembership: vec![],
        };
        let found = |sink, index, operator| {
            read(&Call::ProveWiring(Box::new(proof(sink, index, operator))), &conviction(Fault::Wiring), &TERMS)
        };
        let state = Wiring { operator: unnamed(2), sink: Sink::State, place: unnamed(1), traced, committed };
        assert_eq!(found(SINK_STATE, 1, 2), Some(Found::Wiring(state)));
        let onward = Wiring { operator: unnamed(0), sink: Sink::ToNext, place: unnamed(0), traced, committed };
        assert_eq!(found(SINK_TO_NEXT, 0, 0), Some(Found::Wiring(onward)));
        let back = Wiring { operator: unnamed(3), sink: Sink::ToPrevious, place: unnamed(1), traced, committed };
        assert_eq!(found(SINK_TO_PREVIOUS, 1, 3), Some(Found::Wiring(back)));
        assert_eq!(found(9, 0, 0), None);
    }

    #[test]
    fn a_contradiction_is_the_one_that_the_contract_finds_first() {
        let root = B256::repeat_byte;
        let found = |steps, states| clash(&proof(steps, states), &TERMS);
        assert_eq!(found((8, 8), [[2, 3], [2, 3]]), Clash::Start { stated: root(2), claimed: root(1) });
        assert_eq!(found((11, 8), [[2, 3], [2, 3]]), Clash::End { stated: root(3), claimed: root(9) });
        let (first, second) = ([root(2), root(3), B256::ZERO], [root(2), root(4), B256::ZERO]);
        assert_eq!(found((9, 9), [[2, 3], [2, 4]]), Clash::Outcomes { first, second });
        assert_eq!(found((9, 10), [[2, 3], [4, 5]]), Clash::Gap { ended: root(3), started: root(4) });
    }
}
