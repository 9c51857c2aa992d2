//! What transactions may cost: at most so much for a unit of gas, and so much a day, after which only what averts a
//! loss is sent.

mod paid;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_node::ports::ChainError;
use tensorlink_types::U256;
use tracing::{info, warn};

use self::paid::Paid;

/// Most that is offered for a unit of gas unless said otherwise, wei: a fee beyond it is a broken endpoint or a day to
/// wait out.
const MAX_FEE: u128 = 1_000_000_000_000;
/// Empty transactions that are remembered so that none counts twice.
const NOTHINGS: usize = 256;

/// What transactions of this node may cost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most that is offered for a unit of gas, wei.
    pub max_fee: u128,
    /// Most that is paid for gas in 24 hours, wei; what averts a loss is sent all the same. None bounds nothing.
    pub daily: Option<U256>,
    /// File in which is kept what was paid, so that a restart does not forget it; none keeps it in memory.
    pub ledger: Option<PathBuf>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_fee: MAX_FEE, daily: None, ledger: None }
    }
}

/// Holds transactions to the limits.
#[derive(Debug)]
pub(crate) struct Spending {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    paid: Paid,
    /// Something is held back, and it was said.
    holds: bool,
    /// What counts as paid for empty transactions, by nonce: of several only one is mined.
    nothings: BTreeMap<u64, U256>,
}

impl Spending {
    /// With what the ledger says was paid.
    ///
    /// # Errors
    /// [`ChainError::Unavailable`]: the ledger cannot be read.
    pub(crate) fn open(limits: Limits) -> Result<Self, ChainError> {
        let paid = match (&limits.daily, &limits.ledger) {
            (Some(_), Some(path)) => Paid::read(path)?,
            _ => Paid::default(),
        };
        Ok(Self { limits, state: Mutex::new(State { paid, ..State::default() }) })
    }

    /// Most that is offered for a unit of gas, wei.
    pub(crate) const fn max_fee(&self) -> u128 {
        self.limits.max_fee
    }

