//! Exact texts of disputes that were put together by hand. Accounts, roots and transactions stand in them by name.

use tensorlink_node::ports::chain::Fault;
use tensorlink_proof::challenge::{Subject, Turn};
use tensorlink_types::abi::{Claim, JobKind, Position};
use tensorlink_types::{Address, B256, ClaimId, Opcode, Source, TensorType};

use super::{explain, show};
use crate::amount::{Wei, parse_amount};
use crate::dispute::facts::{
    Challenge, Claimed, Clash, Clocks, Conviction, Cost, Deed, Dispute, Element, Found, Move, Named, Operand, Question,
    Sent, Side, Sink, Slash, Standing, Terms, Waiting, Wiring,
};

const WORKER: Address = Address::repeat_byte(0x11);
const AUDITOR: Address = Address::repeat_byte(0x22);
const USER: Address = Address::repeat_byte(0x33);
/// 2027-01-15 08:00:00 UTC.
const COMMITTED: u64 = 1_800_000_000;

fn root(n: u8) -> B256 {
    B256::repeat_byte(n)
}

fn wei(amount: &str) -> Wei {
    Wei(parse_amount(amount).unwrap())
}

/// A transaction some seconds after the claim's, a block each.
fn sent(n: u8, seconds: u64, sender: Address) -> Sent {
    let cost = Some(Cost { sender, gas: 100_000 + seconds, fee: wei("0.001") });
    Sent { transaction: root(n), block: 120 + seconds, time: COMMITTED + seconds, cost }
}

/// With short names for what is long.
fn short(text: &str) -> String {
    let mut text = text.to_owned();
    for (address, name) in [(WORKER, "WORKER"), (AUDITOR, "AUDITOR"), (USER, "USER")] {
        text = text.replace(&address.to_string(), name);
    }
    (0x40..0x70).fold(text, |text, n| text.replace(&root(n).to_string(), &format!("R{n:x}")))
}

/// Paragraphs of the explanation.
fn told(dispute: &Dispute) -> Vec<String> {
    short(&explain(dispute)).split("\n\n").map(str::to_owned).collect()
}

fn dispute() -> Dispute {
    let claim = Claim {
        job: 3,
        stage: 1,
        replica: 0,
        interval: 1,
        parentState: root(0x41),
        newState: root(0x42),
        io: root(0x43),
    };
    let terms = Terms {
        user: USER,
        kind: JobKind::Training,
        steps_per_interval: 20,
        challenge_window: 3_600,
        stake: wei("1000"),
    };
    let claimed = Claimed {
        id: ClaimId(root(0x40)),
        worker: WORKER,
        claim: Some(claim),
        terms: Some(terms),
        committed: Some(sent(0x51, 0, WORKER)),
        standing: Standing::Live,
    };
    Dispute { now: COMMITTED + 300, claimed, challenges: vec![], conviction: None, nameless: None }
}

fn convicted(fault: Fault, found: Option<Found>) -> Dispute {
    let mut dispute = dispute();
    dispute.claimed.standing = Standing::Void;
    let slash = Slash { amount: wei("1000"), bounty: wei("500"), harm: wei("300"), burned: wei("200") };
    dispute.conviction = Some(Conviction {
        claim: dispute.claimed.id,
        interval: Some(1),
        worker: WORKER,
        auditor: AUDITOR,
        fault,
        step: 30,
        operator: 17,
        element: 69,
        claimed: "-127".to_owned(),
        recomputed: "31".to_owned(),
        sent: sent(0x52, 100, AUDITOR),
        slash: Some(slash),
        found,
    });
    dispute
}

fn named(index: u32, name: &str) -> Named {
    Named { index, name: Some(name.to_owned()) }
}

fn element(exponent: i16) -> Element {
    let operand = |source, name: &str| Operand { source, name: Some(name.to_owned()) };
    Element {
        operator: named(17, "fc1.matmul[mb 0]"),
        opcode: Opcode::MatMul,
        operands: vec![operand(Source::Output(3), "x.cast[mb 0]"), operand(Source::State(2), "fc1.weight")],
        output: TensorType::new(8, exponent, &[16, 64]).unwrap(),
        place: Some(vec![1, 5]),
        real: (exponent != 0).then_some((-0.9921875, 0.2421875)),
    }
}

