//! Since when this machine has heard the network: whoever was out of it itself gives nobody up.

/// Seconds in which somebody of the network is heard, by whoever is in it.
const DEAF: u64 = 20;

/// What this machine can have heard.
pub struct Hearing {
    since: u64,
    looked: u64,
}

impl Hearing {
    /// From now on.
    pub const fn new(now: u64) -> Self {
        Self { since: now, looked: now }
    }

    /// Whether somebody is heard, any worker having been `heard` last at that time. Who slept, or hears nobody at all,
    /// is out of the network itself: everybody has time to be heard again. Where less silence is `borne` of a worker,
    /// so it is of all of them.
    pub fn look(&mut self, (heard, borne): (Option<u64>, u64), now: u64) -> bool {
        let most = DEAF.min(borne);
        let unheard = heard.is_none_or(|at| now.saturating_sub(at) > most);
        let deaf = unheard || now.saturating_sub(self.looked) > DEAF;
        self.looked = now;
        if deaf {
            self.since = now;
        }
        !deaf
    }

    /// It had something else to do until now, and did not sleep.
    pub const fn awake(&mut self, now: u64) {
        self.looked = now;
    }

    /// Since when.
    pub const fn since(&self) -> u64 {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_slept_or_hears_nobody_begins_anew() {
        let mut hearing = Hearing::new(100);
        assert!(hearing.look((Some(99), 60), 101));
        assert_eq!(hearing.since(), 100);
        assert!(!hearing.look((Some(121), 60), 122), "it slept");
        assert!(hearing.look((Some(121), 60), 123));
        assert_eq!(hearing.since(), 122);
        assert!(!hearing.look((Some(121), 60), 142), "nobody is heard");
        assert!(!hearing.look((None, 60), 143));
        assert_eq!(hearing.since(), 143);
        assert!(hearing.look((Some(143), 5), 148));
        assert!(!hearing.look((Some(143), 5), 149), "as little as is borne of each");
        hearing.awake(180);
        assert!(hearing.look((Some(180), 5), 181), "it was busy");
    }
}
