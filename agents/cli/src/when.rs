//! Times and durations as people read them: never seconds since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

/// A time of the chain, seconds since 1970, in UTC.
pub fn time(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days of the civil calendar in eras of 400 years that begin with a March, by Howard Hinnant's `civil_from_days`.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", rest / 3_600, rest / 60 % 60, rest % 60)
}

/// So many seconds: the two largest units that are not zero.
pub fn duration(seconds: u64) -> String {
    let units = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let parts: Vec<String> =
        units.iter().filter(|(n, _)| *n > 0).take(2).map(|(n, unit)| format!("{n} {unit}")).collect();
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

/// A time, and how far it is from another: `2026-11-26 12:00:05 UTC, in 40 s`.
pub fn due(seconds: u64, now: u64) -> String {
    let far = match seconds.checked_sub(now) {
        Some(left) => format!("in {}", duration(left)),
        None => format!("{} ago", duration(now.saturating_sub(seconds))),
    };
    format!("{}, {far}", time(seconds))
}

/// This machine's clock, where no block tells the time.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_868_799, "2000-02-29 23:59:59 UTC"),
            (1_800_000_000, "2027-01-15 08:00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn durations_are_short() {
        for (seconds, text) in [(0, "0 s"), (61, "1 min 1 s"), (43_200, "12 h"), (90_061, "1 d 1 h")] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn it_is_told_how_far_a_time_is() {
        assert_eq!(due(1_800_000_000, 1_799_999_960), "2027-01-15 08:00:00 UTC, in 40 s");
        assert_eq!(due(1_800_000_000, 1_800_000_000), "2027-01-15 08:00:00 UTC, in 0 s");
        assert_eq!(due(1_800_000_000, 1_800_000_090), "2027-01-15 08:00:00 UTC, 1 min 30 s ago");
    }
}