/// A question about the first levels of a tree of this many leaves.
fn asks(subject: Subject, (levels, height, count): (u8, u8, u64)) -> Question {
    let node = if subject == Subject::Steps { B256::ZERO } else { root(0x44) };
    let position = Position { subject: subject.to_number(), levels, height, count, node, ..Position::default() };
    Question { subject, position, step: (subject != Subject::Steps).then_some(30), operator: None }
}

fn step(deed: Deed, n: u8, seconds: u64, sender: Address, clocks: (u64, u64)) -> Move {
    Move { deed, sent: sent(n, seconds, sender), clocks: Clocks { challenger: clocks.0, worker: clocks.1 } }
}

/// A challenge that has asked for the states, got them, and asked for a statement.
fn challenge() -> Challenge {
    let states = asks(Subject::Steps, (5, 5, 20));
    let opened = Deed::Asked { question: states.clone(), deadline: COMMITTED + 43_220 };
    let answered = Deed::Answered { question: states, bytes: 640, deadline: COMMITTED + 43_270 };
    let asked = Deed::Asked { question: asks(Subject::Statement, (6, 0, 0)), deadline: COMMITTED + 43_250 };
    Challenge {
        number: 4,
        challenger: AUDITOR,
        worker: WORKER,
        bond: wei("100"),
        state: Turn::Answering,
        questions: 2,
        waiting: None,
        moves: vec![
            step(opened, 0x61, 20, AUDITOR, (43_200, 43_200)),
            step(answered, 0x62, 70, WORKER, (43_200, 43_150)),
            step(asked, 0x63, 100, AUDITOR, (43_170, 43_150)),
        ],
    }
}

const CLAIM: &str = "Worker WORKER trains stage 1, replica 0 of job 3. Its claim R40 is about interval 1, steps 20 to 39: they lead \
    from state R41 to state R42. It was committed in block 120, 2027-01-15 08:00:00 UTC, and could be challenged until 2027-01-15 \
    09:00:00 UTC. It is void now, as is every later claim of the lane, and is not paid.";

const MONEY: &str = "Who pays
  worker      WORKER loses 1000 SNO of its stake
  auditor     AUDITOR gets 500 SNO of it
  user        USER gets 300 SNO of it
  nobody      gets 200 SNO of it: they are burned
  gas         WORKER paid 0.001 ETH for 1 transaction
  gas         AUDITOR paid 0.001 ETH for 1 transaction";

const TRANSACTIONS: &str = "Transactions
  claim       R51, block 120, 2027-01-15 08:00:00 UTC, 100000 gas, 0.001 ETH by WORKER
  conviction  R52, block 220, 2027-01-15 08:01:40 UTC, 100100 gas, 0.001 ETH by AUDITOR";

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

#[test]
fn silence() {
    let mut dispute = convicted(Fault::Silence, None);
    let mut challenge = challenge();
    challenge.state = Turn::Won;
    challenge.moves.push(step(Deed::Won { silence: true }, 0x52, 100, AUDITOR, (43_170, 0)));
    dispute.challenges = vec![challenge];
    assert_eq!(
        told(&dispute),
        [
            "Worker WORKER was convicted: it did not answer a challenge in time.",
            CLAIM,
            "Challenge 4 asked the worker for a signed statement on step 30: the state before it, the state after it and the root of its \
             trace, with nodes of the trace. It had until 2027-01-15 20:00:50 UTC and gave nothing. Whoever made a claim can answer every \
             question about it from what it computed; who keeps silent until its clock has run out is convicted as if it had been \
             proven wrong.",
            "Challenge 4: AUDITOR made the worker answer on chain, 2 questions of at most 32, 1 answer. The last question was not \
             answered.",
            "Who pays
  worker      WORKER loses 1000 SNO of its stake
  auditor     AUDITOR gets 500 SNO of it
  user        USER gets 300 SNO of it
  nobody      gets 200 SNO of it: they are burned
  challenger  AUDITOR has its 100 SNO for challenge 4 back
  gas         WORKER paid 0.002 ETH for 2 transactions
  gas         AUDITOR paid 0.003 ETH for 3 transactions",
            "Transactions
  claim                           R51, block 120, 2027-01-15 08:00:00 UTC, 100000 gas, 0.001 ETH by WORKER
  opening of challenge 4          R61, block 140, 2027-01-15 08:00:20 UTC, 100020 gas, 0.001 ETH by AUDITOR
  answer of challenge 4           R62, block 190, 2027-01-15 08:01:10 UTC, 100070 gas, 0.001 ETH by WORKER
  question of challenge 4         R63, block 220, 2027-01-15 08:01:40 UTC, 100100 gas, 0.001 ETH by AUDITOR
  end of challenge 4, conviction  R52, block 220, 2027-01-15 08:01:40 UTC, 100100 gas, 0.001 ETH by AUDITOR",
        ]
    );
}

