//! A history is shortened to what somebody may still need, and told as if it never had more.

use std::path::Path;

use tensorlink_node::Roster;
use tensorlink_node::history::{Remembered, Thrift};
use tensorlink_node::ports::chain::{Fault, Role};
use tensorlink_node::ports::{Chain, ChainError, Event, EventAt, Gate};
use tensorlink_types::abi::{Claim, Demand, JobTerms, Offer};
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};

use crate::support::{MemoryChain, USER, job_view};

const OTHER: Address = Address::repeat_byte(0x99);
const WORKERS: [Address; 3] = [Address::repeat_byte(1), Address::repeat_byte(2), Address::repeat_byte(3)];
/// From one event on, whatever is older than 10 blocks; two jobs of our lanes are left.
const THRIFT: Thrift = Thrift { events: 1, depth: 10, own: 2 };

fn at(block: usize, event: Event) -> EventAt {
    let block = block as u64;
    let block_hash = B256::left_padding_from(&block.to_be_bytes());
    EventAt { block, block_hash, timestamp: block, log_index: 0, transaction: block_hash, event }
}

/// Events in blocks of their own, then nothing for a while but a stake.
fn history(events: impl IntoIterator<Item = Event>, rest: usize) -> Vec<EventAt> {
    let mut all: Vec<EventAt> = events.into_iter().enumerate().map(|(block, event)| at(block, event)).collect();
    all.push(at(all.len() + rest, staked(WORKERS[0], 1)));
    all
}

fn staked(account: Address, amount: u64) -> Event {
    Event::Staked { account, role: Role::Worker, amount: U256::from(amount) }
}

fn unstaked(account: Address, amount: u64) -> Event {
    Event::UnstakeRequested { account, role: Role::Worker, amount: U256::from(amount), release_at: 0 }
}

fn slashed(account: Address, amount: u64) -> Event {
    let (bounty, harm, burned) = (U256::ZERO, U256::ZERO, U256::ZERO);
    Event::Slashed { account, amount: U256::from(amount), bounty, shared: U256::ZERO, harm, burned }
}

fn claim_of(job: u64) -> ClaimId {
    ClaimId(B256::repeat_byte(job as u8))
}

/// All that is told of a job of one lane, whose worker is convicted.
fn job(number: u64, user: Address, worker: Address) -> Vec<Event> {
    let (job, lane, id) = (JobId(number), Lane { job: JobId(number), stage: 0, replica: 0 }, U256::from(number));
    let claim = Claim { job: number, ..Claim::default() };
    let offer = Offer {
        job: number,
        stage: 0,
        replica: 0,
        worker,
        terms: B256::ZERO,
        pricePerInterval: 1,
        expires: U256::from(1).to(),
    };
    let demand = Box::new(Demand { job: number, ..Demand::default() });
    let convicted = Event::Convicted {
        lane,
        claim: claim_of(number),
        worker,
        auditor: OTHER,
        fault: Fault::Element,
        step: 0,
        operator: 0,
        element: 0,
        claimed: String::new(),
        recomputed: String::new(),
    };
    vec![
        Event::JobPosted { job, user, deposit: U256::ZERO, terms: JobTerms::default() },
        Event::JobAccepted { job, offers: vec![offer] },
        Event::JobStarted { job, job_key: Default::default(), deadline: 1 },
        Event::ClaimCommitted { id: claim_of(number), claim: claim.clone(), committed_at: 1 },
        Event::Demanded { id, demand },
        Event::DemandEnded { id, shown: None, convicted: false },
        Event::ChallengeOpened { challenge: id, id: claim_of(number), claim, challenger: OTHER, worker },
        convicted,
        Event::ClaimsVoided { lane, from: 0 },
        Event::JobSettled { job, refund: U256::ZERO },
    ]
}

/// What a node hears at its start.
async fn told(folder: &Path, events: &[EventAt]) -> Vec<EventAt> {
    let memory = MemoryChain::new(job_view(1, 1), &[], &[]);
    memory.with(|ledger| ledger.told = Some(events.to_vec()));
    let chain = Remembered::with(memory, folder, THRIFT);
    loop {
        let (mut receiver, mut told) = (chain.events(0).await.unwrap(), Vec::new());
        while let Some(event) = receiver.recv().await {
            told.push(event);
        }
        if !matches!(chain.ended(), ChainError::Undone { .. }) {
            return told;
        }
    }
}

