//! Challenges folded from events.

use std::sync::Arc;

use tensorlink_node::Games;
use tensorlink_node::ports::{Event, EventAt};
use tensorlink_proof::challenge::{Told, Turn};
use tensorlink_types::abi::{Claim, Position};
use tensorlink_types::{Address, B256, ClaimId, U256};

use crate::support::{MemoryChain, identity, job_view};

const US: Address = Address::repeat_byte(1);
const OTHERS: Address = Address::repeat_byte(2);

fn opened(number: u64, challenger: Address, worker: Address) -> Event {
    let zero = B256::ZERO;
    let claim = Claim { job: 1, stage: 0, replica: 0, interval: 0, parentState: zero, newState: zero, io: zero };
    Event::ChallengeOpened { challenge: U256::from(number), id: id(number), claim, challenger, worker }
}

fn id(number: u64) -> ClaimId {
    ClaimId(B256::from(U256::from(number)))
}

fn told(number: u64, told: Told) -> Event {
    Event::Challenge { challenge: U256::from(number), told }
}

fn asked() -> Told {
    Told::Asked {
        deadline: 9,
        position: Position { subject: 1, levels: 2, height: 2, count: 4, ..Position::default() },
        hints: Default::default(),
    }
}

/// An event in the only place of a block.
fn at(block: u64, event: Event) -> EventAt {
    let (block_hash, transaction) = (B256::ZERO, B256::ZERO);
    EventAt { block, block_hash, timestamp: block, log_index: 0, transaction, event }
}

/// A chain on which just this happened.
fn chain(events: &[EventAt]) -> Arc<MemoryChain> {
    let chain = MemoryChain::new(job_view(1, 1), &[identity(7).address()], &[]);
    chain.with(|l| l.told = Some(events.to_vec()));
    chain
}

/// What is told of the first challenge, compared at 100 s with a chain that has just this.
async fn followed(events: &[EventAt]) -> Games {
    let games = Games::new(US);
    events.iter().for_each(|at| games.apply(at));
    assert!(!games.check(chain(events).as_ref(), U256::from(1), 100).await.unwrap(), "as the chain has it");
    games
}

#[tokio::test]
async fn moves_that_a_reorganisation_undid_are_forgotten() {
    let one = U256::from(1);
    let told = [at(5, opened(1, OTHERS, US)), at(7, told(1, asked()))];
    let games = followed(&told).await;

    // The question is not on the chain any more. It is looked at now and then.
    let undone = chain(&told[..1]);
    assert!(!games.check(undone.as_ref(), one, 110).await.unwrap());
    assert_eq!(games.to_answer().len(), 1);
    assert!(games.check(undone.as_ref(), one, 120).await.unwrap());
    assert!(games.to_answer().is_empty() && games.open() == [one]);

    // It is asked again, in an earlier block than before; what is told twice counts once.
    let again = at(6, told[1].event.clone());
    games.apply(&again);
    games.apply(&again);
    assert_eq!(games.get(one).map(|game| (game.turn, game.asked)), Some((Turn::Answering, 1)));

    // All of it is gone.
    assert!(games.check(chain(&[]).as_ref(), one, 140).await.unwrap());
    assert!(games.get(one).is_none());
}

#[tokio::test]
async fn what_belongs_before_what_is_known_has_the_chain_looked_at_at_once() {
    let one = U256::from(1);
    let first = [at(5, opened(1, OTHERS, US)), at(9, told(1, asked()))];
    let games = followed(&first).await;
    let lost = [first[0].clone(), at(8, told(1, Told::Lost))];
    games.apply(&lost[1]);
    assert_eq!(games.to_answer().len(), 1, "it does not follow what was told before");
    assert!(games.check(chain(&lost).as_ref(), one, 101).await.unwrap());
    assert_eq!(games.get(one).map(|game| game.turn), Some(Turn::Lost));
}

#[test]
fn only_our_challenges_are_kept_and_each_knows_whose_turn_it_is() {
    let games = Games::new(US);
    for event in [opened(1, OTHERS, US), opened(2, US, OTHERS), opened(3, OTHERS, OTHERS)] {
        games.apply(&at(1, event));
    }
    assert!(games.to_answer().is_empty(), "nothing is asked yet");
    for number in 1..=3 {
        games.apply(&at(2, told(number, asked())));
    }
    let to_answer: Vec<U256> = games.to_answer().into_iter().map(|(number, _)| number).collect();
    assert_eq!(to_answer, [U256::from(1)]);
    assert_eq!((games.on(id(1)), games.on(id(2))), (None, Some(U256::from(2))));
    assert!(games.get(U256::from(3)).is_none());

    games.apply(&at(3, told(2, Told::Won { silence: true })));
    assert_eq!(games.on(id(2)), None, "it is over");
    assert_eq!(games.get(U256::from(2)).map(|game| game.turn), Some(Turn::Won));
}

#[test]
fn those_that_are_over_are_forgotten_in_the_end() {
    let games = Games::new(US);
    for number in 1..=400 {
        games.apply(&at(number, opened(number, US, OTHERS)));
        if number != 1 {
            games.apply(&at(1_000 + number, told(number, Told::Lost)));
        }
    }
    assert_eq!(games.on(id(1)), Some(U256::from(1)), "an open one is not");
    assert!(games.get(U256::from(2)).is_none() && games.get(U256::from(400)).is_some());
}

#[test]
fn one_task_at_a_time_plays() {
    let games = Arc::new(Games::new(US));
    let seat = games.seat(id(1)).unwrap();
    assert!(games.seat(id(1)).is_none() && games.seat(id(2)).is_some());
    drop(seat);
    assert!(games.seat(id(1)).is_some());
}