#[test]
fn a_challenge_that_a_proof_or_an_earlier_claim_ended() {
    let mut dispute = convicted(Fault::Element, Some(Found::Element(element(7))));
    let mut challenge = challenge();
    challenge.state = Turn::Won;
    challenge.moves.push(step(Deed::Won { silence: false }, 0x64, 200, AUDITOR, (43_170, 43_150)));
    dispute.challenges = vec![challenge];
    let begun = "Challenge 4: AUDITOR made the worker answer on chain, 2 questions of at most 32, 1 answer.";
    assert_eq!(told(&dispute)[5], format!("{begun} The conviction ended it."));
    let conviction = dispute.conviction.as_mut().unwrap();
    (conviction.claim, conviction.interval, conviction.step) = (ClaimId(root(0x4a)), Some(0), 9);
    let told = told(&dispute);
    assert_eq!(
        told[2],
        "The worker was convicted over an earlier claim of this lane, R4a, for interval 0, and a claim that builds on a wrong one is void \
         with it. About that earlier claim:"
    );
    assert!(
        told[3].starts_with("The wrong number is at step 9, the 10th of interval 0, in the output of"),
        "{}",
        told[3]
    );
    assert_eq!(told[6], format!("{begun} It ended because the claim is void."));
}

#[test]
fn a_lost_challenge() {
    let mut dispute = dispute();
    let mut challenge = challenge();
    challenge.state = Turn::Lost;
    challenge.moves.truncate(2);
    challenge.questions = 1;
    challenge.moves.push(step(Deed::Lost, 0x64, 200, WORKER, (0, 43_150)));
    dispute.challenges = vec![challenge];
    let told = told(&dispute);
    assert_eq!(told[0], "Challenge 4 is over, and worker WORKER was not convicted.");
    assert!(
        told[1].ends_with("and can be challenged until 2027-01-15 09:00:00 UTC. It is neither final nor void."),
        "{}",
        told[1]
    );
    assert_eq!(
        told[2..4],
        [
            "Challenge 4: AUDITOR made the worker answer on chain, 1 question of at most 32, 1 answer. Then it neither asked on nor proved \
             anything in time, so it lost. That proves nothing about the claim, and bars nobody from challenging it within its window.",
            "Who pays
  challenger  AUDITOR loses its 100 SNO for challenge 4
  worker      WORKER gets them
  gas         WORKER paid 0.003 ETH for 3 transactions
  gas         AUDITOR paid 0.001 ETH for 1 transaction",
        ]
    );
}

fn waiting(side: Side) -> Waiting {
    Waiting {
        side,
        deadline: COMMITTED + 43_250,
        seconds_left: 42_950,
        block: 270,
        blocks_left: 12,
        question: asks(Subject::Statement, (6, 0, 0)),
        void: false,
    }
}

fn under_way(waiting: Waiting) -> Dispute {
    let state = if waiting.side == Side::Worker { Turn::Answering } else { Turn::Asking };
    Dispute { challenges: vec![Challenge { state, waiting: Some(waiting), ..challenge() }], ..dispute() }
}

