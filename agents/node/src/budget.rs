//! The memory that a node lends, of which everything that it loads takes its part, and gives it back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Memory lent, bytes.
#[derive(Debug)]
pub struct Budget {
    total: u64,
    taken: Mutex<u64>,
    freed: Notify,
}

/// A part of a [`Budget`]; given back on drop.
#[derive(Debug)]
pub struct Hold {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    /// So many bytes, none of them taken.
    pub fn new(total: u64) -> Arc<Self> {
        Arc::new(Self { total, taken: Mutex::new(0), freed: Notify::new() })
    }

    /// All of it, bytes.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// What nobody has taken, bytes.
    pub fn left(&self) -> u64 {
        self.total.saturating_sub(*self.taken())
    }

    fn taken(&self) -> MutexGuard<'_, u64> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes so many bytes, if they are there; none if they are not.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Option<Hold> {
        let mut hold = self.nothing();
        hold.resize(bytes).then_some(hold)
    }

    /// Takes nothing yet.
    pub fn nothing(self: &Arc<Self>) -> Hold {
        Hold { budget: self.clone(), bytes: 0 }
    }

    /// Takes so many bytes once others have given them back; none if there never are as many.
    pub async fn wait(self: &Arc<Self>, bytes: u64) -> Option<Hold> {
        loop {
            let freed = self.freed.notified();
            match self.take(bytes) {
                None if bytes <= self.total => freed.await,
                taken => return taken,
            }
        }
    }
}

impl Hold {
    /// How many bytes these are.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes it so many bytes, if there are as many; whether there are.
    pub fn resize(&mut self, bytes: u64) -> bool {
        let budget = self.budget.clone();
        let mut taken = budget.taken();
        let fits = bytes <= self.bytes || taken.saturating_sub(self.bytes).saturating_add(bytes) <= budget.total;
        if fits {
            self.set(&mut taken, bytes);
        }
        fits
    }

    /// Makes it so many bytes whether they are there or not: they were promised before.
    pub fn owe(&mut self, bytes: u64) {
        let budget = self.budget.clone();
        self.set(&mut budget.taken(), bytes);
    }

    fn set(&mut self, taken: &mut u64, bytes: u64) {
        let others = taken.saturating_sub(self.bytes);
        let frees = bytes < self.bytes;
        // What is given back must be what was taken.
        self.bytes = bytes.min(u64::MAX.saturating_sub(others));
        *taken = others.saturating_add(self.bytes);
        // Who waits would wake itself by what it tries.
        if frees {
            self.budget.freed.notify_waiters();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.owe(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_taken_is_given_back_and_who_waits_gets_it() {
        let budget = Budget::new(100);
        let first = budget.take(60).unwrap();
        assert!(budget.take(41).is_none() && budget.wait(101).await.is_none());
        assert_eq!((budget.left(), first.bytes()), (40, 60));
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.wait(50).await.unwrap().bytes() }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        assert_eq!(waiting.await.unwrap(), 50);
        assert_eq!(budget.left(), 100);
    }

    #[test]
    fn what_was_promised_before_is_owed_and_others_wait_for_it() {
        let budget = Budget::new(100);
        let (mut owed, mut other) = (budget.nothing(), budget.take(60).unwrap());
        assert!(!owed.resize(41) && owed.resize(40));
        assert!(other.resize(50) && other.resize(60), "what is given back is there again");
        owed.owe(150);
        assert_eq!(budget.left(), 0);
        assert!(budget.take(1).is_none() && !other.resize(61) && other.resize(10));
        owed.owe(u64::MAX);
        drop(other);
        assert_eq!((budget.left(), owed.bytes()), (0, u64::MAX - 10));
        drop(owed);
        assert_eq!(budget.left(), 100);
    }
}
