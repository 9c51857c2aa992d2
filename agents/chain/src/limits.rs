//! What transactions may cost: at most so much for a unit of gas, and so much a day, after which only what averts a
//! loss is sent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tensorlink_node::ports::ChainError;
use tensorlink_types::U256;
use tracing::{info, warn};

/// Most that is offered for a unit of gas unless said otherwise, wei: a fee beyond it is a broken endpoint or a day to
/// wait out.
const MAX_FEE: u128 = 1_000_000_000_000;
/// Seconds.
const HOUR: u64 = 3_600;
/// Hours that a budget is for.
const DAY: u64 = 24;

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

/// What was paid for gas, wei by the hour, hours since 1970 by the chain's clock.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Paid(BTreeMap<u64, U256>);

impl Paid {
    /// Of the last 24 hours; forgets what is older.
    fn today(&mut self, now: u64) -> U256 {
        let first = (now / HOUR).saturating_sub(DAY - 1);
        self.0.retain(|hour, _| *hour >= first);
        self.0.values().fold(U256::ZERO, |sum, paid| sum.saturating_add(*paid))
    }

    /// Takes in what another process of this node has written down.
    fn merge(&mut self, other: &Self) {
        for (hour, paid) in &other.0 {
            let of_hour = self.0.entry(*hour).or_default();
            *of_hour = (*of_hour).max(*paid);
        }
    }

    fn add(&mut self, fee: U256, now: u64) {
        let of_hour = self.0.entry(now / HOUR).or_default();
        *of_hour = of_hour.saturating_add(fee);
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
}

impl Spending {
    /// With what the ledger says was paid.
    ///
    /// # Errors
    /// [`ChainError::Unavailable`]: the ledger cannot be read.
    pub(crate) fn open(limits: Limits) -> Result<Self, ChainError> {
        let paid = match (&limits.daily, &limits.ledger) {
            (Some(_), Some(path)) => read(path)?,
            _ => Paid::default(),
        };
        Ok(Self { limits, state: Mutex::new(State { paid, holds: false }) })
    }

    /// Most that is offered for a unit of gas, wei.
    pub(crate) const fn max_fee(&self) -> u128 {
        self.limits.max_fee
    }

    /// With what others have written down since.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(written) = self.limits.ledger.as_deref().and_then(|path| read(path).ok()) {
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
        let mut state = self.state();
        state.paid.add(fee, now);
        state.paid.today(now);
        if let Some(path) = &self.limits.ledger
            && let Err(error) = write(path, &state.paid)
        {
            warn!(path = %path.display(), %error, "what was paid for gas cannot be written down: make room");
        }
    }
}

fn read(path: &Path) -> Result<Paid, ChainError> {
    let unread = |why: String| {
        ChainError::Unavailable(format!(
            "{}: {why}; mend it, or remove it to begin the day's budget anew",
            path.display()
        ))
    };
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| unread(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Paid::default()),
        Err(error) => Err(unread(error.to_string())),
    }
}

fn write(path: &Path, paid: &Paid) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let aside = path.with_extension("tmp");
    std::fs::write(&aside, serde_json::to_vec(paid)?)?;
    std::fs::rename(aside, path)
}

#[cfg(test)]
mod tests {
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
        std::fs::write(&path, "{").unwrap();
        let unread = open().unwrap_err().to_string();
        assert!(unread.contains("gas.json") && unread.contains("remove it"), "{unread}");
    }
}
