//! Hours of the day in which a worker takes jobs.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

const MINUTE: u64 = 60;
/// Minutes of a day.
const DAY: u64 = 1440;

/// A part of each day, UTC; it may go on past midnight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hours {
    /// First minute of the day.
    from: u64,
    /// The minute after the last.
    to: u64,
}

/// No hours of the day.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0:?} are no hours of the day: write them as 22:00-07:00 (UTC), or leave them out for any")]
pub struct UnknownHours(String);

impl Hours {
    /// Whether a time, seconds since 1970, lies in them.
    pub const fn contain(self, time: u64) -> bool {
        let minute = time / MINUTE % DAY;
        if self.from < self.to {
            self.from <= minute && minute < self.to
        } else {
            self.from <= minute || minute < self.to
        }
    }
}

/// A minute of the day as `07:30`; midnight is 24:00, too.
fn minute(text: &str) -> Option<u64> {
    let (hour, minute) = text.trim().split_once(':')?;
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    let (hour, minute) = (number(hour)?, number(minute).filter(|_| minute.len() == 2)?);
    let all = hour.checked_mul(MINUTE)?.checked_add(minute)?;
    (minute < MINUTE && all <= DAY).then_some(all)
}

impl FromStr for Hours {
    type Err = UnknownHours;

    fn from_str(text: &str) -> Result<Self, UnknownHours> {
        let parse = || {
            let (from, to) = text.split_once('-')?;
            let (from, to) = (minute(from)?, minute(to)?);
            (from < DAY && from != to).then_some(Self { from, to })
        };
        parse().ok_or_else(|| UnknownHours(text.to_owned()))
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = [self.from, self.to].map(|minute| (minute / MINUTE, minute % MINUTE));
        write!(f, "{:02}:{:02}-{:02}:{:02}", from.0, from.1, to.0, to.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_of_each_day_and_may_go_on_past_midnight() {
        let at = |day: u64, hour: u64, minute: u64| ((day * 24 + hour) * 60 + minute) * 60;
        let night: Hours = "22:00-07:30".parse().unwrap();
        for (hour, minute, within) in [(21, 59, false), (22, 0, true), (0, 0, true), (7, 29, true), (7, 30, false)] {
            assert_eq!(night.contain(at(20_000, hour, minute)), within, "{hour}:{minute}");
        }
        let morning: Hours = "9:05 - 12:00".parse().unwrap();
        for (hour, minute, within) in [(9, 4, false), (9, 5, true), (11, 59, true), (12, 0, false), (0, 0, false)] {
            assert_eq!(morning.contain(at(1, hour, minute)), within, "{hour}:{minute}");
        }
        let evening: Hours = "18:00-24:00".parse().unwrap();
        assert!(evening.contain(at(3, 23, 59)) && !evening.contain(at(4, 0, 0)));
    }

    #[test]
    fn hours_are_written_as_they_are_read() {
        for text in ["22:00-07:30", "00:00-24:00", "09:05-12:00"] {
            assert_eq!(text.parse::<Hours>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "-",
            "22-7",
            "22:00",
            "22:00-",
            "24:00-07:00",
            "22:60-07:00",
            "22:00-25:00",
            "22:5-07:00",
            "+2:00-07:00",
            "07:00-07:00",
            "18446744073709551615:00-07:00",
        ] {
            let error = wrong.parse::<Hours>().unwrap_err().to_string();
            assert!(error.contains("22:00-07:00"), "{error}");
        }
    }
}
