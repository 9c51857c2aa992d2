//! A challenge of three moves and two convictions, told by events.

use tensorlink_node::ports::chain::Fault;
use tensorlink_proof::challenge::Turn;
use tensorlink_types::abi::{self, DemandKind, Facts, Offer, Position};

use super::*;
use crate::dispute::aside::{Data, Outcome};
use crate::dispute::facts::Waiting;

const USER: Address = Address::repeat_byte(1);
const WORKER: Address = Address::repeat_byte(2);
const AUDITOR: Address = Address::repeat_byte(3);
const LANE: Lane = Lane { job: JobId(1), stage: 1, replica: 0 };

fn parameters() -> Parameters {
    Parameters {
        dispute_clock: 100,
        move_grace: 10,
        move_blocks: 5,
        dispute_bond: 7,
        bounty_bps: 5_000,
        ..Parameters::default()
    }
}

fn id(n: u8) -> ClaimId {
    ClaimId(B256::repeat_byte(n))
}

fn claim(interval: u32) -> Claim {
    let (parent, new, io) = (B256::ZERO, B256::repeat_byte(9), B256::ZERO);
    Claim { job: 1, stage: 1, replica: 0, interval, parentState: parent, newState: new, io }
}

/// Events a second and a block each, the first at time 1,000; those of a group in one transaction.
fn told(groups: Vec<Vec<Event>>) -> Vec<EventAt> {
    let mut all = Vec::new();
    for (block, events) in (1..).zip(groups) {
        for (log_index, event) in (0..).zip(events) {
            let transaction = B256::with_last_byte(block as u8);
            all.push(EventAt { block, block_hash: B256::ZERO, timestamp: 999 + block, log_index, transaction, event });
        }
    }
    all
}

fn begun() -> Vec<Vec<Event>> {
    let terms = JobTerms {
        kind: 0,
        token: Address::ZERO,
        stages: 2,
        replicas: 1,
        intervals: 4,
        stepsPerInterval: 10,
        acceptBy: Default::default(),
        duration: Default::default(),
        challengeWindow: 500,
        workerStake: 1_000,
        continues: 0,
        firstStep: 0,
        programs: vec![],
        initialStates: vec![],
        manifest: Default::default(),
    };
    let offer = |stage, worker| Offer { job: 1, stage, worker, pricePerInterval: 1, ..Offer::default() };
    let committed = |n: u8, interval| Event::ClaimCommitted { id: id(n), claim: claim(interval), committed_at: 0 };
    vec![
        vec![Event::JobPosted { job: JobId(1), user: USER, deposit: U256::ZERO, terms }],
        vec![Event::JobAccepted { job: JobId(1), offers: vec![offer(0, USER), offer(1, WORKER)] }],
        vec![committed(10, 0)],
        vec![committed(11, 1)],
        vec![committed(12, 2)],
    ]
}

fn asked(subject: Subject, deadline: u64, position: Position) -> Told {
    let position = Position { subject: subject.to_number(), ..position };
    Told::Asked { deadline, position, hints: Default::default() }
}

/// On the claim of interval 1: a row of the trace is given, and its third output asked for.
fn game() -> Vec<Vec<Event>> {
    let challenge = U256::from(1);
    let said = |told| Event::Challenge { challenge, told };
    let row = Position { levels: 2, height: 2, count: 4, node: B256::repeat_byte(20), ..Position::default() };
    let output = Position { levels: 1, height: 1, count: 2, node: B256::repeat_byte(33), ..Position::default() };
    let facts = Facts { step: 14, ..Facts::default() };
    let data: Vec<u8> = [31u8, 32, 33, 31].iter().flat_map(|n| [*n; 32]).collect();
    let opened = Event::ChallengeOpened { challenge, id: id(11), claim: claim(1), challenger: AUDITOR, worker: WORKER };
    let answer = Position { subject: Subject::Trace.to_number(), ..row };
    vec![
        vec![opened, said(Told::Established { facts }), said(asked(Subject::Trace, 1_105, row))],
        vec![said(Told::Answered {
            deadline: 1_106,
            row: Row { position: answer, siblings: vec![], data: data.into() },
        })],
        vec![said(asked(Subject::Output, 1_106, output))],
    ]
}

fn read(groups: Vec<Vec<Event>>) -> Docket {
    Docket::read(&told(groups), parameters(), (9, 1_020))
}

