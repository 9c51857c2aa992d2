//! Challenges: under way, won, lost.

use super::*;
use crate::dispute::words::{question, show};

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
  auditor     AUDITOR gets 250 SNO of it
  auditors    that had sealed answers share 250 SNO of it
  user        USER gets 300 SNO of it
  nobody      gets 200 SNO of it: they are burned
  challenger  AUDITOR has its 100 SNO for challenge 4 back
  challenger  can collect the 0.5 ETH put up for the worker's gas
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
             anything in time, or did not pay for an answer, so it lost. That proves nothing about the claim, and bars nobody from \
             challenging it within its window.",
            "Who pays
  challenger  AUDITOR loses its 100 SNO for challenge 4
  worker      WORKER gets them, and 0.125 ETH for its gas
  gas         WORKER paid 0.003 ETH for 3 transactions
  gas         AUDITOR paid 0.001 ETH for 1 transaction",
        ]
    );
}

#[test]
fn a_deposit_that_is_used_up() {
    let mut dispute = dispute();
    let mut challenge = challenge();
    challenge.state = Turn::Spent;
    challenge.moves.truncate(2);
    (challenge.questions, challenge.owed) = (1, challenge.deposit);
    dispute.challenges = vec![challenge];
    let told = told(&dispute).join("\n");
    assert!(told.contains("The last answer cost its worker more than what was put up for its gas"), "{told}");
    assert!(told.contains("0.5 ETH are held for the worker's gas, of which 0.5 are used up"), "{told}");
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
  challenger  0.5 ETH are held for the worker's gas, of which 0.125 are used up
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
    let guided = |asked: Question, guided| Question { position: Position { guided, ..asked.position }, ..asked };
    for (asked, words) in [
        (
            asks(Subject::Steps, (5, 5, 20)),
            "the root of the list of states after each step, and the states after the interval's steps 1 to 20",
        ),
        (asks(Subject::Trace, (6, 10, 1_000)), "64 nodes of the trace of step 30, over operators 0 to 999"),
        (asks(Subject::Trace, (3, 3, 7)), "the roots of the outputs of operators 0 to 6 in step 30"),
        (asks(Subject::State, (0, 0, 1)), "the roots of the state's tensors 0 after step 30"),
        (
            asks(Subject::Logs, (0, 0, 0)),
            "the roots of its logs of all tensors received and sent, with the senders' signatures",
        ),
        (asks(Subject::Log, (2, 3, 8)), "4 nodes of a log of tensors received or sent, over entries 0 to 7"),
        (
            output,
            "the output of operator 17 `fc1.matmul[mb 0]` in step 30: its data root and leaves 0 to 3, of 256 bytes each",
        ),
        (
            guided(asks(Subject::Steps, (4, 10, 1_000)), 6),
            "the root of the list of states after each step, and 16 nodes (where hints lead) over the interval's steps 1 to 1000",
        ),
        (
            guided(asks(Subject::Trace, (2, 12, 3_000)), 8),
            "4 nodes (where hints lead) of the trace of step 30, over operators 0 to 2999",
        ),
        (
            guided(asks(Subject::Output, (0, 5, 30)), 5),
            "the output of one operator in step 30: its data root and 1 node (where hints lead)",
        ),
    ] {
        assert_eq!(question::question(&asked), words);
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
deposit     0.5 ETH, of which answers have cost 0.125
questions   2 of 32
turn        the worker's turn, 11 h 55 min and 12 blocks left
until       2027-01-15 20:00:50 UTC and block 270
  1  the challenger asks for the root of the list of states after each step, and the states after the interval's steps 1 to 20
     R61, block 140, 2027-01-15 08:00:20 UTC, 100020 gas, 0.001 ETH by AUDITOR
     clocks: challenger 12 h, worker 12 h; the worker has until 2027-01-15 20:00:20 UTC
  2  the worker gives the root of the list of states after each step, and the states after the interval's steps 1 to 20; 640 bytes; 90000 gas are charged
     R62, block 190, 2027-01-15 08:01:10 UTC, 100070 gas, 0.001 ETH by WORKER
     clocks: challenger 12 h, worker 11 h 59 min; the challenger has until 2027-01-15 20:01:10 UTC

Who pays
  worker      WORKER has 1000 SNO at risk
  challenger  AUDITOR put up 100 SNO for challenge 4; they are held until it ends
  challenger  0.5 ETH are held for the worker's gas, of which 0.125 are used up
  gas         WORKER paid 0.002 ETH for 2 transactions
  gas         AUDITOR paid 0.001 ETH for 1 transaction"
    );
}
