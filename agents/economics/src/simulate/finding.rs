//! Cheaters that are found, and convict themselves before anybody else does.

use tensorlink_draws::Draws;

use super::Estimate;
use crate::finding::Find;
use crate::rules::Rules;

/// Mean shares of the stake, over those of `trials` wrong claims that are found: what comes back to the cheater, and
/// what a certain one of the honest gets, where it is drawn.
pub fn finding(find: &Find, rules: &Rules, seed: u64, trials: u32) -> (Estimate, Estimate) {
    let chance = find.crowd.chance(find.audits);
    let (mut back, mut got) = (Vec::new(), Vec::new());
    for trial in 0..trials {
        let mut draws = Draws::of(seed, trial.into());
        let is_drawn = draws.happens(chance);
        let honest = draws.how_many(find.crowd.honest.saturating_sub(1), chance).saturating_add(is_drawn.into());
        let lazy = draws.how_many(find.crowd.lazy, chance);
        let ours = draws.how_many(find.crowd.colluding, chance);
        let share = rules.auditors() / f64::from(honest.saturating_add(lazy).saturating_add(ours));
        if honest > 0 {
            back.push(rules.finders() + f64::from(ours) * share);
        }
        if is_drawn {
            got.push(share);
        }
    }
    (Estimate::of(&back), Estimate::of(&got))
}