fn convicted(claim: ClaimId, fault: Fault) -> Event {
    let (claimed, recomputed) = ("1".to_owned(), "2".to_owned());
    Event::Convicted {
        lane: Lane { job: JobId(1), stage: 0, replica: 0 },
        claim,
        worker: WORKER,
        auditor: AUDITOR,
        fault,
        step: 4,
        operator: 5,
        element: 6,
        claimed,
        recomputed,
    }
}

#[test]
fn a_challenge_has_moves_clocks_and_an_end() {
    let docket = read([begun(), game()].concat());
    let (about, challenge) = docket.challenges().next().unwrap();
    assert_eq!((about, challenge.number, challenge.state, challenge.questions), (id(11), 1, Turn::Answering, 2));
    let clocks: Vec<(u64, u64)> = challenge.moves.iter().map(|m| (m.clocks.challenger, m.clocks.worker)).collect();
    assert_eq!(clocks, [(100, 100), (100, 99), (99, 99)]);
    // Asked in block 8, at 1,007; now it is block 9, at 1,020.
    let Waiting { side, seconds_left, block, blocks_left, question, void, .. } = challenge.waiting.unwrap();
    assert_eq!((side, seconds_left, block, blocks_left, void), (Side::Worker, 86, 13, 4, false));
    assert_eq!((question.subject, question.step), (Subject::Output, Some(14)));
    assert_eq!(question.operator, Some(Named { index: 2, name: None }), "the place of its root in the trace");

    let lost = Event::Challenge { challenge: U256::from(1), told: Told::Lost };
    let over = read([begun(), game(), vec![vec![lost]]].concat());
    let (_, challenge) = over.challenges().next().unwrap();
    assert_eq!((challenge.state, challenge.waiting, challenge.moves.len()), (Turn::Lost, None, 4));
}

#[test]
fn a_challenge_shows_what_was_put_up_and_what_answers_cost() {
    let said = |told| Event::Challenge { challenge: U256::from(1), told };
    let mut groups = game();
    groups[0].push(said(Told::Funded { amount: U256::from(900) }));
    groups[1].push(said(Told::Charged { gas: 90, owed: U256::from(100), spent: false }));
    groups.push(vec![said(Told::Funded { amount: U256::from(50) })]);
    let opened = |n| Event::ChallengeOpened {
        challenge: U256::from(n),
        id: id(11),
        claim: claim(1),
        challenger: AUDITOR,
        worker: WORKER,
    };
    groups.extend([vec![opened(2)], vec![opened(3)]]);
    let docket = read([begun(), groups].concat());
    let all: Vec<Challenge> = docket.challenges().map(|(_, challenge)| challenge).collect();
    assert_eq!((all[0].deposit, all[0].owed), (Wei(U256::from(950)), Wei(U256::from(100))));
    let charged = all[0].moves.iter().find_map(|step| match step.deed {
        Deed::Answered { charged, .. } => Some(charged),
        _ => None,
    });
    assert_eq!(charged, Some(Some(90)));
    // Further challenges of the claim cost more, up to the bounty.
    let bounty = parameters().bounty(docket.claimed(id(11)).unwrap().terms.unwrap().stake.0.to());
    let bonds = [7, 14, 28].map(|bond| Wei(U256::from(bond).min(bounty).max(U256::from(7))));
    assert_eq!(all.iter().map(|challenge| challenge.bond).collect::<Vec<_>>(), bonds);
}

#[test]
fn a_conviction_takes_its_own_slash_and_voids_what_comes_after() {
    let slashed = |amount: u64| {
        let wei = U256::from(amount);
        Event::Slashed {
            account: WORKER,
            amount: wei,
            bounty: wei,
            shared: U256::ZERO,
            harm: U256::ZERO,
            burned: U256::ZERO,
        }
    };
    let void = Event::ClaimsVoided { lane: LANE, from: 1 };
    let both = vec![convicted(id(11), Fault::Element), void, slashed(8), convicted(id(77), Fault::Contradiction)];
    let mut docket = read([begun(), game(), vec![both, vec![slashed(9)]]].concat());
    let amounts: Vec<Option<Wei>> = docket.convictions().iter().map(|c| c.slash.map(|slash| slash.amount)).collect();
    assert_eq!(amounts, [Some(Wei(U256::from(8))), None]);
    assert_eq!(docket.conviction(id(12)).map(|c| c.claim), Some(id(11)), "an earlier claim of the lane");
    assert!(docket.conviction(id(10)).is_none());
    let standing = |n| docket.claimed(id(n)).map(|claimed| claimed.standing);
    assert_eq!(
        [standing(10), standing(11), standing(12)],
        [Some(Standing::Live), Some(Standing::Void), Some(Standing::Void)]
    );
    assert!(docket.challenges().next().unwrap().1.waiting.unwrap().void, "nothing is left to play for");
    assert_eq!(docket.claim_of(LANE, 2), Some(id(12)));

    // Who does not show what it holds makes no claim void.
    let withheld = read([begun(), vec![vec![convicted(id(11), Fault::Withholding)]]].concat());
    assert_eq!((withheld.conviction(id(11)).is_some(), withheld.conviction(id(12)).is_some()), (true, false));

    // A receipt, of which only its proof tells.
    assert_eq!(docket.unknown(), [B256::with_last_byte(9)]);
    assert!(docket.claimed(id(77)).unwrap().claim.is_none());
    docket.adopt(id(77), claim(5));
    let receipt = docket.claimed(id(77)).unwrap();
    assert_eq!((receipt.standing, receipt.worker, docket.unknown().len()), (Standing::Receipt, WORKER, 0));
    assert_eq!(docket.claimed(id(99)), None);
}

