//! What an answer weighs and costs its worker, and what a challenger puts up for that: the same bounds as
//! `contracts/libraries/challenges/AnswerCost.sol` (P-42, P-43). Amounts are wei of ETH.

use alloy_primitives::U256;
use tensorlink_types::abi::{Position, Question};

use super::Subject;
use super::position::{MAX_GUIDED, MAX_LEAF_LEVELS, MAX_LEVELS};

/// Most gas of an answer without what is asked for, and of each byte of that.
const MOST: u64 = 130_000;
const MOST_A_BYTE: u64 = 40;
/// Gas of all answers of the longest game by hints, rounded up: `tests/contracts/snapshots/challenge.json`.
pub const GAME_GAS: u64 = 600_000;
/// So many times what answers cost now is put up: the base fee of a block is at most an eighth above that of the block
/// before, so it takes ten full blocks to rise threefold.
const MARGIN: u64 = 3;

/// Bytes that the answer to a question takes at most, besides those that every answer takes. `hints`: length of the
/// question's hints, which the answer repeats.
pub fn bytes_of(position: &Position, hints: usize) -> u64 {
    if Subject::of(position) == Some(Subject::Logs) {
        return 0;
    }
    let bottom = position.levels.saturating_add(position.guided) == position.height;
    let width: u64 = if bottom && Subject::of(position) == Some(Subject::Output) { 256 } else { 32 };
    let row = width << position.levels.min(MAX_LEVELS);
    row.saturating_add(u64::from(position.guided).saturating_mul(32)).saturating_add(hints as u64)
}

/// Most bytes that the answer to a question takes, wherever it is asked.
pub fn most_bytes(question: &Question) -> u64 {
    // Leaves are asked for a few levels at a time.
    let width: u64 = if question.levels <= MAX_LEAF_LEVELS { 256 } else { 32 };
    let row = width << question.levels.min(MAX_LEVELS);
    let siblings = if question.hints.is_empty() { 0 } else { u64::from(MAX_GUIDED) * 32 };
    row.saturating_add(siblings).saturating_add(question.hints.len() as u64)
}

/// Most gas that an answer of so many bytes is charged; its question is refused unless the deposit covers it.
pub fn most_gas(bytes: u64) -> u64 {
    bytes.saturating_mul(MOST_A_BYTE).saturating_add(MOST)
}

fn price(gas: u64, base_fee: U256) -> U256 {
    base_fee.saturating_mul(U256::from(gas))
}

/// What is put up when a challenge is opened: enough for a whole game, should gas become dearer meanwhile.
pub fn deposit(base_fee: U256) -> U256 {
    price(GAME_GAS.saturating_mul(MARGIN), base_fee)
}

/// What is added to a deposit of which `left` is left before `bytes` are asked for, or while they are: nothing as long
/// as it covers the answer at twice the base fee; else as much as covers it at three times.
pub fn top_up(left: U256, bytes: u64, base_fee: U256) -> Option<U256> {
    let gas = most_gas(bytes);
    if left >= price(gas.saturating_mul(2), base_fee) {
        return None;
    }
    Some(price(gas.saturating_mul(MARGIN), base_fee).saturating_sub(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wei(amount: u64) -> U256 {
        U256::from(amount)
    }

    #[test]
    fn what_is_put_up_covers_the_first_question_and_a_game() {
        let most = most_gas(bytes_of(&Position { subject: 1, levels: 7, guided: 7, ..Position::default() }, 1_024));
        assert!(deposit(wei(7)) >= wei(7 * most) && deposit(wei(7)) == wei(7 * 1_800_000));
        assert_eq!(deposit(wei(0)), wei(0), "where gas is free");
        assert_eq!(top_up(wei(0), 8_192, wei(0)), None);
    }

    #[test]
    fn a_deposit_is_topped_up_when_gas_has_become_dearer_and_not_before() {
        let gas = most_gas(2_048);
        assert_eq!(gas, 130_000 + 40 * 2_048);
        assert_eq!(top_up(wei(2 * gas * 5), 2_048, wei(5)), None);
        assert_eq!(top_up(wei(2 * gas * 5 - 1), 2_048, wei(5)), Some(wei(gas * 5 + 1)));
        assert_eq!(top_up(wei(10), 2_048, wei(1)), Some(wei(3 * gas - 10)));
        // What is refused without it is covered with it, twice over.
        assert_eq!(top_up(wei(3 * gas), 2_048, wei(1)), None);
        assert!(top_up(U256::MAX, u64::MAX, U256::MAX).is_none(), "saturates");
    }

    #[test]
    fn bytes_are_counted_as_by_the_contract() {
        let at = |subject, levels, guided, height| Position { subject, levels, guided, height, ..Position::default() };
        assert_eq!(bytes_of(&at(7, 3, 0, 3), 0), 8 * 256);
        assert_eq!(bytes_of(&at(7, 3, 2, 6), 14), 8 * 32 + 64 + 14);
        assert_eq!(bytes_of(&at(7, 3, 2, 5), 14), 8 * 256 + 64 + 14);
        assert_eq!(bytes_of(&at(3, 3, 2, 5), 14), 8 * 32 + 64 + 14);
        assert_eq!(bytes_of(&at(5, 0, 0, 0), 0), 0);
    }

    #[test]
    fn no_answer_takes_more_than_its_question_shows() {
        for (levels, guided, hints) in [(3, 0, 0), (8, 0, 0), (4, 9, 1_030), (2, 8, 518), (7, 7, 1_024)] {
            let question = Question { levels, hints: vec![7; hints].into() };
            for (subject, height) in [(7, levels + guided), (7, 30), (3, levels + guided), (2, 0)] {
                // Leaves are never asked for so many levels at a time.
                if (subject, height) == (7, levels + guided) && levels > MAX_LEAF_LEVELS {
                    continue;
                }
                let position = Position { subject, levels, guided, height, ..Position::default() };
                assert!(bytes_of(&position, hints) <= most_bytes(&question), "{levels} levels, {guided} guided");
            }
        }
    }
}
