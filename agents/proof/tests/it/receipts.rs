//! Receipts (C-12): audits, proofs against liars, and the impossibility of proofs against honest workers.

use alloy_primitives::{Address, B256, Bytes};
use alloy_sol_types::SolValue;
use k256::ecdsa::SigningKey;
use tensorlink_num::Tensor;
use tensorlink_proof::audit::{Answer, Audit, OwnInterval, Undecided, Verdict, first_element};
use tensorlink_proof::commit::{Boundary, ProgramCommitment, io_root, record_hash, sign, tensor_root, trace_root};
use tensorlink_proof::fraud::bytes::{decode, encode};
use tensorlink_proof::fraud::{
    Case, Conviction, ElementProof, FraudError, Opened, Prover, Refusal, Sink, StepAnswer, Work,
    verify_contradiction_proof, verify_element_proof, verify_wiring_proof,
};
use tensorlink_proof::merkle::TensorTree;
use tensorlink_types::TensorRoot;
use tensorlink_types::abi::{ContradictionProof, WiringProof};

use crate::scenario::{AUDITOR, COMMITTED_AT, CONTRACTS, Scenario, with_element};
use crate::texts::{LAST, LONGEST, MATMUL, Stage, Told, own};

const TOKENS: u32 = 3;
const WRONG: TensorRoot = TensorRoot(B256::repeat_byte(9));

fn verdict(
    stage: &Stage,
    told: &Told,
    tokens: u32,
    own: &OwnInterval,
    answers: &[Answer],
) -> Result<Verdict, Undecided> {
    let (case, program) = (&stage.case(), stage.program(tokens));
    Audit { case, program, claim: &told.claim, logs: &told.logs, own }.verdict(answers)
}

/// Outputs of which one is wrong in one element.
fn lied(stage: &Stage, tokens: u32, operator: u32, element: u64) -> Vec<Tensor> {
    stage.run(tokens, |op, output| {
        if op == operator { with_element(&output, element, output.get(element).unwrap() ^ 1) } else { output }
    })
}

/// Proves an element of an output wrong, given the worker's outputs.
fn prove(
    stage: &Stage,
    tokens: u32,
    told: &Told,
    outputs: &[Tensor],
    operator: u32,
    element: u64,
) -> Result<ElementProof, FraudError> {
    let op = &stage.program(tokens).operators[operator as usize];
    let operands = stage.operands(tokens, op, outputs);
    let operands: Vec<&Tensor> = operands.iter().collect();
    let tree = TensorTree::new(&outputs[operator as usize]);
    stage.prover(tokens, told).element(&told.answer(), operator, element, &tree, &operands)
}

/// A receipt for a text with a wrong product, and the proof of it.
fn wrong_product(stage: &Stage) -> (Told, ElementProof) {
    let outputs = lied(stage, TOKENS, MATMUL, 5);
    let told = stage.told(TOKENS, &outputs);
    let proof = prove(stage, TOKENS, &told, &outputs, MATMUL, 5).unwrap();
    (told, proof)
}

#[test]
fn a_wrong_element_convicts_for_texts_of_any_length() {
    let stage = Stage::new();
    for tokens in 1..=LONGEST {
        let honest = stage.honest(tokens);
        for operator in 0..=LAST {
            let elements = honest[operator as usize].ty().elements();
            for element in [0, elements / 2, elements - 1] {
                let outputs = lied(&stage, tokens, operator, element);
                let told = stage.told(tokens, &outputs);
                let verdict = verdict(&stage, &told, tokens, &own(tokens, &honest), &[told.answered()]);
                assert_eq!(verdict, Ok(Verdict::Element { step: tokens, operator }));
                let theirs = outputs[operator as usize].to_bytes();
                assert_eq!(first_element(&honest[operator as usize], &theirs), Some(element));

                let proof = prove(&stage, tokens, &told, &outputs, operator, element).unwrap();
                let recomputed = honest[operator as usize].get(element).unwrap();
                let (auditor, step, claimed) = (AUDITOR, tokens, recomputed ^ 1);
                let expected = Conviction { auditor, step, operator, element, claimed, recomputed };
                assert_eq!(verify_element_proof(&stage.case(), &proof), Ok(expected));
            }
        }
    }
}

