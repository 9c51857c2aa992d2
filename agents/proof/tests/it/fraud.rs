//! Proofs against liars, and the impossibility of proofs against honest workers.

use alloy_primitives::{Address, B256, Bytes};
use alloy_sol_types::SolValue;
use k256::ecdsa::SigningKey;
use proptest::prelude::*;
use tensorlink_num::Tensor;
use tensorlink_proof::audit::{Audit, Verdict, first_element};
use tensorlink_proof::commit::{Boundary, sign, tensor_root};
use tensorlink_proof::fraud::bytes::{decode, encode};
use tensorlink_proof::fraud::{
    Conviction, ElementProof, FraudError, Opened, OpenedTensor, Prover, Refusal, Sink, StepAnswer,
    verify_contradiction_proof, verify_element_proof, verify_wiring_proof,
};
use tensorlink_proof::merkle::TensorTree;
use tensorlink_types::TensorRoot;
use tensorlink_types::abi::{ContradictionProof, StepStatement, WiringProof};

use crate::scenario::{
    AUDITOR, COMBINE, COMMITTED_AT, CONTRACTS, Claimed, HALVE, INTERVAL, MATMUL, Run, SAMPLE, STEPS, Scenario, signed,
    with_element,
};

pub(crate) const LOCAL: u32 = 1;
const STEP: u32 = INTERVAL * STEPS + LOCAL;

fn prover<'a>(scenario: &'a Scenario, claimed: &'a Claimed) -> Prover<'a> {
    Prover::new(claimed.case, &scenario.program, &claimed.claim, COMMITTED_AT, &claimed.logs).unwrap()
}

/// Proves element `element` of operator `operator` in step [`LOCAL`], given the worker's bytes for the output.
pub(crate) fn prove(
    scenario: &Scenario,
    lied: &Run,
    claimed: &Claimed,
    operator: u32,
    element: u64,
    theirs: &[u8],
) -> Result<ElementProof, FraudError> {
    let op = &scenario.program.operators[operator as usize];
    let honest = scenario.honest();
    let operands = scenario.operands(lied, LOCAL, op, &honest.outputs[LOCAL as usize]);
    let tree = TensorTree::from_bytes(op.output.clone(), theirs).unwrap();
    let operands: Vec<&Tensor> = operands.iter().collect();
    prover(scenario, claimed).element(&answer(lied, claimed), operator, element, &tree, &operands)
}

fn answer<'a>(lied: &'a Run, claimed: &'a Claimed) -> StepAnswer<'a> {
    let local = LOCAL as usize;
    StepAnswer {
        said: &claimed.answers[local].signed,
        trace: &lied.traces[local],
        before: &lied.state_roots[local],
        after: &lied.state_roots[local + 1],
    }
}

/// A run that is wrong in one element of one output of step [`LOCAL`].
pub(crate) fn lie(scenario: &Scenario, operator: u32, element: u64) -> Run {
    scenario.run(|local, op, output| {
        if (local, op) != (LOCAL, operator) {
            return output;
        }
        with_element(&output, element, output.get(element).unwrap() ^ 1)
    })
}

#[test]
fn a_wrong_element_of_any_operator_convicts() {
    let scenario = Scenario::new();
    let honest = scenario.honest();
    for operator in 0..scenario.program.operators.len() as u32 {
        let elements = scenario.program.operators[operator as usize].output.elements();
        for element in [0, elements / 2, elements - 1] {
            let lied = lie(&scenario, operator, element);
            let claimed = scenario.claim(&lied);
            let (case, program, claim, logs) = (&claimed.case, &scenario.program, &claimed.claim, &claimed.logs);
            let verdict = Audit { case, program, claim, logs, own: &honest.own() }.verdict(&claimed.answers);
            assert_eq!(verdict, Ok(Verdict::Element { step: STEP, operator }));

            let own = &honest.outputs[LOCAL as usize][operator as usize];
            let theirs = lied.outputs[LOCAL as usize][operator as usize].to_bytes();
            assert_eq!(first_element(own, &theirs), Some(element));
            let proof = prove(&scenario, &lied, &claimed, operator, element, &theirs).unwrap();
            let recomputed = own.get(element).unwrap();
            let claimed_value = recomputed ^ 1;
            let expected =
                Conviction { auditor: AUDITOR, step: STEP, operator, element, claimed: claimed_value, recomputed };
            assert_eq!(verify_element_proof(case, &proof), Ok(expected));
        }
    }
}