fn jobs(told: &[EventAt]) -> Vec<u64> {
    let mut jobs: Vec<u64> = told.iter().filter_map(|at| at.event.job()).map(|job| job.0).collect();
    jobs.dedup();
    jobs
}

#[tokio::test]
async fn of_jobs_settled_long_ago_only_our_own_are_left_and_of_our_lanes_the_last() {
    // The fourth is ours by a lane of ours, as are the next two.
    let parties = [(OTHER, WORKERS[0]), (USER, WORKERS[0]), (OTHER, WORKERS[1]), (OTHER, USER), (OTHER, USER)];
    let parties = parties.into_iter().chain([(OTHER, USER)]).zip(1..);
    let settled = parties.flat_map(|((user, worker), number)| job(number, user, worker));
    let mut open = job(7, OTHER, WORKERS[0]);
    open.truncate(5);
    let all = history(settled.chain(open), 100);
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(told(folder.path(), &all).await, all, "nothing is forgotten of what is told for the first time");
    let left = told(folder.path(), &all).await;
    assert_eq!(jobs(&left), [2, 5, 6, 7], "ours, and that which goes on");
    let of = |number: u64| move |at: &&EventAt| at.event.job() == Some(JobId(number));
    for number in [2, 5, 6, 7] {
        assert!(left.iter().filter(of(number)).eq(all.iter().filter(of(number))), "whole: {number}");
    }
    let count = |event: fn(&Event) -> bool| left.iter().filter(|at| event(&at.event)).count();
    assert_eq!(count(|event| matches!(event, Event::DemandEnded { .. })), 3);
    assert_eq!(count(|event| matches!(event, Event::Convicted { .. })), 3);
    assert_eq!(told(folder.path(), &all).await, left, "and then it stays as it is");
}

#[tokio::test]
async fn stakes_are_what_they_were() {
    let [one, two, three] = WORKERS;
    let all = [
        staked(one, 10),
        staked(two, 5),
        unstaked(one, 10),
        // Of what is not bonded any more.
        slashed(one, 10),
        staked(one, 5),
        unstaked(two, 5),
        staked(three, 7),
        staked(three, 3),
        slashed(three, 9),
    ];
    for length in 0..=all.len() {
        let all = history(all[..length].iter().cloned(), 100);
        let folder = tempfile::tempdir().unwrap();
        told(folder.path(), &all).await;
        let left = told(folder.path(), &all).await;
        assert!(left.len() <= all.len());
        let roster = |events: &[EventAt]| {
            let roster = Roster::new(USER);
            events.iter().for_each(|at| roster.apply(&at.event));
            // The sums show in what one more slash leaves.
            (0..=12)
                .map(|amount| {
                    WORKERS.map(|worker| {
                        roster.apply(&slashed(worker, u64::from(amount > 0)));
                        roster.has_stake(worker)
                    })
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(roster(&left), roster(&all), "{length}");
        let changes = left.iter().filter(|at| matches!(at.event, Event::UnstakeRequested { .. })).count();
        assert_eq!(changes, 0, "{length}: of stakes only the sums are left");
    }
}

#[tokio::test]
async fn a_reorganisation_from_before_what_was_forgotten_tells_everything_anew() {
    let events: Vec<Event> = (1..=3).flat_map(|number| job(number, OTHER, WORKERS[0])).collect();
    let all = history(events.clone(), 100);
    for length in [5, 25, 29] {
        let folder = tempfile::tempdir().unwrap();
        told(folder.path(), &all).await;
        assert_eq!(jobs(&told(folder.path(), &all).await), [0u64; 0]);
        // Another chain, on which the last jobs are not settled.
        let mut other = history(events[..length].iter().cloned(), 120);
        other.iter_mut().for_each(|at| at.block_hash = B256::ZERO);
        assert_eq!(told(folder.path(), &other).await, other, "{length}");
        let chain = Remembered::new(MemoryChain::new(job_view(1, 1), &[], &[]), folder.path());
        assert_eq!(chain.times_undone().unwrap(), 1);
    }
}
