//! A challenge of ours is opened once and told once.

use std::time::Duration;

use tensorlink_node::ports::{Event, EventAt};
use tensorlink_program::Reference;
use tensorlink_proof::challenge::Told;
use tensorlink_types::{B256, U256};
use tensorlink_validator::{ChallengeEnd, Target};

use crate::support::{STEPS, identity};
use crate::world::{INTERVAL, Manner, liar, world};

/// What a node opened before it was restarted is on chain, and not told yet.
#[tokio::test]
async fn a_challenge_that_waits_for_confirmation_is_not_opened_again() {
    let world = world(liar(INTERVAL * STEPS), Manner::Withholds).await;
    let us = identity(2).address();
    let (target, challenge) = (world.target.clone(), U256::from(7));
    world.chain.with(|l| l.open_challenge = Some((target.id, challenge)));
    let (id, claim, worker) = (target.id, target.claim.clone(), identity(1).address());
    let opened = Event::ChallengeOpened { challenge, id, claim, challenger: us, worker };
    let tell = |event| {
        let told = world.chain.with(|l| {
            l.tell(event);
            l.told.as_ref().and_then(|told| told.last().cloned())
        });
        world.auditor.apply(&told.unwrap());
    };
    let ended = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        tell(opened);
        // It is being played now.
        tokio::time::sleep(Duration::from_millis(500)).await;
        tell(Event::Challenge { challenge, told: Told::Won { silence: true } });
    };
    let (end, ()) = tokio::join!(world.auditor.challenge(&target), ended);
    let end = end.unwrap();
    assert!(matches!(end, ChallengeEnd::Convicted(_)), "{end:?}");
    let sent = world.chain.with(|l| l.sent.clone());
    assert!(!sent.is_empty() && !sent.contains(&"open"), "it is played: {sent:?}");
}

/// Who takes up a challenge reads the chain up to its head, and follows it from its first block.
#[tokio::test]
async fn a_challenge_that_is_told_again_is_the_same() {
    let world = world(Reference, Manner::Answers).await;
    let Target { id, claim, .. } = world.target;
    let (challenge, challenger, worker) = (U256::ZERO, identity(2).address(), identity(1).address());
    let told = [
        Event::ChallengeOpened { challenge, id, claim, challenger, worker },
        Event::Challenge { challenge, told: Told::Lost },
    ];
    let at = |(log_index, event)| EventAt {
        block: 300,
        block_hash: B256::ZERO,
        timestamp: 300,
        log_index,
        transaction: B256::ZERO,
        event,
    };
    let events: Vec<EventAt> = (0..).zip(told).map(at).collect();
    let known = world.auditor.apply_after(None, &events[..1]);
    assert_eq!((known, world.auditor.games().on(id)), (Some((300, 0)), Some(challenge)));
    let known = world.auditor.apply_after(known, &events);
    assert_eq!((known, world.auditor.games().on(id)), (Some((300, 1)), None), "it is over");
    assert_eq!(world.auditor.apply_after(known, &events[..1]), known);
    assert_eq!(world.auditor.games().on(id), None, "and does not begin anew");
}
