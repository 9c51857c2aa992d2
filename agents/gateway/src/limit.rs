//! How often each key may ask: a token bucket for each.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One bucket for each key, filled at the same rate.
#[derive(Debug)]
pub struct Buckets {
    per_minute: u32,
    buckets: Vec<Mutex<Bucket>>,
}

/// Requests left at a time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    level: f64,
    at: Instant,
}

impl Buckets {
    /// Full buckets for `keys` keys. Each holds what arrives in six seconds, at least one request.
    pub fn new(keys: usize, per_minute: u32, now: Instant) -> Self {
        let per_minute = per_minute.max(1);
        let mut this = Self { per_minute, buckets: vec![] };
        let full = Bucket { level: this.capacity(), at: now };
        this.buckets.resize_with(keys, || Mutex::new(full));
        this
    }

    /// Requests per minute.
    pub const fn per_minute(&self) -> u32 {
        self.per_minute
    }

    /// Takes a request of a key's, counted from 0.
    ///
    /// # Errors
    /// After how long there will be one, if there is none now.
    pub fn take(&self, key: usize, now: Instant) -> Result<(), Duration> {
        let Some(bucket) = self.buckets.get(key) else { return Err(Duration::from_secs(60)) };
        let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let per_second = f64::from(self.per_minute) / 60.0;
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.level = (bucket.level + passed * per_second).min(self.capacity());
        bucket.at = bucket.at.max(now);
        if bucket.level >= 1.0 {
            bucket.level -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - bucket.level) / per_second))
    }

    fn capacity(&self) -> f64 {
        (f64::from(self.per_minute) / 10.0).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_again_for_its_key_only() {
        let start = Instant::now();
        let buckets = Buckets::new(2, 60, start);
        for _ in 0..6 {
            assert_eq!(buckets.take(0, start), Ok(()));
        }
        assert_eq!(buckets.take(0, start), Err(Duration::from_secs(1)));
        assert_eq!(buckets.take(1, start), Ok(()));
        let later = start + Duration::from_secs(1);
        assert_eq!(buckets.take(0, later), Ok(()));
        assert!(buckets.take(0, later).is_err());
        // However long nobody asks, no more than the capacity gathers.
        let much_later = start + Duration::from_secs(1_000);
        assert_eq!((0..20).filter(|_| buckets.take(0, much_later).is_ok()).count(), 6);
    }

    #[test]
    fn time_that_runs_backwards_gives_nothing() {
        let start = Instant::now() + Duration::from_secs(10);
        let buckets = Buckets::new(1, 1, start);
        assert_eq!(buckets.take(0, start), Ok(()));
        assert!(buckets.take(0, start - Duration::from_secs(5)).is_err());
        assert!(buckets.take(0, start).is_err());
        assert!(buckets.take(7, start).is_err());
    }
}