/// A matmul of 64-byte rows opens one leaf of each operand, a combine one of each.
#[test]
fn openings_are_minimal() {
    let scenario = Scenario::new();
    for (operator, leaves) in [(MATMUL, vec![1, 1]), (SAMPLE, vec![1]), (COMBINE, vec![1, 1]), (HALVE, vec![1])] {
        let lied = lie(&scenario, operator, 7);
        let theirs = lied.outputs[LOCAL as usize][operator as usize].to_bytes();
        let proof = prove(&scenario, &lied, &scenario.claim(&lied), operator, 7, &theirs).unwrap();
        assert_eq!(proof.output.ranges.len(), 1);
        assert_eq!(proof.output.ranges[0].leaves.len(), 256);
        let opened = |o: &OpenedTensor| o.ranges.iter().map(|r| r.leaves.len() / 256).sum();
        assert_eq!(proof.operands.iter().map(opened).collect::<Vec<usize>>(), leaves);
    }
}

/// What a liar commits to need not be a tensor: mantissas beyond their bits, and padding that is not zero.
#[test]
fn malformed_outputs_convict() {
    let scenario = Scenario::new();
    let honest = scenario.honest();
    // 200 elements of 16 bits: two leaves, 56 elements of padding.
    let own = &honest.outputs[LOCAL as usize][SAMPLE as usize];
    for (element, value) in [(3u64, i16::MIN), (199, i16::MIN), (200, 5), (255, -1)] {
        let mut theirs = own.to_bytes();
        theirs.resize(512, 0);
        theirs[2 * element as usize..2 * element as usize + 2].copy_from_slice(&value.to_le_bytes());
        let mut lied = scenario.honest();
        let root = TensorTree::from_bytes(own.ty().clone(), &theirs).unwrap().root();
        lied.traces[LOCAL as usize][SAMPLE as usize] = root;
        let claimed = scenario.claim(&lied);
        assert_eq!(first_element(own, &theirs), Some(element));
        let proof = prove(&scenario, &lied, &claimed, SAMPLE, element, &theirs).unwrap();
        let conviction = verify_element_proof(&claimed.case, &proof).unwrap();
        let recomputed = own.get(element).unwrap_or(0);
        assert_eq!((conviction.claimed, conviction.recomputed), (value.into(), recomputed));
    }
}

#[test]
fn no_proof_convicts_an_honest_worker() {
    let scenario = Scenario::new();
    let honest = scenario.honest();
    let claimed = scenario.claim(&honest);
    let no_fault = FraudError::Refused(Refusal::NoFault);
    for operator in 0..scenario.program.operators.len() as u32 {
        let theirs = honest.outputs[LOCAL as usize][operator as usize].to_bytes();
        let elements = scenario.program.operators[operator as usize].output.elements();
        for element in (0..elements).step_by(97) {
            assert_eq!(prove(&scenario, &honest, &claimed, operator, element, &theirs), Err(no_fault.clone()));
        }
    }
    let theirs = honest.outputs[LOCAL as usize][SAMPLE as usize].to_bytes();
    for padding in [200, 255] {
        assert_eq!(prove(&scenario, &honest, &claimed, SAMPLE, padding, &theirs), Err(no_fault.clone()));
    }
    let beyond = FraudError::Refused(Refusal::ElementOutOfRange(256));
    assert_eq!(prove(&scenario, &honest, &claimed, SAMPLE, 256, &theirs), Err(beyond));

    let prover = prover(&scenario, &claimed);
    for sink in [Sink::State, Sink::ToNext, Sink::ToPrevious] {
        for index in 0..2 {
            assert_eq!(prover.wiring(&answer(&honest, &claimed), sink, index), Err(no_fault.clone()));
        }
    }
    for first in &claimed.answers {
        for second in &claimed.answers {
            assert_eq!(prover.contradiction(&first.signed, &second.signed), Err(no_fault.clone()));
        }
    }
}

