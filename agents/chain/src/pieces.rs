//! How many blocks an endpoint tells the logs of at once. Each bounds that in its own way and says so in its own words:
//! what it refuses teaches where the bound is, and is kept for every reader of the endpoint.

use std::time::Duration;

use tokio::time::Instant;

/// Most blocks in one request for logs.
const MOST: u64 = 2_000;
/// How long a refusal is believed: the bound may be one on the logs that there are.
const BELIEVED: Duration = Duration::from_secs(600);

/// What is known of an endpoint's bound.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pieces {
    /// Most blocks that were given.
    given: u64,
    /// Least blocks that were refused, and when.
    refused: Option<(u64, Instant)>,
    /// Whether it was said that there is a bound.
    said: bool,
}

impl Pieces {
    /// Blocks to ask for next: as many as were given, or between those and what was refused, to know better.
    pub(crate) fn size(&self, now: Instant) -> u64 {
        match self.refused {
            Some((refused, at)) if now.duration_since(at) < BELIEVED => {
                let between = self.given.saturating_add(refused) / 2;
                // Nothing is known to be given yet: down by large steps.
                if self.given == 0 { refused.div_ceil(4) } else { between }
            }
            _ => MOST,
        }
    }

    /// So many blocks were given at once.
    pub(crate) fn gave(&mut self, blocks: u64) {
        let below = self.refused.map_or(MOST, |(refused, _)| refused.saturating_sub(1));
        self.given = self.given.max(blocks.min(below));
    }

    /// Whether that there is a bound was not said yet; it is said now.
    pub(crate) const fn is_news(&mut self) -> bool {
        !std::mem::replace(&mut self.said, true)
    }

    /// So many blocks were refused; whether fewer may be given.
    pub(crate) fn refused(&mut self, blocks: u64, now: Instant) -> bool {
        // A single one is not refused for its size.
        if blocks <= 1 {
            return false;
        }
        self.refused = Some((blocks, now));
        if self.given >= blocks {
            self.given = 0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests and refusals until so many blocks are read from an endpoint that gives `most` at once.
    fn read(pieces: &mut Pieces, blocks: u64, most: u64, now: Instant) -> (u64, u64) {
        let (mut next, mut requests, mut refusals) = (0, 0, 0);
        while next < blocks {
            let size = pieces.size(now).min(blocks - next);
            requests += 1;
            if size <= most {
                pieces.gave(size);
                next += size;
            } else {
                refusals += 1;
                assert!(pieces.refused(size, now), "{size}");
            }
        }
        (requests, refusals)
    }

    #[test]
    fn a_bound_is_found_and_kept() {
        let start = Instant::now();
        for most in [1, 2, 7, 10, 100, 499, 500, 1_000, 1_999] {
            let mut pieces = Pieces::default();
            let (_, refusals) = read(&mut pieces, 40 * MOST, most, start);
            // Three steps down by fours, and nine halvings of what lies between.
            assert!(refusals <= 12, "{most}: {refusals}");
            let later = start + BELIEVED / 2;
            assert_eq!(read(&mut pieces, 1_000 * most, most, later), (1_000, 0), "{most}");
            // It may have been another bound; or it has changed.
            let (requests, refusals) = read(&mut pieces, 100 * MOST, MOST, start + 2 * BELIEVED);
            assert_eq!((requests, refusals), (100, 0), "{most}");
        }
        let mut pieces = Pieces::default();
        assert_eq!(read(&mut pieces, 10 * MOST, MOST, start), (10, 0));
    }

    #[test]
    fn what_was_given_may_be_refused_later() {
        let now = Instant::now();
        let mut pieces = Pieces::default();
        read(&mut pieces, 10 * MOST, MOST, now);
        let (_, refusals) = read(&mut pieces, 10 * MOST, 3, now);
        assert!(refusals <= 12, "{refusals}");
        assert_eq!(pieces.size(now), 3);
        assert!(pieces.is_news() && !pieces.is_news(), "said once");
        assert!(!pieces.refused(1, now), "no fewer than one");
        assert_eq!(pieces.size(now), 3);
    }
}