#[test]
fn a_challenge_under_way() {
    let told = |waiting| told(&under_way(waiting));
    let answering = told(waiting(Side::Worker));
    assert_eq!(answering[0], "Challenge 4 is under way: the worker's turn, 11 h 55 min and 12 blocks left.");
    assert_eq!(
        answering[2..5],
        [
            "Challenge 4: AUDITOR made the worker answer on chain, 2 questions of at most 32, 1 answer.",
            "It is the worker's turn. It is asked for a signed statement on step 30: the state before it, the state after it and the root \
             of its trace, with nodes of the trace. WORKER has 11 h 55 min left, until 2027-01-15 20:00:50 UTC, and in any case until block \
             270, 12 blocks from now. If it gives nothing, anybody can end the challenge: it is convicted of silence, loses 1000 SNO of \
             its stake, and AUDITOR has its bond of 100 SNO back and gets the bounty.",
            "Who pays
  worker      WORKER has 1000 SNO at risk
  challenger  AUDITOR put up 100 SNO for challenge 4; they are held until it ends
  gas         WORKER paid 0.002 ETH for 2 transactions
  gas         AUDITOR paid 0.002 ETH for 2 transactions",
        ]
    );
    let late = told(Waiting { seconds_left: 0, blocks_left: 0, ..waiting(Side::Worker) });
    assert_eq!(late[0], "Challenge 4 is under way: the worker is too late, and anybody can end it.");
    assert!(
        late[3].starts_with("The worker is too late. It was asked for a signed statement on step 30"),
        "{}",
        late[3]
    );
    let asking = told(waiting(Side::Challenger));
    assert!(asking[3].ends_with("its bond of 100 SNO goes to the worker, and the claim stands."), "{}", asking[3]);
    let void = told(Waiting { void: true, ..waiting(Side::Worker) });
    assert_eq!(
        void[3],
        "The claim is void already, so there is nothing left to ask. Anybody can end the challenge; AUDITOR then has its bond of 100 SNO \
         back."
    );
}

#[test]
fn everything_that_can_be_asked_for_has_words() {
    let named = Named { index: 17, name: Some("fc1.matmul[mb 0]".to_owned()) };
    let output = Question { operator: Some(named), ..asks(Subject::Output, (2, 2, 4)) };
    for (asked, words) in [
        (
            asks(Subject::Steps, (5, 5, 20)),
            "the root of the list of states after each step, and the states after the interval's steps 1 to 20",
        ),
        (asks(Subject::Trace, (6, 10, 1_000)), "64 nodes of the trace of step 30, over operators 0 to 999"),
        (asks(Subject::Trace, (3, 3, 7)), "the roots of the outputs of operators 0 to 6 in step 30"),
        (asks(Subject::State, (0, 0, 1)), "the roots of the state's tensors 0 after step 30"),
        (asks(Subject::Logs, (0, 0, 0)), "the roots of its logs of all tensors received and sent"),
        (asks(Subject::Log, (2, 3, 8)), "4 nodes of a log of tensors received or sent, over entries 0 to 7"),
        (
            output,
            "the output of operator 17 `fc1.matmul[mb 0]` in step 30: its data root and leaves 0 to 3, of 256 bytes each",
        ),
    ] {
        assert_eq!(super::question::question(&asked), words);
    }
}

#[test]
fn all_of_a_challenge_is_shown() {
    let mut dispute = under_way(waiting(Side::Worker));
    dispute.challenges[0].moves.truncate(2);
    assert_eq!(
        short(&show::show(&dispute)),
        "claim       R40
worker      WORKER
lane        job 3 stage 1 replica 0, interval 1, steps 20 to 39
from state  R41
to state    R42
io          R43
committed   R51, block 120, 2027-01-15 08:00:00 UTC, 100000 gas, 0.001 ETH by WORKER
challenged  until 2027-01-15 09:00:00 UTC at the latest
stands      live

challenge   4, open
challenger  AUDITOR, bond 100 SNO
questions   2 of 32
turn        the worker's turn, 11 h 55 min and 12 blocks left
until       2027-01-15 20:00:50 UTC and block 270
  1  the challenger asks for the root of the list of states after each step, and the states after the interval's steps 1 to 20
     R61, block 140, 2027-01-15 08:00:20 UTC, 100020 gas, 0.001 ETH by AUDITOR
     clocks: challenger 12 h, worker 12 h; the worker has until 2027-01-15 20:00:20 UTC
  2  the worker gives the root of the list of states after each step, and the states after the interval's steps 1 to 20; 640 bytes
     R62, block 190, 2027-01-15 08:01:10 UTC, 100070 gas, 0.001 ETH by WORKER
     clocks: challenger 12 h, worker 11 h 59 min; the challenger has until 2027-01-15 20:01:10 UTC

Who pays
  worker      WORKER has 1000 SNO at risk
  challenger  AUDITOR put up 100 SNO for challenge 4; they are held until it ends
  gas         WORKER paid 0.002 ETH for 2 transactions
  gas         AUDITOR paid 0.001 ETH for 1 transaction"
    );
}
