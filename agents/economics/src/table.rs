//! Plain tables in text.

use std::fmt;

/// A table: a heading above columns that are as wide as what they hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With a title and the names of the columns.
    pub fn new<S: Into<String>>(title: impl Into<String>, columns: impl IntoIterator<Item = S>) -> Self {
        Self { title: title.into(), rows: vec![columns.into_iter().map(Into::into).collect()] }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max())
            .map(Option::unwrap_or_default)
            .collect();
        for row in &self.rows {
            let mut line = String::from(" ");
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Names stand to the left, numbers to the right.
                line += &if column == 0 { format!(" {cell:<width$}") } else { format!("  {cell:>width$}") };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f)
    }
}

/// A number with about three digits that matter.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return if value > 0.0 { "none".to_owned() } else { format!("{value}") };
    }
    let places = if size >= 100.0 || value == 0.0 {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 0.095 {
        2
    } else {
        4
    };
    format!("{value:.places$}")
}

/// A share of one in per cent.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new("t", ["a", "b"]);
        table.row(["long", "1"]);
        table.row(["c", "200"]);
        assert_eq!(table.to_string(), "t\n  a       b\n  long    1\n  c     200\n\n");
    }

    #[test]
    fn numbers_keep_what_matters() {
        assert_eq!(
            [1234.5, 12.34, 1.234, 0.01234, 0.0, -5.0].map(number),
            ["1234", "12.3", "1.23", "0.0123", "0", "-5.00"]
        );
        assert_eq!(number(f64::INFINITY), "none");
        assert_eq!(percent(0.125), "12.5 %");
    }
}