#[test]
fn giving_something_else_than_the_signed_output_convicts() {
    let stage = Stage::new();
    let honest = stage.honest(TOKENS);
    let told = stage.told_giving(TOKENS, &honest, WRONG);
    let expected = Verdict::Wiring { step: TOKENS, sink: Sink::ToNext, index: 0 };
    assert_eq!(verdict(&stage, &told, TOKENS, &own(TOKENS, &honest), &[told.answered()]), Ok(expected));
    let proof = stage.prover(TOKENS, &told).wiring(&told.answer(), Sink::ToNext, 0).unwrap();
    let conviction = verify_wiring_proof(&stage.case(), &proof).unwrap();
    assert_eq!((conviction.step, conviction.operator, conviction.element), (TOKENS, LAST, 0));
    for sink in [0, 1, 3, 4] {
        let bad = WiringProof { sink, ..proof.clone() };
        assert_eq!(verify_wiring_proof(&stage.case(), &bad), Err(Refusal::WrongOperator));
    }
    let second = WiringProof { index: 1, ..proof };
    assert_eq!(verify_wiring_proof(&stage.case(), &second), Err(Refusal::WrongOperator));
}

#[test]
fn statements_that_cannot_both_be_true_convict() {
    let stage = Stage::new();
    let honest = stage.honest(TOKENS);
    let told = stage.told(TOKENS, &honest);
    let prover = stage.prover(TOKENS, &told);
    let other_trace = told.restated(|s| s.trace = B256::ZERO);
    let longer = told.restated(|s| s.step = TOKENS + 1);
    let much_longer = told.restated(|s| s.step = LONGEST);
    for other in [&other_trace, &longer, &much_longer] {
        prover.contradiction(&told.signed, other).unwrap();
        prover.contradiction(other, &told.signed).unwrap();
        let answers = [told.answered(), Answer { signed: other.clone(), trace: None, post_state: None }];
        let found = verdict(&stage, &told, TOKENS, &own(TOKENS, &honest), &answers);
        assert_eq!(found, Ok(Verdict::Contradiction { first: 0, second: 1 }));
    }
    // A text has no states. The second statement is not looked at.
    for stateful in [told.restated(|s| s.preState = B256::ZERO), told.restated(|s| s.postState = B256::ZERO)] {
        assert!(prover.contradiction(&stateful, &stateful).unwrap_err().is_no_fault(), "zero is right");
    }
    let before = told.restated(|s| s.preState = B256::repeat_byte(1));
    let after = told.restated(|s| s.postState = B256::repeat_byte(1));
    for stateful in [before, after] {
        prover.contradiction(&stateful, &stateful).unwrap();
        let answer = Answer { signed: stateful, trace: None, post_state: None };
        let found = verdict(&stage, &told, TOKENS, &own(TOKENS, &honest), &[answer]);
        assert_eq!(found, Ok(Verdict::Contradiction { first: 0, second: 0 }));
    }
    // The same told to another auditor is no contradiction, nor is a length that no text has.
    let again = told.restated(|s| s.auditor = Address::ZERO);
    assert!(prover.contradiction(&told.signed, &again).unwrap_err().is_no_fault());
    for step in [0, LONGEST + 1, u32::MAX] {
        let error = prover.contradiction(&told.signed, &told.restated(|s| s.step = step)).unwrap_err();
        assert_eq!(error, FraudError::Refused(Refusal::StatementMismatch));
    }
}