/// Where replicas differ, their claims can be challenged twice as long.
#[test]
fn a_difference_doubles_the_window() {
    let alike = read(begun());
    let window = |docket: &Docket, n: u8| docket.claimed(id(n)).unwrap().terms.unwrap().challenge_window;
    let differ = Event::ReplicasDiffer { claim: id(11), job: JobId(1), stage: 1, interval: 1 };
    let unlike = read(begun().into_iter().chain([vec![differ]]).collect());
    assert_eq!(window(&unlike, 11), 2 * window(&alike, 11));
    assert_eq!(window(&unlike, 10), window(&alike, 10), "of that interval only");
}

#[test]
fn demands_end_as_the_chain_says_and_penalties_are_kept() {
    let demanded = |number: u64, kind: DemandKind, claim: B256| Event::Demanded {
        id: U256::from(number),
        demand: Box::new(abi::Demand {
            kind: kind as u8,
            claimId: claim,
            job: 1,
            stage: 1,
            interval: 2,
            holder: WORKER,
            demander: AUDITOR,
            deadline: U256::from(1_100).to(),
            untilBlock: U256::from(14).to(),
            ..Default::default()
        }),
    };
    let ended = |number: u64, shown: bool, convicted| Event::DemandEnded {
        id: U256::from(number),
        shown: shown.then(|| (0, Default::default())),
        convicted,
    };
    let zero = B256::ZERO;
    let penalised = Event::AuditorPenalised { claim: id(12), auditor: AUDITOR, accuser: WORKER, amount: U256::from(6) };
    // No version of ours has this kind.
    let mut strange = demanded(9, DemandKind::State, zero);
    if let Event::Demanded { demand, .. } = &mut strange {
        demand.kind = 77;
    }
    let events = vec![
        vec![demanded(1, DemandKind::State, id(12).0), demanded(2, DemandKind::Files, zero), strange],
        vec![demanded(3, DemandKind::SentToNext, id(12).0), demanded(4, DemandKind::SentToPrevious, id(12).0)],
        vec![ended(2, false, true), ended(3, true, false), ended(9, true, false)],
        vec![ended(4, false, false), penalised],
    ];
    let docket = read([begun(), events].concat());
    let demands: Vec<_> = docket.aside().demands().collect();
    let told: Vec<_> = demands.iter().map(|demand| (demand.number, demand.of, demand.claim, demand.outcome)).collect();
    let about = Some(id(12));
    assert_eq!(
        told,
        [
            (1, Data::State, about, Outcome::Open { deadline: 1_100, block: 14 }),
            (2, Data::Files, None, Outcome::NotShown),
            (3, Data::SentToNext, about, Outcome::Shown),
            (4, Data::SentToPrevious, about, Outcome::Lapsed),
        ]
    );
    assert_eq!((demands[0].lane, demands[0].interval, demands[1].interval), (LANE, Some(2), None));
    assert_eq!(demands[3].ended.as_ref().map(|sent| sent.block), Some(9));
    assert_eq!((docket.worker(demands[0].lane), docket.now()), (Some(WORKER), (9, 1_020)));
    let penalty = &docket.aside().penalties()[0];
    assert_eq!((penalty.claim, penalty.auditor, penalty.amount), (id(12), AUDITOR, Wei(U256::from(6))));
    assert!(docket.challenges().next().is_none() && docket.convictions().is_empty());
}
