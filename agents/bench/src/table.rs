//! Figures for people: a line each, as they come.

use super::figure::{Figure, Goal, Unit, Verdict};

/// The line above all.
pub(super) fn header() -> String {
    line("what", "goal", "measured", "", "from")
}

/// A figure's line.
pub(super) fn show(figure: &Figure) -> String {
    let goal = match figure.goal {
        Some(Goal::AtLeast(least)) => format!(">= {}", number(least, figure.unit)),
        Some(Goal::AtMost(most)) => format!("<= {}", number(most, figure.unit)),
        None => String::new(),
    };
    let measured = figure.measured.map(|measured| number(measured, figure.unit)).unwrap_or_default();
    let verdict = match figure.verdict {
        Verdict::Met => "met",
        Verdict::Missed => "MISSED",
        Verdict::NotMeasured => "not measured",
        Verdict::NoGoal => "",
    };
    line(&figure.what, &goal, &measured, verdict, &figure.note)
}

fn line(what: &str, goal: &str, measured: &str, verdict: &str, note: &str) -> String {
    format!("{what:<66} {goal:>12} {measured:>10}  {verdict:<12}  {note}").trim_end().to_owned()
}

fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Times => format!("{value:.2} x"),
        Unit::Share => format!("{:.2} %", 100.0 * value),
        Unit::Number => format!("{value:.4}"),
        Unit::Distance => format!("{value:.1e}"),
        Unit::Gas => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;

    #[test]
    fn a_line_says_all_of_a_figure() {
        let figure = Figure::new(Row::Memory, "memory", (1.25, Unit::Times), Some(Goal::AtMost(1.5))).from("260 MB");
        let line = show(&figure);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["memory", "<=", "1.50", "x", "1.25", "x", "met", "260", "MB"]);
        let line = show(&Figure::absent(Row::Model, "accuracy", "give --model"));
        assert!(line.contains("not measured  give --model"), "{line}");
    }
}