#[test]
fn no_proof_convicts_an_honest_worker() {
    let stage = Stage::new();
    for tokens in 1..=LONGEST {
        let honest = stage.honest(tokens);
        let told = stage.told(tokens, &honest);
        let consistent = verdict(&stage, &told, tokens, &own(tokens, &honest), &[told.answered()]);
        assert_eq!(consistent, Ok(Verdict::Consistent));
        for operator in 0..=LAST {
            for element in (0..honest[operator as usize].ty().elements()).step_by(7) {
                let error = prove(&stage, tokens, &told, &honest, operator, element).unwrap_err();
                assert!(error.is_no_fault(), "{error}");
            }
        }
        let prover = stage.prover(tokens, &told);
        assert!(prover.wiring(&told.answer(), Sink::ToNext, 0).unwrap_err().is_no_fault());
        assert!(prover.contradiction(&told.signed, &told.signed).unwrap_err().is_no_fault());
        for sink in [Sink::State, Sink::ToPrevious] {
            assert!(matches!(
                prover.wiring(&told.answer(), sink, 0),
                Err(FraudError::OutOfProgram { .. } | FraudError::List(_))
            ));
        }
    }
}

#[test]
fn only_the_program_of_the_texts_length_counts() {
    let stage = Stage::new();
    let (told, good) = wrong_product(&stage);
    let refusal = |proof: &ElementProof| verify_element_proof(&stage.case(), proof).unwrap_err();
    for membership in
        [vec![], stage.list.prove(TOKENS + 1).unwrap(), [stage.list.prove(TOKENS).unwrap(), vec![B256::ZERO]].concat()]
    {
        let bad = ElementProof { program_membership: membership, ..good.clone() };
        assert_eq!(refusal(&bad), Refusal::WrongProgram);
    }
    // The program of another length, which is registered, but not for this text.
    let other = ProgramCommitment::new(stage.program(TOKENS + 1)).unwrap().header;
    let membership = stage.list.prove(TOKENS + 1).unwrap();
    let bad = ElementProof { program: other, program_membership: membership.clone(), ..good.clone() };
    assert_eq!(refusal(&bad), Refusal::WrongProgram);
    // The worker says so itself: its logs then hold no tensor of the type that this program receives.
    let said = told.restated(|s| s.step = TOKENS + 1);
    let bad = ElementProof { statement: said.statement, signature: said.signature, ..bad };
    assert!(!matches!(refusal(&bad), Refusal::WrongProgram));
    let longer = stage.input(TOKENS + 1);
    let prover =
        Prover::of_receipt(stage.case(), stage.program(TOKENS + 1), membership, &told.claim, &told.logs).unwrap();
    let output = &stage.honest(TOKENS + 1)[MATMUL as usize];
    let trace = [tensor_root(output), WRONG, WRONG];
    let said = told.restated(|s| (s.step, s.trace) = (TOKENS + 1, trace_root(&trace)));
    let answer = StepAnswer { said: &said, trace: &trace, before: &[], after: &[] };
    let error = prover.element(&answer, MATMUL, 0, &TensorTree::new(output), &[&longer, &stage.weights]).unwrap_err();
    assert!(matches!(error, FraudError::Operand { operand: 0, .. }), "{error}");

    // Another list, and the same list said to be longer or shorter.
    for (longest, programs) in [(LONGEST, WRONG.0), (2 * LONGEST, stage.list.root()), (2, stage.list.root())] {
        let case = Case { work: Work::Serving { longest, programs }, ..stage.case() };
        assert!(verify_element_proof(&case, &good).is_err());
    }
}

