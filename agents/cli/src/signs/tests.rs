use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_types::abi::{Claim, JobKind, Offer, Position};
use tensorlink_types::{B256, Bytes, ClaimId, JobKey};

use super::*;

const JOB: JobId = JobId(4);
const WINDOW: u64 = 100;

fn view(replicas: u16) -> JobView {
    JobView {
        id: JOB,
        kind: JobKind::Training,
        user: Address::ZERO,
        state: JobState::Running,
        escrow: 0,
        audit_budget: 0,
        token: Address::ZERO,
        stages: 1,
        replicas,
        intervals: 3,
        steps_per_interval: 5,
        accept_by: 50,
        duration: 9_000,
        started_at: 20,
        deadline: 9_020,
        challenge_window: 10,
        worker_stake: 0,
        lineage: JobKey(B256::ZERO).into(),
        terms: B256::ZERO,
    }
}

const fn lane(replica: u16) -> Lane {
    Lane { job: JOB, stage: 0, replica }
}

fn worker(replica: u16) -> Address {
    Address::with_last_byte(replica as u8 + 1)
}

fn claim(replica: u16, interval: u32) -> Claim {
    Claim { job: JOB.0, stage: 0, replica, interval, ..Claim::default() }
}

fn at(timestamp: u64, event: Event) -> EventAt {
    EventAt { block: timestamp, block_hash: B256::ZERO, timestamp, log_index: 0, transaction: B256::ZERO, event }
}

fn committed(replica: u16, interval: u32, committed_at: u64) -> EventAt {
    let event = Event::ClaimCommitted { id: ClaimId(B256::ZERO), claim: claim(replica, interval), committed_at };
    at(committed_at, event)
}

fn sealed(replica: u16, interval: u32, sealed_at: u64) -> EventAt {
    at(sealed_at, Event::ClaimSealed { lane: lane(replica), interval, seal: B256::ZERO, sealed_at })
}

/// A job of one stage whose replicas were accepted at 10.
fn accepted(replicas: u16) -> Signs {
    let offer = |replica| Offer { job: JOB.0, replica, worker: worker(replica), ..Offer::default() };
    let mut signs = Signs::new(JOB);
    signs.take_in(&at(10, Event::JobAccepted { job: JOB, offers: (0..replicas).map(offer).collect() }));
    signs
}

#[test]
fn each_lane_is_heard_of_by_what_it_does_on_chain() {
    let mut signs = accepted(2);
    assert_eq!(signs.last(lane(0)), Some(Sign { what: Kind::Accepted, at: 10 }));
    assert_eq!(signs.take_in(&sealed(1, 0, 30)), Some(lane(1)));
    assert_eq!(signs.take_in(&committed(1, 0, 40)), Some(lane(1)));
    assert_eq!(signs.last(lane(1)), Some(Sign { what: Kind::Claimed, at: 40 }));
    assert_eq!(signs.last(lane(0)), Some(Sign { what: Kind::Accepted, at: 10 }), "another lane");
    let mut other = committed(0, 0, 50);
    if let Event::ClaimCommitted { claim, .. } = &mut other.event {
        claim.job = 5;
    }
    assert_eq!(signs.take_in(&other), None, "another job");
    // Whoever finalises is not the worker.
    assert_eq!(signs.take_in(&at(60, Event::ClaimsFinalized { lane: lane(0), from: 0, to: 1 })), None);
}

#[test]
fn one_replica_has_until_the_deadline_and_its_user_need_not_wait() {
    let mut signs = accepted(1);
    let due = signs.due(&view(1), lane(0), WINDOW).unwrap();
    assert_eq!((due.what, due.by), (Duty::Claim, 9_020));
    assert!(due.then.contains("`tensorlink job cancel 4`") && due.then.contains("`tensorlink job resume 4"));
    for interval in 0..3 {
        assert!(signs.due(&view(1), lane(0), WINDOW).is_some());
        signs.take_in(&committed(0, interval, 100));
    }
    assert_eq!(signs.due(&view(1), lane(0), WINDOW), None, "all claims are made");
}

/// The same as `Checkpoints._sealsEnd`.
#[test]
fn a_replica_must_seal_within_the_window_of_the_first_seal_and_of_the_reveal_before() {
    let mut signs = accepted(2);
    let due = |signs: &Signs, replica| signs.due(&view(2), lane(replica), WINDOW).unwrap();
    assert_eq!(due(&signs, 0).what, Duty::Claim, "nobody has sealed yet");
    signs.take_in(&sealed(0, 0, 30));
    assert_eq!((due(&signs, 1).what, due(&signs, 1).by), (Duty::Seal, 130));
    assert!(due(&signs, 1).then.contains("the other replicas go on"));
    signs.take_in(&sealed(1, 0, 35));
    signs.take_in(&sealed(0, 1, 40));
    assert_eq!(due(&signs, 1).what, Duty::Claim, "the interval before is not revealed");
    signs.take_in(&committed(0, 0, 60));
    signs.take_in(&committed(1, 0, 70));
    assert_eq!((due(&signs, 1).what, due(&signs, 1).by), (Duty::Seal, 160), "from the first reveal on");
}

#[test]
fn what_was_sealed_is_revealed_within_the_window_of_the_jobs_end() {
    let mut signs = accepted(2);
    signs.take_in(&sealed(0, 0, 30));
    signs.take_in(&at(50, Event::JobClosing { job: JOB, convicted: false }));
    let closing = JobView { state: JobState::Closing, ..view(2) };
    let due = signs.due(&closing, lane(0), WINDOW).unwrap();
    assert_eq!((due.what, due.by), (Duty::Reveal, 150));
    assert_eq!(signs.due(&closing, lane(1), WINDOW), None, "it sealed nothing");
}

#[test]
fn a_question_on_chain_comes_before_all_else() {
    let mut signs = accepted(1);
    let (challenge, id) = (U256::from(7), ClaimId(B256::ZERO));
    let opened = Event::ChallengeOpened { challenge, id, claim: claim(0, 0), challenger: worker(9), worker: worker(0) };
    signs.take_in(&at(30, opened));
    let told = Told::Asked { deadline: 77, position: Position::default(), hints: Bytes::new() };
    assert_eq!(signs.take_in(&at(31, Event::Challenge { challenge, told })), None, "the challenger's sign of life");
    let due = signs.due(&view(1), lane(0), WINDOW).unwrap();
    assert_eq!((due.what, due.by), (Duty::Answer, 77));
    assert!(due.then.contains("convicted of silence") && due.then.contains("dispute explain 7"));
    signs.take_in(&at(80, Event::ClaimsVoided { lane: lane(0), from: 0 }));
    assert_eq!(signs.due(&view(1), lane(0), WINDOW), None, "convicted");
}

#[test]
fn the_later_sign_counts_and_is_told_with_its_time() {
    let claimed = Sign { what: Kind::Claimed, at: 1_799_999_960 };
    let message = Sign { what: Kind::Message, at: 1_799_999_990 };
    assert_eq!(claimed.or_later(Some(message)), message);
    assert_eq!(message.or_later(Some(claimed)), message);
    assert_eq!(claimed.words(1_800_000_000), "2027-01-15 07:59:20 UTC, 40 s ago (a claim)");
}
