//! An endpoint that says anything: logs and reverts give an event, an error or nothing, never a panic.

use alloy::primitives::{Address, B256, Bytes, Log, LogData, U256};
use alloy::sol_types::SolEvent;
use proptest::prelude::*;
use tensorlink_bindings::audits::Audits;
use tensorlink_bindings::challenges::Challenges;
use tensorlink_bindings::channels::Channels;
use tensorlink_bindings::checkpoints::Checkpoints;
use tensorlink_bindings::custody::Custody;
use tensorlink_bindings::disputes::Disputes;
use tensorlink_bindings::jobs::Jobs;
use tensorlink_bindings::staking::Staking;
use tensorlink_chain::{Revert, event};
use tensorlink_node::ports::chain::{Deployment, Event};
use tensorlink_proof::challenge::{Row, Told};

const DEPLOYMENT: Deployment = Deployment {
    chain_id: 1,
    block: 0,
    sno: Address::repeat_byte(1),
    staking: Address::repeat_byte(2),
    jobs: Address::repeat_byte(3),
    checkpoints: Address::repeat_byte(4),
    channels: Address::repeat_byte(5),
    disputes: Address::repeat_byte(6),
    challenges: Address::repeat_byte(7),
    custody: Address::repeat_byte(14),
    audits: Address::repeat_byte(9),
    beacon: Address::repeat_byte(10),
    step_verifier: Address::repeat_byte(8),
};

/// What a log says that really has these fields.
fn decode(address: Address, data: LogData) -> Option<Event> {
    let event = event::decode(&DEPLOYMENT, &Log { address, data }, 9).ok()??;
    let text = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "an event is remembered as it was told");
    Some(event)
}

/// Every event that is looked at, with the contract that emits it.
fn selectors() -> Vec<(Address, B256)> {
    let d = DEPLOYMENT;
    let of = |address, selectors: &[[u8; 32]]| selectors.iter().map(move |s| (address, B256::from(*s))).collect();
    let all: [Vec<_>; 8] = [
        of(d.audits, Audits::AuditsEvents::SELECTORS),
        of(d.jobs, Jobs::JobsEvents::SELECTORS),
        of(d.checkpoints, Checkpoints::CheckpointsEvents::SELECTORS),
        of(d.channels, Channels::ChannelsEvents::SELECTORS),
        of(d.custody, Custody::CustodyEvents::SELECTORS),
        of(d.disputes, Disputes::DisputesEvents::SELECTORS),
        of(d.challenges, Challenges::ChallengesEvents::SELECTORS),
        of(d.staking, Staking::StakingEvents::SELECTORS),
    ];
    all.concat()
}

/// A word as an ABI encoding has them: a small number, a length or an offset, or anything.
fn word() -> impl Strategy<Value = [u8; 32]> {
    prop_oneof![
        4 => (0u16..600).prop_map(|n| U256::from(n).to_be_bytes()),
        2 => (0u16..20).prop_map(|n| U256::from(n * 32).to_be_bytes()),
        1 => any::<[u8; 32]>(),
        1 => Just([0xff; 32]),
    ]
}

fn words(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(word(), 0..most).prop_map(|words| words.concat())
}

/// An answer as the contract tells it.
fn answered() -> LogData {
    let event = Challenges::Answered {
        challenge: U256::from(3),
        deadline: U256::from(99).to(),
        position: Challenges::Position {
            subject: 3,
            levels: 2,
            guided: 0,
            height: 2,
            index: 0,
            count: 4,
            node: B256::repeat_byte(1),
            facts: B256::repeat_byte(2),
            hints: B256::ZERO,
        },
        siblings: vec![B256::repeat_byte(3)],
        data: Bytes::from(vec![7; 128]),
    };
    event.encode_log_data()
}

#[test]
fn a_job_is_told_with_all_its_terms() {
    let terms = Jobs::JobTerms {
        kind: 0,
        token: Address::ZERO,
        stages: 2,
        replicas: 1,
        intervals: 3,
        stepsPerInterval: 4,
        acceptBy: U256::from(9).to(),
        duration: U256::from(99).to(),
        challengeWindow: 8,
        workerStake: u128::MAX,
        continues: 0,
        firstStep: 0,
        programs: vec![B256::repeat_byte(1); 2],
        initialStates: vec![B256::repeat_byte(2); 2],
        manifest: vec![1, 85].into(),
    };
    let posted = Jobs::JobPosted { job: 1, user: Address::repeat_byte(9), deposit: U256::MAX, terms };
    let told = decode(DEPLOYMENT.jobs, posted.encode_log_data());
    assert!(matches!(told, Some(Event::JobPosted { terms, .. }) if terms.workerStake == u128::MAX));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn logs_of_any_words(at in any::<prop::sample::Index>(), topics in prop::collection::vec(word(), 0..4), data in words(24)) {
        let all = selectors();
        let (address, selector) = all[at.index(all.len())];
        let topics = [selector].into_iter().chain(topics.into_iter().map(B256::from)).collect();
        decode(address, LogData::new_unchecked(topics, data.into()));
    }

    #[test]
    fn an_answer_with_a_byte_changed_or_cut_short(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let good = answered();
        let told = decode(DEPLOYMENT.challenges, good.clone());
        prop_assert!(told.is_some());
        let mut data = good.data.to_vec();
        let at = at.index(data.len());
        data[at] ^= byte;
        data.truncate(if cut { at } else { data.len() });
        let changed = LogData::new_unchecked(good.topics().to_vec(), data.into());
        let (same, said) = (changed == good, changed.data.len());
        match decode(DEPLOYMENT.challenges, changed) {
            // Numbers are read without the bits that their types have not; everything else is told as it is said, and a
            // list that is said to be longer takes in what follows it.
            Some(Event::Challenge { challenge, told: Told::Answered { row: Row { position, siblings, data }, .. } }) => {
                prop_assert_eq!(challenge, U256::from(3));
                prop_assert!(data.len() <= 128 && 32 * siblings.len() < said && position.node != B256::ZERO);
            }
            other => prop_assert!(!same && other.is_none(), "{other:?}"),
        }
        prop_assert!(!same || decode(DEPLOYMENT.challenges, good) == told);
    }

    #[test]
    fn reverts_of_any_bytes(selector in prop::option::of(any::<prop::sample::Index>()), data in words(8)) {
        let known = [[0x08, 0xc3, 0x79, 0xa0], [0x4e, 0x48, 0x7b, 0x71], [0; 4]];
        let head = selector.map_or(Vec::new(), |at| at.get(&known).to_vec());
        let revert = Revert::decode(&[head, data].concat());
        prop_assert!(!revert.name.is_empty() && revert.arguments.starts_with('('));
    }
}