#[test]
fn only_a_receipt_and_only_its_workers_word_count() {
    let stage = Stage::new();
    let (told, good) = wrong_product(&stage);
    let refusal = |proof: &ElementProof| verify_element_proof(&stage.case(), proof).unwrap_err();

    let mut forged = good.clone();
    let other = SigningKey::from_slice(&[1; 32]).unwrap();
    forged.signature = Bytes::from(sign(&other, CONTRACTS.statement(&forged.statement)).unwrap());
    assert!(matches!(refusal(&forged), Refusal::BadSignature(_)));
    let mut stolen = good.clone();
    stolen.statement.auditor = Address::repeat_byte(0xbb);
    assert!(matches!(refusal(&stolen), Refusal::BadSignature(_)));
    for step in [0, LONGEST + 1, u32::MAX] {
        let said = told.restated(|s| s.step = step);
        let bad = ElementProof { statement: said.statement, signature: said.signature, ..good.clone() };
        assert_eq!(refusal(&bad), Refusal::StatementMismatch);
    }

    // No time, no states.
    assert_eq!(refusal(&ElementProof { committed_at: 1, ..good.clone() }), Refusal::UnknownClaim);
    let mut stateful = good.clone();
    stateful.claim.newState = B256::repeat_byte(1);
    assert_eq!(refusal(&stateful), Refusal::UnknownClaim);
    stateful.claim.newState = B256::ZERO;
    stateful.claim.parentState = B256::repeat_byte(1);
    assert_eq!(refusal(&stateful), Refusal::UnknownClaim);
    // Another text, lane or job.
    let mut other_text = good.clone();
    other_text.claim.interval += 1;
    assert_eq!(refusal(&other_text), Refusal::StatementMismatch);
    let mut other_lane = good.clone();
    other_lane.claim.stage += 1;
    assert_eq!(refusal(&other_lane), Refusal::StatementMismatch);
    let mut other_logs = good.clone();
    other_logs.logs.as_mut().unwrap().toNext = B256::ZERO;
    assert_eq!(refusal(&other_logs), Refusal::WrongLogs);

    // The same words in a training job, where no record holds them, and where one does.
    let root = ProgramCommitment::new(stage.program(TOKENS)).unwrap().root();
    let training =
        |record| Case { work: Work::Training { steps_per_interval: 1, program: root, record }, ..stage.case() };
    assert_eq!(verify_element_proof(&training(B256::ZERO), &good), Err(Refusal::UnknownClaim));
    let recorded = training(record_hash(&good.claim, 0));
    assert_eq!(verify_element_proof(&recorded, &good), Err(Refusal::StatementMismatch));
}

/// A training proof with siblings of a program is refused, and one of a claim on record is none of a receipt.
#[test]
fn training_and_serving_proofs_are_not_interchangeable() {
    let scenario = Scenario::new();
    let mut lied = scenario.honest();
    let entry = lied.logs.iter_mut().find(|(boundary, local, ..)| *boundary == Boundary::ToNext && *local == 1);
    entry.unwrap().3 = WRONG;
    let claimed = scenario.claim(&lied);
    let prover = Prover::new(claimed.case, &scenario.program, &claimed.claim, COMMITTED_AT, &claimed.logs);
    let (roots, answers) = (&lied.state_roots, &claimed.answers);
    let answer = StepAnswer { said: &answers[1].signed, trace: &lied.traces[1], before: &roots[1], after: &roots[2] };
    let good = prover.unwrap().wiring(&answer, Sink::ToNext, 0).unwrap();
    verify_wiring_proof(&claimed.case, &good).unwrap();
    let bad = WiringProof { programMembership: vec![B256::ZERO], ..good.clone() };
    assert_eq!(verify_wiring_proof(&claimed.case, &bad), Err(Refusal::WrongProgram));
    let Work::Training { program, .. } = claimed.case.work else { unreachable!() };
    for longest in [1, u32::MAX] {
        let serving = Case { work: Work::Serving { longest, programs: program }, ..claimed.case };
        assert_eq!(verify_wiring_proof(&serving, &good), Err(Refusal::UnknownClaim));
    }
}

