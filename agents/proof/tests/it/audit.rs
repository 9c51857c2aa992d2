//! Verdicts over honest and lying workers.

use alloy_primitives::B256;
use tensorlink_proof::audit::{Answer, Audit, OwnInterval, Undecided, Verdict, first_difference, first_element};
use tensorlink_proof::commit::Boundary;
use tensorlink_proof::fraud::Sink;
use tensorlink_types::TensorRoot;
use tensorlink_types::abi::StepStatement;

use crate::scenario::{Claimed, INTERVAL, MATMUL, Run, SAMPLE, STEPS, Scenario, signed, ty, with_element};

const FIRST: u32 = INTERVAL * STEPS;

fn verdict_of(scenario: &Scenario, run: &Run, claimed: &Claimed, answers: &[Answer]) -> Result<Verdict, Undecided> {
    let (case, program, claim, logs, own) =
        (&claimed.case, &scenario.program, &claimed.claim, &claimed.logs, &run.own());
    Audit { case, program, claim, logs, own }.verdict(answers)
}

/// Verdict on a run that was claimed, by an auditor that executes honestly.
fn verdict(scenario: &Scenario, lied: &Run) -> Result<Verdict, Undecided> {
    let claimed = scenario.claim(lied);
    verdict_of(scenario, &scenario.honest(), &claimed, &claimed.answers)
}

fn restate(answer: &Answer, change: impl FnOnce(&mut StepStatement)) -> Answer {
    let mut statement = answer.signed.statement.clone();
    change(&mut statement);
    Answer { signed: signed(statement), ..answer.clone() }
}

#[test]
fn an_honest_worker_is_consistent() {
    let scenario = Scenario::new();
    assert_eq!(verdict(&scenario, &scenario.honest()), Ok(Verdict::Consistent));
}

#[test]
fn the_first_wrong_output_is_found_in_any_step() {
    let scenario = Scenario::new();
    for local in 0..STEPS {
        for operator in [MATMUL, 1, 2, 4, SAMPLE, 7, 8] {
            let lied = scenario.run(|l, o, output| {
                if (l, o) != (local, operator) {
                    return output;
                }
                with_element(&output, 3, output.get(3).unwrap() ^ 1)
            });
            let expected = Verdict::Element { step: FIRST + local, operator };
            assert_eq!(verdict(&scenario, &lied), Ok(expected));
        }
    }
}

#[test]
fn wiring_faults_name_their_sink() {
    let scenario = Scenario::new();
    let wrong = TensorRoot(B256::repeat_byte(9));
    let mut lied = scenario.honest();
    lied.state_roots[3][1] = wrong;
    let state = Verdict::Wiring { step: FIRST + 2, sink: Sink::State, index: 1 };
    assert_eq!(verdict(&scenario, &lied), Ok(state));
    for (boundary, sink) in [(Boundary::ToNext, Sink::ToNext), (Boundary::ToPrevious, Sink::ToPrevious)] {
        let mut lied = scenario.honest();
        let entry = lied.logs.iter_mut().find(|(e, local, m, _)| (*e, *local, *m) == (boundary, 1, 1)).unwrap();
        entry.3 = wrong;
        assert_eq!(verdict(&scenario, &lied), Ok(Verdict::Wiring { step: FIRST + 1, sink, index: 1 }));
    }
}

#[test]
fn contradictions_are_found_before_anything_is_compared() {
    let scenario = Scenario::new();
    let honest = scenario.honest();
    let claimed = scenario.claim(&honest);
    let verdict = |answers: &[Answer]| verdict_of(&scenario, &honest, &claimed, answers);
    let wrong = B256::repeat_byte(9);
    let mut answers = claimed.answers.clone();
    answers[0] = restate(&answers[0], |s| s.preState = wrong);
    assert_eq!(verdict(&answers), Ok(Verdict::Contradiction { first: 0, second: 0 }));

    let mut answers = claimed.answers.clone();
    answers[2] = restate(&answers[2], |s| s.postState = wrong);
    assert_eq!(verdict(&answers), Ok(Verdict::Contradiction { first: 2, second: 2 }));

    let mut answers = claimed.answers.clone();
    answers[1] = restate(&answers[1], |s| s.preState = wrong);
    assert_eq!(verdict(&answers), Ok(Verdict::Contradiction { first: 0, second: 1 }));

    let mut answers = claimed.answers.clone();
    answers.push(restate(&answers[1], |s| s.trace = wrong));
    assert_eq!(verdict(&answers), Ok(Verdict::Contradiction { first: 1, second: 3 }));
}

