//! Convictions without a challenge.

use super::*;

#[test]
fn a_wrong_element() {
    let dispute = convicted(Fault::Element, Some(Found::Element(element(7))));
    assert_eq!(
        told(&dispute),
        [
            "Worker WORKER was convicted: it got a number wrong.",
            CLAIM,
            "The wrong number is at step 30, the 11th of interval 1, in the output of operator 17 `fc1.matmul[mb 0]` (MatMul). It \
             computes from the output of operator 3 `x.cast[mb 0]` and tensor 2 `fc1.weight` of the state before the step.",
            "Element 69 stands at [1, 5] of shape [16, 64]:
  claimed   -127, which stands for -0.9921875
  expected  31, which stands for 0.2421875
An integer m of this tensor stands for m · 2^-7.",
            "The claimed one is in the trace that the worker signed. The expected one the contract computed itself, from what the worker \
             signed or committed to, and from the job's own program and constants.",
            MONEY,
            TRANSACTIONS,
        ]
    );
}

#[test]
fn a_wrong_element_without_names_in_the_padding_of_integers() {
    let nameless = Named { index: 17, name: None };
    let operands = vec![Operand { source: Source::FromPrevious(2), name: None }];
    let found = Element { operator: nameless, operands, place: None, ..element(0) };
    let mut dispute = convicted(Fault::Element, Some(Found::Element(found)));
    dispute.nameless = Some("nobody has the files".to_owned());
    assert_eq!(
        told(&dispute)[2..4],
        [
            "The wrong number is at step 30, the 11th of interval 1, in the output of operator 17 (MatMul). It computes from what the \
             stage before sent for micro-batch 2. What the model calls it could not be found out: nobody has the files.",
            "Element 69 lies behind the 1024 elements of shape [16, 64], where only zeros may fill the last 256 bytes:
  claimed   -127
  expected  31",
        ]
    );
}

#[test]
fn a_wrong_element_whose_proof_cannot_be_read() {
    assert_eq!(
        told(&convicted(Fault::Element, None))[2],
        "The wrong number is at step 30, the 11th of interval 1: element 69 of the output of operator 17. The worker's signed trace holds \
         -127, the contract computed 31. What the operator does cannot be read here: another contract brought the proof, or the \
         endpoint does not remember the transaction."
    );
}

#[test]
fn a_wiring_that_was_not_kept_to() {
    let wiring = |sink, place| Wiring {
        operator: named(17, "fc1.weight.update"),
        sink,
        place,
        traced: root(0x45),
        committed: root(0x46),
    };
    let to_state = convicted(Fault::Wiring, Some(Found::Wiring(wiring(Sink::State, named(2, "fc1.weight")))));
    let meaning = "Each number may be right. But what a step computes has to be what it leaves in its state and what it sends on: else a \
                   worker could compute one thing for the auditors and go on with another.";
    assert_eq!(
        told(&to_state)[..4],
        [
            "Worker WORKER was convicted: what it passed on is not what it computed.",
            CLAIM,
            "The worker's own commitments do not agree at step 30, the 11th of interval 1. By the program the output of operator 17 \
             `fc1.weight.update` is tensor 2 `fc1.weight` of the state. The trace that the worker signed holds tensor R45 for it; the \
             state after the step that it stated holds tensor R46 in its place.",
            meaning,
        ]
    );
    let onward = convicted(Fault::Wiring, Some(Found::Wiring(wiring(Sink::ToNext, Named { index: 1, name: None }))));
    assert_eq!(
        told(&onward)[2],
        "The worker's own commitments do not agree at step 30, the 11th of interval 1. By the program the output of operator 17 \
         `fc1.weight.update` is what goes to the next stage for micro-batch 1. The trace that the worker signed holds tensor R45 for it; \
         its log of tensors sent holds tensor R46 in its place."
    );
}

#[test]
fn a_contradiction() {
    let clash = Clash::Gap { ended: root(0x47), started: root(0x48) };
    assert_eq!(
        told(&convicted(Fault::Contradiction, Some(Found::Contradiction(clash))))[..3],
        [
            "Worker WORKER was convicted: it contradicted itself.",
            CLAIM,
            "The worker's signed words do not fit together at step 30, the 11th of interval 1: it signed that this step ended in state R47, \
             and that the next started from R48. Who signs only what it computed can never do that. No number had to be computed to see \
             it.",
        ]
    );
}

#[test]
fn an_equivocation() {
    let found = Equivocation { stage: 2, signed: root(0x47), claimed: root(0x48) };
    assert_eq!(
        told(&convicted(Fault::Equivocation, Some(Found::Equivocation(found))))[..3],
        [
            "Worker WORKER was convicted: it told its neighbour one thing and the chain another.",
            CLAIM,
            "The worker signed to its neighbour at stage 2 that the tensors it sent there in this interval are those of list R47; its claim \
             says that they are those of list R48. Who signs what it sent can never do that. The bounty goes to the neighbour's worker, \
             who was misled.",
        ]
    );
}

#[test]
fn a_receipt_of_two_lengths() {
    let clash = Clash::Lengths { first: 12, second: 13 };
    let mut dispute = convicted(Fault::Contradiction, Some(Found::Contradiction(clash)));
    let claimed = &mut dispute.claimed;
    (claimed.standing, claimed.committed) = (Standing::Receipt, None);
    claimed.terms.as_mut().unwrap().kind = JobKind::Serving;
    let conviction = dispute.conviction.as_mut().unwrap();
    (conviction.step, conviction.slash) = (12, None);
    assert_eq!(
        told(&dispute)[1..],
        [
            "Worker WORKER serves stage 1, replica 0 of job 3. Its receipt R40 is about text 1: it binds the worker to what it received \
             for that text and to what it gave (io R43). A receipt can be proven wrong until the job is settled.",
            "The worker's signed words do not fit together in the text of 12 tokens: it signed that the same text has 12 tokens, and that \
             it has 13. Who signs only what it computed can never do that. No number had to be computed to see it.",
            "Who pays
  worker      WORKER loses nothing more: the stake of this lane was taken before
  gas         AUDITOR paid 0.001 ETH for 1 transaction",
            "Transactions
  conviction  R52, block 220, 2027-01-15 08:01:40 UTC, 100100 gas, 0.001 ETH by AUDITOR",
        ]
    );
}