#[test]
fn says_what_it_lacks() {
    let stage = Stage::new();
    let honest = stage.honest(TOKENS);
    let told = stage.told(TOKENS, &honest);
    let mine = own(TOKENS, &honest);
    let of = |told: &Told, own: &OwnInterval, answers: &[Answer]| verdict(&stage, told, TOKENS, own, answers);
    assert_eq!(of(&told, &mine, &[]), Err(Undecided::Statement(TOKENS)));
    // Its only statement is about another length: it does not speak about this text.
    let longer = Answer { signed: told.restated(|s| s.step = TOKENS + 1), ..told.answered() };
    assert_eq!(of(&told, &mine, &[longer]), Err(Undecided::Statement(TOKENS)));
    let hidden = Answer { signed: told.restated(|s| s.trace = WRONG.0), ..told.answered() };
    assert_eq!(of(&told, &mine, &[hidden]), Err(Undecided::Trace(TOKENS)));
    for first_step in [0, LONGEST + 1] {
        let own = OwnInterval { first_step, ..mine.clone() };
        assert_eq!(of(&told, &own, &[told.answered()]), Err(Undecided::Own(first_step)));
    }
    let none = OwnInterval { traces: vec![], ..mine.clone() };
    assert_eq!(of(&told, &none, &[told.answered()]), Err(Undecided::Own(TOKENS)));
    let stateful = OwnInterval { state: vec![WRONG], ..mine.clone() };
    assert_eq!(of(&told, &stateful, &[told.answered()]), Err(Undecided::Parent));
    let mut no_receipt = stage.told(TOKENS, &honest);
    no_receipt.claim.newState = B256::repeat_byte(1);
    assert_eq!(of(&no_receipt, &mine, &[told.answered()]), Err(Undecided::Receipt));
    let mut other_logs = stage.told_giving(TOKENS, &honest, WRONG);
    other_logs.claim = told.claim.clone();
    assert_ne!(io_root(&other_logs.logs.roots()), told.claim.io);
    assert_eq!(of(&other_logs, &mine, &[told.answered()]), Err(Undecided::Logs));
}

/// Every word of the encoding with its lowest or its highest bit flipped: another proof is refused, always.
fn assert_bound<T: PartialEq>(
    good: &T,
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Option<T>,
    verify: impl Fn(&T) -> Result<Conviction, Refusal>,
) {
    assert!(verify(good).is_ok());
    let mut refused = 0;
    for (at, flip) in (31..bytes.len()).step_by(32).flat_map(|last| [(last - 31, 0x80), (last, 0x01)]) {
        let mut bad = bytes.to_vec();
        bad[at] ^= flip;
        // Some are no proof at all, some bytes after a signature are in no field.
        if let Some(bad) = decode(&bad)
            && bad != *good
        {
            assert!(verify(&bad).is_err(), "byte {at}");
            refused += 1;
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn every_field_of_a_proof_is_bound() {
    let stage = Stage::new();
    let (told, element) = wrong_product(&stage);
    let case = stage.case();
    let (bytes, decode) = (encode(&element).unwrap(), |bytes: &[u8]| decode(bytes, &CONTRACTS).ok());
    assert_bound(&element, &bytes, decode, |proof| verify_element_proof(&case, proof));
    let contradiction =
        stage.prover(TOKENS, &told).contradiction(&told.signed, &told.restated(|s| s.step += 1)).unwrap();
    let decode = |bytes: &[u8]| ContradictionProof::abi_decode(bytes).ok();
    let verify = |proof: &_| verify_contradiction_proof(&case, proof);
    assert_bound(&contradiction, &contradiction.abi_encode(), decode, verify);
    let told = stage.told_giving(TOKENS, &stage.honest(TOKENS), WRONG);
    let wiring = stage.prover(TOKENS, &told).wiring(&told.answer(), Sink::ToNext, 0).unwrap();
    let decode = |bytes: &[u8]| WiringProof::abi_decode(bytes).ok();
    assert_bound(&wiring, &wiring.abi_encode(), decode, |proof| verify_wiring_proof(&case, proof));
}

/// An operand that the receipt does not log is not the worker's.
#[test]
fn what_was_not_received_convicts_nobody() {
    let stage = Stage::new();
    let (_, good) = wrong_product(&stage);
    let mut other = good.clone();
    other.operands[0].ranges[0].leaves = vec![0; 256].into();
    assert_eq!(verify_element_proof(&stage.case(), &other), Err(Refusal::WrongMembership(Opened::Operand(0))));
    let mut deeper = good;
    deeper.operands[0].membership.push(B256::ZERO);
    assert_eq!(verify_element_proof(&stage.case(), &deeper), Err(Refusal::WrongMembership(Opened::Operand(0))));
}
