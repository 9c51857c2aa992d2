//! Whoever lies is convicted, and who does not is not, whatever the program, the lie, or the behaviour of either side.

use rayon::prelude::*;
use tensorlink_games::play::{Conduct, Framing, Outcome, play};
use tensorlink_games::scenario::{Lie, Scenario};
use tensorlink_games::world::{BOND, STAKE, World};
use tensorlink_node::ports::chain::Fault;
use tensorlink_num::arbitrary::Dice;
use tensorlink_proof::challenge::Stuck;

const GAMES: u64 = 10_000;

fn won(outcome: &Outcome, game: u64) {
    assert_eq!(outcome.challenger, i128::from(STAKE / 4), "game {game}: bounty and bond, {outcome:?}");
    assert_eq!(outcome.worker, 0, "game {game}");
}

fn lost(outcome: &Outcome, game: u64) {
    assert_eq!(outcome.conviction, None, "game {game}");
    assert_eq!((outcome.challenger, outcome.worker), (-i128::from(BOND), i128::from(BOND)), "game {game}");
}

#[test]
fn the_verdict_is_always_right() {
    let world = World::new();
    let played: Vec<(u64, Outcome)> = (0..GAMES)
        .into_par_iter()
        .map(|game| {
            let mut dice = Dice::new(game ^ 0x9a3e5);
            let scenario = Scenario::new(dice.bits(64));
            let lie = scenario.lie(&mut dice);
            let misled = scenario.misled(&mut dice).filter(|_| dice.once_in(8));
            let outcome = match (misled, dice.range(0, 6)) {
                // A worker that has claimed what is right, and accuses its auditor by something else.
                (None, 6) => {
                    let (seed, recants) = (dice.bits(64), dice.once_in(2));
                    let frames = Some(if recants { Framing::Recants(seed) } else { Framing::Stands(seed) });
                    let outcome = play(&world, &scenario, Conduct { frames, ..Conduct::of(Lie::None) });
                    let found = outcome.conviction.map(|(fault, ..)| fault);
                    let expected = if recants { Fault::Contradiction } else { Fault::Element };
                    assert_eq!(found, Some(expected), "game {game}: {outcome:?}");
                    won(&outcome, game);
                    outcome
                }
                // A worker that was misled by a neighbour, which is convicted in its place.
                (Some(lie), _) => {
                    let outcome = play(&world, &scenario, Conduct { misled: true, ..Conduct::of(lie) });
                    let Lie::Received { forward, .. } = lie else { unreachable!("nothing else was asked for") };
                    assert_eq!(outcome.blamed, Some(if forward { 0 } else { 2 }), "game {game}: {outcome:?}");
                    assert_eq!(outcome.conviction, None, "game {game}");
                    outcome
                }
                // A worker that answers everything, and an honest challenger.
                (None, 0..=2) => {
                    let outcome = play(&world, &scenario, Conduct::of(lie));
                    let found = outcome.conviction.unwrap_or_else(|| panic!("game {game}: {lie:?}, {outcome:?}"));
                    match lie {
                        Lie::Element { step, operator, element } => {
                            assert_eq!(found, (Fault::Element, step, operator, element), "game {game}");
                        }
                        Lie::State { step, index } => {
                            assert_eq!((found.0, found.1, found.3), (Fault::Wiring, step, index.into()), "game {game}");
                        }
                        Lie::Sent { step, micro_batch, .. } => {
                            let at = (Fault::Wiring, step, micro_batch.into());
                            assert_eq!((found.0, found.1, found.3), at, "game {game}");
                        }
                        Lie::Received { .. } => assert_eq!(found.0, Fault::Silence, "game {game}"),
                        Lie::None => unreachable!("a lie was asked for"),
                    }
                    won(&outcome, game);
                    outcome
                }
                // One that falls silent, honest or not.
                (None, 3) => {
                    let lie = if dice.once_in(2) { Lie::None } else { lie };
                    let answers = dice.range(0, 2) as u32;
                    let outcome = play(&world, &scenario, Conduct { answers, ..Conduct::of(lie) });
                    match outcome.conviction {
                        Some(_) => won(&outcome, game),
                        // It had nothing more to answer: the challenger found no fault.
                        None => {
                            assert_eq!((lie, &outcome.stuck), (Lie::None, &Some(Stuck::NoFault)), "game {game}");
                            lost(&outcome, game);
                        }
                    }
                    outcome
                }
                // An honest worker, and a challenger that computes wrongly: it finds no proof that stands, or
                // falls silent.
                (None, 4) => {
                    let outcome = play(&world, &scenario, Conduct { error: lie, ..Conduct::of(Lie::None) });
                    lost(&outcome, game);
                    outcome
                }
                // An honest worker, and a challenger that leaves.
                (None, _) => {
                    let asks = dice.range(1, 3) as u32;
                    let outcome = play(&world, &scenario, Conduct { asks, error: lie, ..Conduct::of(Lie::None) });
                    lost(&outcome, game);
                    outcome
                }
            };
            (game, outcome)
        })
        .collect();
    // Every kind of ending was seen.
    for fault in [Fault::Element, Fault::Wiring, Fault::Contradiction, Fault::Silence] {
        assert!(played.iter().any(|(_, o)| o.conviction.is_some_and(|(f, ..)| f == fault)), "{fault:?}");
    }
    assert!(played.iter().any(|(_, outcome)| outcome.conviction.is_none()), "a lost challenge");
    assert!(played.iter().any(|(_, outcome)| outcome.blamed.is_some()), "a misled worker");
}
