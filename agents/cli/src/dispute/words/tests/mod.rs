//! Exact texts of disputes that were put together by hand. Accounts, roots and transactions stand in them by name.

mod challenges;
mod faults;
mod rows;

use tensorlink_node::ports::chain::Fault;
use tensorlink_proof::challenge::{Subject, Turn};
use tensorlink_types::abi::{Claim, JobKind, Position};
use tensorlink_types::{Address, B256, ClaimId, Opcode, Source, TensorType};

use super::explain;
use crate::amount::{Wei, parse_amount};
use crate::dispute::facts::{
    Challenge, Claimed, Clash, Clocks, Conviction, Cost, Deed, Dispute, Element, Equivocation, Found, Move, Named,
    Operand, Question, Sent, Side, Sink, Slash, Standing, Terms, Waiting, Wiring,
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
    let (quarter, harm) = (wei("250"), wei("300"));
    let slash = Slash { amount: wei("1000"), bounty: quarter, shared: quarter, harm, burned: wei("200") };
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
    let answered = Deed::Answered { question: states, bytes: 640, charged: Some(90_000), deadline: COMMITTED + 43_270 };
    let asked = Deed::Asked { question: asks(Subject::Statement, (6, 0, 0)), deadline: COMMITTED + 43_250 };
    Challenge {
        number: 4,
        challenger: AUDITOR,
        worker: WORKER,
        bond: wei("100"),
        deposit: wei("0.5"),
        owed: wei("0.125"),
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
  auditor     AUDITOR gets 250 SNO of it
  auditors    that had sealed answers share 250 SNO of it
  user        USER gets 300 SNO of it
  nobody      gets 200 SNO of it: they are burned
  gas         WORKER paid 0.001 ETH for 1 transaction
  gas         AUDITOR paid 0.001 ETH for 1 transaction";

const TRANSACTIONS: &str = "Transactions
  claim       R51, block 120, 2027-01-15 08:00:00 UTC, 100000 gas, 0.001 ETH by WORKER
  conviction  R52, block 220, 2027-01-15 08:01:40 UTC, 100100 gas, 0.001 ETH by AUDITOR";