#[test]
fn says_what_it_lacks() {
    let scenario = Scenario::new();
    let honest = scenario.honest();
    let claimed = scenario.claim(&honest);
    let verdict = |answers: &[Answer]| verdict_of(&scenario, &honest, &claimed, answers);
    assert_eq!(verdict(&[]), Err(Undecided::Statement(FIRST)));
    assert_eq!(verdict(&claimed.answers[..2]), Err(Undecided::Statement(FIRST + 2)));

    // Unsigned, or about another claim: it does not count.
    let mut answers = claimed.answers.clone();
    answers[1].signed.statement.trace = B256::ZERO;
    assert_eq!(verdict(&answers), Err(Undecided::Statement(FIRST + 1)));
    answers[1] = restate(&answers[1], |s| s.claimId = B256::ZERO);
    assert_eq!(verdict(&answers), Err(Undecided::Statement(FIRST + 1)));

    // A trace that differs and is not opened, or opened by another list.
    for list in [None, Some(vec![]), Some(honest.traces[0].clone())] {
        let mut answers = claimed.answers.clone();
        answers[1] = Answer { trace: list, ..restate(&answers[1], |s| s.trace = B256::repeat_byte(9)) };
        assert_eq!(verdict(&answers), Err(Undecided::Trace(FIRST + 1)));
    }

    let mut answers = claimed.answers.clone();
    let elsewhere = B256::repeat_byte(9);
    answers[1] = Answer { post_state: None, ..restate(&answers[1], |s| s.postState = elsewhere) };
    assert_eq!(verdict(&answers), Err(Undecided::State(FIRST + 1)));

    let mut other = scenario.honest();
    other.logs[0].3 = TensorRoot(elsewhere);
    let logs = scenario.claim(&other).logs;
    let mixed = Claimed { logs, ..scenario.claim(&honest) };
    assert_eq!(verdict_of(&scenario, &honest, &mixed, &mixed.answers), Err(Undecided::Logs));

    let mut strayed = scenario.honest();
    strayed.state_roots[0][0] = TensorRoot(elsewhere);
    assert_eq!(verdict_of(&scenario, &strayed, &claimed, &claimed.answers), Err(Undecided::Parent));
    let (case, program, claim, logs) = (&claimed.case, &scenario.program, &claimed.claim, &claimed.logs);
    for first_step in [FIRST - STEPS, FIRST + 1, FIRST + STEPS] {
        let own = &OwnInterval { first_step, ..honest.own() };
        let verdict = Audit { case, program, claim, logs, own }.verdict(&claimed.answers);
        assert_eq!(verdict, Err(Undecided::Own(first_step)));
    }
    let mut short = scenario.honest();
    short.traces.pop();
    assert_eq!(verdict_of(&scenario, &short, &claimed, &claimed.answers), Err(Undecided::Own(FIRST + 2)));
}

#[test]
fn differences_are_found_in_lists_and_in_tensors() {
    let root = |i: u8| TensorRoot(B256::repeat_byte(i));
    assert_eq!(first_difference(&[root(1), root(2)], &[root(1), root(2)]), None);
    assert_eq!(first_difference(&[root(1), root(2)], &[root(1), root(3)]), Some(1));
    assert_eq!(first_difference(&[root(1), root(2)], &[root(1)]), Some(1));
    assert_eq!(first_difference(&[], &[root(1)]), Some(0));

    for bits in [8, 16, 32, 64] {
        let own = crate::scenario::tensor(&ty(bits, 0, &[37]), 3, 100);
        let width = own.ty().width().bytes() as u64;
        let mut bytes = own.to_bytes();
        assert_eq!(first_element(&own, &bytes), None);
        assert_eq!(first_element(&own, &bytes[1..]), None, "not a tensor of the type");
        bytes.resize(bytes.len().next_multiple_of(256), 0);
        assert_eq!(first_element(&own, &bytes), None);
        bytes[(40 * width) as usize] = 1;
        assert_eq!(first_element(&own, &bytes), Some(40), "in the padding");
        bytes[(20 * width + width - 1) as usize] ^= 0x80;
        assert_eq!(first_element(&own, &bytes), Some(20));
    }
}
