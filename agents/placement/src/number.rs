//! Numbers from outside are refused unless they are finite and of the right sign, so that no sum here is NaN.

/// A profile that cannot be used. Who sent it should correct it, or be left out.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum Invalid {
    /// A value that must be above zero.
    #[error("{what} must be positive, finite and below 1e30, and are {value}")]
    NotPositive {
        /// Which.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// A value that may be zero.
    #[error("{what} must be at least zero, finite and below 1e30, and are {value}")]
    Negative {
        /// Which.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// More or fewer than can be planned with.
    #[error("{what}: {given} given, and from {least} to {most} can be planned with")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many were given.
        given: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
}

/// Values from here on are errors of measurement; below it, no product of three overflows.
const LIMIT: f64 = 1e30;
/// The least that counts as positive: quotients of two accepted values stay finite.
const LEAST: f64 = 1e-30;

pub(crate) fn positive(what: &'static str, value: f64) -> Result<(), Invalid> {
    if (LEAST..LIMIT).contains(&value) { Ok(()) } else { Err(Invalid::NotPositive { what, value }) }
}

pub(crate) fn at_least_zero(what: &'static str, value: f64) -> Result<(), Invalid> {
    if (0.0..LIMIT).contains(&value) { Ok(()) } else { Err(Invalid::Negative { what, value }) }
}

pub(crate) fn counted(what: &'static str, given: usize, least: usize, most: usize) -> Result<(), Invalid> {
    if (least..=most).contains(&given) { Ok(()) } else { Err(Invalid::Count { what, given, least, most }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_refused() {
        for value in [f64::NAN, f64::INFINITY, -f64::INFINITY, -1.0, 1e30] {
            assert!(positive("x", value).is_err() && at_least_zero("x", value).is_err(), "{value}");
        }
        assert!(positive("x", 0.0).is_err());
        assert_eq!(at_least_zero("x", 0.0), Ok(()));
        assert_eq!(positive("x", 1.0), Ok(()));
    }
}