/// Somebody else's tensor, somebody else's word: P-14.
#[test]
fn only_the_workers_own_word_counts() {
    let scenario = Scenario::new();
    let lied = lie(&scenario, MATMUL, 5);
    let claimed = scenario.claim(&lied);
    let theirs = lied.outputs[LOCAL as usize][MATMUL as usize].to_bytes();
    let good = prove(&scenario, &lied, &claimed, MATMUL, 5, &theirs).unwrap();
    let case = &claimed.case;
    let refusal = |proof: &ElementProof| verify_element_proof(case, proof).unwrap_err();

    let mut forged = good.clone();
    let other = SigningKey::from_slice(&[1; 32]).unwrap();
    forged.signature = Bytes::from(sign(&other, CONTRACTS.statement(&forged.statement)).unwrap());
    assert!(matches!(refusal(&forged), Refusal::BadSignature(_)));

    let mut stolen = good.clone();
    stolen.statement.auditor = Address::repeat_byte(0xbb);
    assert!(matches!(refusal(&stolen), Refusal::BadSignature(_)), "the bounty cannot be redirected");

    // Signed, but about a step of another interval.
    let mut elsewhere = good.clone();
    let later = signed(StepStatement { step: STEP + STEPS, ..good.statement });
    (elsewhere.statement, elsewhere.signature) = (later.statement, later.signature);
    assert_eq!(refusal(&elsewhere), Refusal::StatementMismatch);

    let mut late = good.clone();
    late.committed_at += 1;
    assert_eq!(refusal(&late), Refusal::UnknownClaim);
    let mut other_program = good.clone();
    other_program.program.microBatches += 1;
    assert_eq!(refusal(&other_program), Refusal::WrongProgram);
    let mut other_operator = good.clone();
    other_operator.operator.attributes = vec![5];
    assert_eq!(refusal(&other_operator), Refusal::WrongOperator);
    let mut other_place = good.clone();
    other_place.operator_index = 3;
    assert_eq!(refusal(&other_place), Refusal::WrongOperator);
    let mut other_logs = good.clone();
    other_logs.logs.as_mut().unwrap().toNext = B256::ZERO;
    assert_eq!(refusal(&other_logs), Refusal::WrongLogs);
    let mut swapped = good.clone();
    swapped.operands.swap(0, 1);
    assert!(matches!(refusal(&swapped), Refusal::WrongOpening { opened: Opened::Operand(0), range: 0, .. }));
    let mut other_operand = good.clone();
    other_operand.operands[1].ranges[0].leaves = vec![0; 256].into();
    assert_eq!(refusal(&other_operand), Refusal::WrongMembership(Opened::Operand(1)));
    let mut missing = good.clone();
    missing.operands[1].ranges.clear();
    assert!(matches!(refusal(&missing), Refusal::Recompute(_)));
    let mut twice = good;
    twice.output.ranges.push(twice.output.ranges[0].clone());
    assert_eq!(refusal(&twice), Refusal::WrongOutput(5));

    // The auditor's own tensor is not the one the worker signed.
    let own = scenario.honest().outputs[LOCAL as usize][MATMUL as usize].to_bytes();
    let error = prove(&scenario, &lied, &claimed, MATMUL, 5, &own).unwrap_err();
    assert!(matches!(error, FraudError::NotInTrace { .. }));
    // An operator downstream of the fault: its operand is not one's own.
    let relu = lied.outputs[LOCAL as usize][2].to_bytes();
    let error = prove(&scenario, &lied, &claimed, 2, 5, &relu).unwrap_err();
    assert!(matches!(error, FraudError::Operand { operand: 0, .. }));
}

/// An output of the same bytes under a type that the program does not give it is not in the trace.
#[test]
fn another_type_is_another_tensor() {
    let scenario = Scenario::new();
    let lied = lie(&scenario, SAMPLE, 5);
    let claimed = scenario.claim(&lied);
    let theirs = &lied.outputs[LOCAL as usize][SAMPLE as usize];
    let ty = crate::scenario::ty(16, 4, &[40, 5]);
    let retyped = Tensor::new(ty, theirs.mantissas().clone()).unwrap();
    let data = &scenario.constants[0];
    let tree = TensorTree::new(&retyped);
    let error = prover(&scenario, &claimed).element(&answer(&lied, &claimed), SAMPLE, 5, &tree, &[data]).unwrap_err();
    assert!(matches!(error, FraudError::NotInTrace { .. }));
    assert_ne!(tensor_root(&retyped), tensor_root(theirs));
}

fn wiring_proof(scenario: &Scenario, sink: Sink) -> (Claimed, WiringProof) {
    let mut lied = scenario.honest();
    let wrong = TensorRoot(B256::repeat_byte(9));
    match sink {
        Sink::State => lied.state_roots[LOCAL as usize + 1][1] = wrong,
        Sink::ToNext | Sink::ToPrevious => {
            let boundary = if sink == Sink::ToNext { Boundary::ToNext } else { Boundary::ToPrevious };
            let entry = lied.logs.iter_mut().find(|(e, local, m, _)| (*e, *local, *m) == (boundary, LOCAL, 1)).unwrap();
            entry.3 = wrong;
        }
    }
    let claimed = scenario.claim(&lied);
    let proof = prover(scenario, &claimed).wiring(&answer(&lied, &claimed), sink, 1).unwrap();
    (claimed, proof)
}

#[test]
fn a_miswired_output_convicts() {
    let scenario = Scenario::new();
    for (sink, operator) in [(Sink::State, COMBINE), (Sink::ToNext, 5), (Sink::ToPrevious, 4)] {
        let (claimed, proof) = wiring_proof(&scenario, sink);
        let conviction = verify_wiring_proof(&claimed.case, &proof).unwrap();
        assert_eq!((conviction.step, conviction.operator, conviction.element), (STEP, operator, 1));
        // Another entry, where the worker is right, and sinks that do not exist.
        let mut bad = proof.clone();
        bad.index = 0;
        assert!(verify_wiring_proof(&claimed.case, &bad).is_err());
        for sink in [0, 4, u8::MAX] {
            let bad = WiringProof { sink, ..proof.clone() };
            assert_eq!(verify_wiring_proof(&claimed.case, &bad), Err(Refusal::WrongOperator));
        }
    }
}

