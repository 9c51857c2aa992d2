//! Times, durations and numbers as people read them.

/// A time of the chain, seconds since 1970, in UTC.
pub(super) fn time(seconds: u64) -> String {
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
pub(super) fn duration(seconds: u64) -> String {
    let units = [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let parts: Vec<String> =
        units.iter().filter(|(n, _)| *n > 0).take(2).map(|(n, unit)| format!("{n} {unit}")).collect();
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

/// A number with seven digits at most.
pub(super) fn real(number: f64) -> String {
    let rounded: f64 = format!("{number:.6e}").parse().unwrap_or(number);
    if rounded == 0.0 || (1e-4..1e7).contains(&rounded.abs()) { format!("{rounded}") } else { format!("{rounded:e}") }
}

/// `1st`, `2nd`, `3rd`, `4th`.
pub(super) fn ordinal(n: u64) -> String {
    let ending = match (n % 10, n % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// `1 block`, `2 blocks`.
pub(super) fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// `3` or `3 to 5`, both ends included.
pub(super) fn span(first: u64, last: u64) -> String {
    if first >= last { first.to_string() } else { format!("{first} to {last}") }
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
    fn durations_and_numbers_are_short() {
        for (seconds, text) in [(0, "0 s"), (61, "1 min 1 s"), (43_200, "12 h"), (90_061, "1 d 1 h")] {
            assert_eq!(duration(seconds), text);
        }
        for (number, text) in [
            (-0.9921875, "-0.9921875"),
            (0.0, "0"),
            (1.0 / 3.0, "0.3333333"),
            (2e-9, "2e-9"),
            (123_456_789.0, "1.234568e8"),
        ] {
            assert_eq!(real(number), text);
        }
        let ordinals = [1, 2, 3, 4, 11, 12, 13, 21, 112].map(ordinal);
        assert_eq!(ordinals, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th"]);
        assert_eq!(
            (count(1, "block"), count(2, "block"), span(3, 3), span(3, 5)),
            ("1 block".into(), "2 blocks".into(), "3".into(), "3 to 5".into())
        );
    }
}
