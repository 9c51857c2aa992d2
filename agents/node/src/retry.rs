//! Bounded retry with exponential back-off.

use std::future::Future;
use std::time::Duration;

use crate::ports::Clock;

/// How often and how long to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// Wait after the first failure; doubles after each.
    pub first: Duration,
    /// Longest wait.
    pub longest: Duration,
}

impl Policy {
    /// A handful of attempts within a few seconds: for a peer that is about to answer.
    pub const PEER: Self = Self { attempts: 6, first: Duration::from_millis(200), longest: Duration::from_secs(3) };
}

/// What a failed attempt means.
#[derive(Debug)]
pub enum Failure<E> {
    /// Try again.
    Transient(E),
    /// Trying again is pointless.
    Permanent(E),
}

/// Runs `attempt` until it succeeds, fails for good, or the policy is used up; returns the last error.
///
/// # Errors
/// The error of the last attempt.
pub async fn retry<T, E, F, Fut>(clock: &dyn Clock, policy: Policy, mut attempt: F) -> Result<T, E>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Failure<E>>>,
{
    let mut wait = policy.first;
    let mut left = policy.attempts.max(1);
    loop {
        left -= 1;
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(Failure::Permanent(error)) => return Err(error),
            Err(Failure::Transient(error)) if left == 0 => return Err(error),
            Err(Failure::Transient(_)) => clock.sleep(wait).await,
        }
        wait = wait.saturating_mul(2).min(policy.longest);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::ports::SystemClock;

    const QUICK: Policy = Policy { attempts: 3, first: Duration::from_millis(1), longest: Duration::from_millis(2) };

    #[tokio::test]
    async fn stops_after_the_attempts() {
        let calls = AtomicU32::new(0);
        let result: Result<(), u32> =
            retry(&SystemClock, QUICK, || async { Err(Failure::Transient(calls.fetch_add(1, Ordering::Relaxed))) })
                .await;
        assert_eq!(result, Err(2));
    }

    #[tokio::test]
    async fn stops_at_a_permanent_failure() {
        let calls = AtomicU32::new(0);
        let result: Result<(), u32> =
            retry(&SystemClock, QUICK, || async { Err(Failure::Permanent(calls.fetch_add(1, Ordering::Relaxed))) })
                .await;
        assert_eq!((result, calls.into_inner()), (Err(0), 1));
    }
}
