//! Numbers as people read them; times are those of [`when`](crate::when).

pub(super) use crate::when::{duration, time};

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
    fn numbers_are_short() {
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