    /// With what others have written down since.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(written) = self.limits.ledger.as_deref().and_then(|path| Paid::read(path).ok()) {
            state.paid.merge(&written);
        }
        state
    }

    /// Whether the budget has room for a transaction that costs up to `cost` wei and can wait; `now`: time of the next
    /// block, seconds. Says so when it has none, and when it has some again.
    ///
    /// # Errors
    /// [`ChainError::OverBudget`]: it has none.
    pub(crate) fn admit(&self, cost: U256, now: u64) -> Result<(), ChainError> {
        let Some(budget) = self.limits.daily else { return Ok(()) };
        let mut state = self.state();
        let spent = state.paid.today(now);
        let held = spent.saturating_add(cost) > budget;
        if cost.is_zero() && !held {
            // Whether there is room for what is to be sent, its cost will tell.
            return Ok(());
        }
        if held != std::mem::replace(&mut state.holds, held) {
            if held {
                warn!(%budget, %spent, %cost, "the day's budget for gas is used up: only what averts a loss is sent");
            } else {
                info!(%budget, %spent, "the day's budget for gas has room again");
            }
        }
        if held { Err(ChainError::OverBudget { budget, spent, cost }) } else { Ok(()) }
    }

    /// Notes what a mined transaction cost, wei.
    pub(crate) fn paid(&self, fee: U256, now: u64) {
        if self.limits.daily.is_none() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.note(&mut state, fee, now);
    }

    /// Notes what an empty transaction may cost at most, wei, that was sent under a nonce: once, however often another
    /// takes its place.
    pub(crate) fn paid_for_nothing(&self, nonce: u64, cost: U256, now: u64) {
        if self.limits.daily.is_none() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = state.nothings.insert(nonce, cost).unwrap_or_default();
        if state.nothings.len() > NOTHINGS {
            state.nothings.pop_first();
        }
        self.note(&mut state, cost.saturating_sub(counted), now);
    }

    fn note(&self, state: &mut State, fee: U256, now: u64) {
        let Some(path) = &self.limits.ledger else {
            state.paid.add(fee, now);
            return;
        };
        if let Err(error) = state.paid.add_to(path, fee, now) {
            warn!(path = %path.display(), %error, "what was paid for gas cannot be written down: make room");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::paid::HOUR;
    use super::*;

    fn limits(daily: u64, ledger: Option<PathBuf>) -> Limits {
        Limits { daily: Some(U256::from(daily)), ledger, ..Limits::default() }
    }

    fn admits(spending: &Spending, cost: u64, now: u64) -> bool {
        spending.admit(U256::from(cost), now).is_ok()
    }

    #[test]
    fn a_budget_is_for_any_24_hours() {
        let spending = Spending::open(limits(100, None)).unwrap();
        let day = 1_000 * HOUR;
        assert!(admits(&spending, 100, day) && !admits(&spending, 101, day));
        spending.paid(U256::from(60), day);
        spending.paid(U256::from(30), day + HOUR);
        assert!(admits(&spending, 10, day + 2 * HOUR) && !admits(&spending, 11, day + 2 * HOUR));
        assert!(!admits(&spending, 11, day + 24 * HOUR - 1));
        assert!(admits(&spending, 70, day + 24 * HOUR) && !admits(&spending, 71, day + 24 * HOUR));
        assert!(admits(&spending, 100, day + 25 * HOUR));
        let refused = spending.admit(U256::from(101), day + 25 * HOUR).unwrap_err();
        assert!(refused.to_string().contains("--gas-budget"), "{refused}");
    }

    #[test]
    fn without_a_budget_nothing_is_held_back() {
        let spending = Spending::open(Limits::default()).unwrap();
        spending.paid(U256::MAX, 1);
        spending.admit(U256::MAX, 1).unwrap();
    }

    #[test]
    fn a_restart_forgets_nothing_and_what_cannot_be_read_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("gas.json");
        let open = || Spending::open(limits(100, Some(path.clone())));
        open().unwrap().paid(U256::from(90), HOUR * 50);
        let again = open().unwrap();
        // Another process of the same node.
        open().unwrap().paid(U256::ZERO, HOUR * 50);
        assert!(admits(&again, 10, HOUR * 50) && !admits(&again, 11, HOUR * 50));
        open().unwrap().paid(U256::from(10), HOUR * 50);
        assert!(!admits(&again, 1, HOUR * 50), "what the other one paid counts");
        let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == "gas.json" || name == "gas.lock"), "nothing else stays: {left:?}");
        std::fs::write(&path, "{").unwrap();
        let unread = open().unwrap_err().to_string();
        assert!(unread.contains("gas.json") && unread.contains("remove it"), "{unread}");
    }

    #[test]
    fn processes_of_one_node_that_pay_at_once_count_both() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gas.json");
        let open = || Spending::open(limits(1_000, Some(path.clone()))).unwrap();
        std::thread::scope(|threads| {
            for _ in 0..4 {
                let spending = open();
                threads.spawn(move || (0..25).for_each(|_| spending.paid(U256::from(5), HOUR * 50)));
            }
        });
        assert!(admits(&open(), 500, HOUR * 50) && !admits(&open(), 501, HOUR * 50));
    }

    #[test]
    fn hours_to_come_are_those_of_a_clock_that_was_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gas.json");
        for ledger in [None, Some(path)] {
            let spending = Spending::open(limits(100, ledger)).unwrap();
            spending.paid(U256::from(90), HOUR * 10_000);
            assert!(!admits(&spending, 11, HOUR * 10_000 - 60), "blocks' times differ a little");
            assert!(admits(&spending, 100, HOUR * 50));
            spending.paid(U256::from(60), HOUR * 50);
            assert!(admits(&spending, 40, HOUR * 50) && !admits(&spending, 41, HOUR * 50));
        }
    }

    #[test]
    fn an_empty_transaction_counts_once_however_often_it_is_replaced() {
        let spending = Spending::open(limits(100, None)).unwrap();
        for cost in [20u64, 30, 30] {
            spending.paid_for_nothing(7, U256::from(cost), HOUR);
        }
        spending.paid_for_nothing(8, U256::from(20), HOUR);
        assert!(admits(&spending, 50, HOUR) && !admits(&spending, 51, HOUR));
    }
}