#[test]
fn contradicting_statements_convict() {
    let scenario = Scenario::new();
    let honest = scenario.honest();
    let claimed = scenario.claim(&honest);
    let prover = prover(&scenario, &claimed);
    let restate = |local: usize, change: fn(&mut StepStatement)| {
        let mut statement = claimed.answers[local].signed.statement.clone();
        change(&mut statement);
        signed(statement)
    };
    let signed = |local: usize| &claimed.answers[local].signed;
    // Two outcomes of one step.
    let changes: [fn(&mut StepStatement); 3] =
        [|s| s.trace = B256::ZERO, |s| s.preState = B256::ZERO, |s| s.postState = B256::ZERO];
    for change in changes {
        prover.contradiction(signed(1), &restate(1, change)).unwrap();
    }
    // The same outcome told to another auditor is none.
    let again = restate(1, |s| s.auditor = Address::ZERO);
    assert!(prover.contradiction(signed(1), &again).unwrap_err().is_no_fault());
    // A step that starts elsewhere than the one before ended, in this order.
    let gap = restate(1, |s| s.preState = B256::ZERO);
    prover.contradiction(signed(0), &gap).unwrap();
    assert!(prover.contradiction(&gap, signed(0)).unwrap_err().is_no_fault());
    // Against the claim: the second statement is not looked at.
    let first = restate(0, |s| s.preState = B256::ZERO);
    prover.contradiction(&first, &first).unwrap();
    let last = restate(2, |s| s.postState = B256::ZERO);
    prover.contradiction(&last, &last).unwrap();
}

fn mutated<T: SolValue + From<<T::SolType as alloy_sol_types::SolType>::RustType>>(
    proof: &T,
    at: prop::sample::Index,
    flip: u8,
) -> Option<T> {
    let mut bytes = proof.abi_encode();
    let at = at.index(bytes.len());
    bytes[at] ^= flip;
    T::abi_decode(&bytes).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// One byte changed anywhere of what the contract gets: refused. Nothing is in a proof that is not looked at.
    #[test]
    fn mutated_element_proofs_prove_nothing_else(operator in 0u32..9, mutations: [(prop::sample::Index, u8); 24]) {
        let scenario = Scenario::new();
        let lied = lie(&scenario, operator, 9);
        let claimed = scenario.claim(&lied);
        let theirs = lied.outputs[LOCAL as usize][operator as usize].to_bytes();
        let good = prove(&scenario, &lied, &claimed, operator, 9, &theirs).unwrap();
        verify_element_proof(&claimed.case, &good).unwrap();
        let bytes = encode(&good).unwrap();
        for (at, flip) in mutations {
            let mut bad = bytes.clone();
            bad[at.index(bytes.len())] ^= flip.max(1);
            if let Ok(bad) = decode(&bad, &CONTRACTS) {
                prop_assert!(verify_element_proof(&claimed.case, &bad).is_err());
            }
        }
    }

    #[test]
    fn mutated_wiring_proofs_prove_nothing_else(mutations: [(prop::sample::Index, u8); 24]) {
        let scenario = Scenario::new();
        for sink in [Sink::State, Sink::ToNext, Sink::ToPrevious] {
            let (claimed, good) = wiring_proof(&scenario, sink);
            let conviction = verify_wiring_proof(&claimed.case, &good).unwrap();
            for (at, flip) in mutations {
                if let Some(bad) = mutated::<WiringProof>(&good, at, flip.max(1)) {
                    let result = verify_wiring_proof(&claimed.case, &bad);
                    prop_assert!(result.is_err() || result == Ok(conviction));
                }
            }
        }
    }

    #[test]
    fn mutated_contradictions_prove_nothing_else(mutations: [(prop::sample::Index, u8); 24]) {
        let scenario = Scenario::new();
        let claimed = scenario.claim(&scenario.honest());
        let mut statement = claimed.answers[1].signed.statement.clone();
        statement.trace = B256::ZERO;
        let good = prover(&scenario, &claimed).contradiction(&claimed.answers[1].signed, &signed(statement)).unwrap();
        let conviction = verify_contradiction_proof(&claimed.case, &good).unwrap();
        for (at, flip) in mutations {
            if let Some(bad) = mutated::<ContradictionProof>(&good, at, flip.max(1)) {
                let result = verify_contradiction_proof(&claimed.case, &bad);
                prop_assert!(result.is_err() || result == Ok(conviction));
            }
        }
    }
}
