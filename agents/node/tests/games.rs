//! Challenges folded from events.

use std::sync::Arc;

use tensorlink_node::Games;
use tensorlink_node::ports::Event;
use tensorlink_proof::challenge::{Told, Turn};
use tensorlink_types::abi::{Claim, Position};
use tensorlink_types::{Address, B256, ClaimId, U256};

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
    }
}

#[test]
fn only_our_challenges_are_kept_and_each_knows_whose_turn_it_is() {
    let games = Games::new(US);
    for event in [opened(1, OTHERS, US), opened(2, US, OTHERS), opened(3, OTHERS, OTHERS)] {
        games.apply(&event);
    }
    assert!(games.to_answer().is_empty(), "nothing is asked yet");
    for number in 1..=3 {
        games.apply(&told(number, asked()));
    }
    let to_answer: Vec<U256> = games.to_answer().into_iter().map(|(number, _)| number).collect();
    assert_eq!(to_answer, [U256::from(1)]);
    assert_eq!((games.on(id(1)), games.on(id(2))), (None, Some(U256::from(2))));
    assert!(games.get(U256::from(3)).is_none());

    games.apply(&told(2, Told::Won { silence: true }));
    assert_eq!(games.on(id(2)), None, "it is over");
    assert_eq!(games.get(U256::from(2)).map(|game| game.turn), Some(Turn::Won));
}

#[test]
fn those_that_are_over_are_forgotten_in_the_end() {
    let games = Games::new(US);
    for number in 1..=400 {
        games.apply(&opened(number, US, OTHERS));
        if number != 1 {
            games.apply(&told(number, Told::Lost));
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
