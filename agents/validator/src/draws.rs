//! Claims that wait for the seed that draws who answers for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use tensorlink_proof::sortition::period_after;

use crate::answers::Answers;
use crate::target::Target;

/// Claims that wait at once. A chain holds fewer in two periods; of receipts, which cost nothing each, a quarter of it.
const WAITING: usize = 65_536;

/// By the period whose seed draws for them.
#[derive(Debug, Default)]
pub(crate) struct Draws(Mutex<BTreeMap<u64, Vec<Target>>>);

impl Draws {
    /// Takes in a claim that is on chain, unless nobody could answer for it any more when this node started, at the
    /// chain's time `started`: a restart hears of all that there ever were.
    pub(crate) fn add(&self, target: Target, answers: &Answers, started: u64) {
        let Some(at) = target.fixed_at().filter(|at| at.saturating_add(answers.longest_quarter()) >= started) else {
            return;
        };
        let most = if target.listed.is_some() { WAITING / 4 } else { WAITING };
        let Some(period) = period_after(at, answers.parameters.beacon_period) else { return };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.values().map(Vec::len).sum::<usize>() >= most {
            tracing::error!(claim = %target.id, "more claims wait for their seeds than this node keeps: it is not answered for");
            return;
        }
        waiting.entry(period).or_default().push(target);
    }

    /// The periods that claims wait for, of those that have begun by `now`.
    pub(crate) fn begun(&self, now: u64, period: u64) -> Vec<u64> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.keys().copied().take_while(|number| number.saturating_mul(period) <= now).collect()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes all that waits for a period.
    pub(crate) fn take(&self, period: u64) -> Vec<Target> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&period).unwrap_or_default()
    }

    /// When the claims that wait for a period were fixed.
    pub(crate) fn times(&self, period: u64) -> BTreeSet<u64> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.get(&period).into_iter().flatten().filter_map(Target::fixed_at).collect()
    }

    /// Takes those of a period's claims that were fixed at one of these times; others came meanwhile.
    pub(crate) fn take_fixed(&self, period: u64, times: &BTreeMap<u64, u64>) -> Vec<Target> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = waiting.remove(&period).unwrap_or_default();
        let is_known = |target: &Target| target.fixed_at().is_none_or(|at| times.contains_key(&at));
        let (taken, left): (Vec<_>, Vec<_>) = all.into_iter().partition(is_known);
        if !left.is_empty() {
            waiting.insert(period, left);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use cid::Cid;
    use tensorlink_types::abi::Claim;
    use tensorlink_types::{B256, ClaimId};

    use tensorlink_node::journal::Journal;
    use tensorlink_node::ports::chain::Parameters;

    use super::*;
    use crate::target::{Listed, Standing};

    fn target(at: u64) -> Target {
        let zero = B256::ZERO;
        let claim = Claim { job: 1, stage: 0, replica: 0, interval: 0, parentState: zero, newState: zero, io: zero };
        Target {
            id: ClaimId(zero),
            claim,
            standing: Standing::Committed { at },
            manifest: Cid::default(),
            listed: None,
        }
    }

    #[test]
    fn claims_wait_by_their_periods() {
        let parameters = Parameters { beacon_period: 300, ..Parameters::default() };
        let folder = tempfile::tempdir().unwrap();
        let answers = Answers::open(Journal::open(folder.path()).unwrap(), parameters).unwrap();
        let draws = Draws::default();
        let add = |target| draws.add(target, &answers, 700);
        add(target(1_000));
        add(target(700));
        add(target(1_100));
        assert_eq!(draws.begun(1_199, 300), Vec::<u64>::new());
        assert_eq!((draws.begun(1_200, 300), draws.begun(9_999, 300)), (vec![4], vec![4, 5]));
        assert_eq!((draws.take(4).len(), draws.take(5).len()), (1, 2));
        assert!(draws.is_empty());
        let receipt = Target { standing: Standing::Receipt, ..target(0) };
        add(receipt.clone());
        assert!(draws.is_empty(), "a receipt is drawn for once its epoch is redeemed");
        let (receipts, siblings) = (B256::ZERO, Vec::new());
        let listed = Some(Listed { epoch: 1, redeemed_at: 700, receipts, index: 0, siblings });
        add(Target { listed, ..receipt });
        assert_eq!(draws.begun(9_999, 300), [4]);
        draws.take(4);
        draws.add(target(1_000), &answers, 1_001);
        assert!(draws.is_empty(), "long over");
    }
}
