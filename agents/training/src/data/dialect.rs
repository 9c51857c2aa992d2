//! How a table is written: what parts its columns, and which of its rows and columns are no data.

use csv::StringRecord;

use super::DataError;
use crate::model::MAX_WIDTH;

/// What parts columns where commas do not.
const OTHERS: [u8; 3] = [b';', b'\t', b'|'];
/// Lines that are looked at to find it.
const LINES: usize = 50;
/// Headers of a column that numbers the rows, as spreadsheets and libraries name it.
const INDEX: [&str; 4] = ["", "index", "unnamed: 0", "row"];

/// The delimiter: the one that parts the first lines alike, into the most columns; a comma if none does. Another than
/// the comma goes first: whoever writes decimal commas has as many of them, or fewer.
pub(super) fn delimiter(csv: &[u8]) -> u8 {
    let lines = || csv.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(LINES);
    let parts = |delimiter: u8| {
        let mut counts = lines().map(|line| count(line, delimiter));
        let first = counts.next().unwrap_or_default();
        if counts.all(|count| count == first) { first } else { 0 }
    };
    let others = OTHERS.iter().map(|other| (parts(*other), *other)).filter(|(parts, _)| *parts > 0);
    match others.max_by_key(|(parts, _)| *parts) {
        Some((most, other)) if most >= parts(b',') => other,
        _ => b',',
    }
}

/// How often a delimiter stands in a line, outside quotes.
fn count(line: &[u8], delimiter: u8) -> usize {
    let mut quoted = false;
    let mut count = 0usize;
    for byte in line {
        match *byte {
            b'"' => quoted = !quoted,
            byte if byte == delimiter && !quoted => count = count.saturating_add(1),
            _ => {}
        }
    }
    count
}

/// A number, with a decimal comma where commas part no columns.
pub(super) fn number(text: &str, delimiter: u8) -> Option<f64> {
    text.parse().ok().or_else(|| {
        let pointed = (delimiter != b',' && !text.contains('.')).then(|| text.replacen(',', ".", 1))?;
        pointed.parse().ok()
    })
}

/// The rows of a table, each with its line in the file.
pub(super) fn records(csv: &[u8], delimiter: u8) -> impl Iterator<Item = Result<(u64, StringRecord), DataError>> {
    let mut builder = csv::ReaderBuilder::new();
    builder.delimiter(delimiter).has_headers(false).flexible(true).trim(csv::Trim::All);
    builder.from_reader(csv).into_records().map(|record| {
        let record = record.map_err(|error| DataError::Syntax(error.to_string()))?;
        Ok((record.position().map_or(0, csv::Position::line), record))
    })
}

/// What of a table is no data.
pub(super) struct Shape {
    /// Columns of the first row.
    pub(super) columns: usize,
    /// Whether the first row names the columns.
    pub(super) header: bool,
    /// Whether the first column numbers the rows.
    pub(super) index: bool,
}

impl Shape {
    /// Reads the table once. A first row is a header if it has no number before its last column, or if it counts the
    /// columns, as pandas names those that nobody named, and has a class that no other row has.
    ///
    /// # Errors
    /// [`DataError`]: no table, or [`DataError::Index`] where the first column numbers many rows, and has another name
    /// than an index or none: nobody can tell whether it is data.
    pub(super) fn of(csv: &[u8], delimiter: u8) -> Result<Self, DataError> {
        let mut records = records(csv, delimiter);
        let Some(first) = records.next() else { return Err(DataError::TooFewRows(0)) };
        let (_, first) = first?;
        let columns = first.len();
        if !(2..=MAX_WIDTH as usize + 1).contains(&columns) {
            return Err(DataError::Columns(columns));
        }
        let class = first.get(columns - 1);
        // Whether the rows after the first are numbered from 0, 1 or 2 on.
        let (mut rows, mut recurs, mut numbered) = (0usize, false, [true; 3]);
        for record in records {
            let (_, record) = record?;
            let number = record.get(0).and_then(|field| field.parse::<usize>().ok());
            for (from, holds) in (0usize..).zip(&mut numbered) {
                *holds &= number == rows.checked_add(from);
            }
            recurs |= record.iter().next_back() == class;
            rows = rows.saturating_add(1);
        }
        let features = || first.iter().take(columns - 1);
        let named = first.get(0).is_some_and(is_index_name);
        let counted = || (0usize..).zip(features().skip(usize::from(named)));
        let names = counted().all(|(at, field)| field == at.to_string())
            // A class that is a number goes on counting.
            && class.is_some_and(|class| number(class, delimiter).is_none() || class == counted().count().to_string());
        let header = features().all(|field| number(field, delimiter).is_none()) || (rows > 0 && !recurs && names);
        let [from_0, from_1, from_2] = numbered;
        let counts = match first.get(0) {
            _ if header => from_0 || from_1,
            Some("0") => from_1,
            Some("1") => from_2,
            _ => false,
        };
        let index = match (columns > 2 && rows > 0 && counts, header && named) {
            (true, false) if rows >= LINES => {
                let name = first.get(0).filter(|_| header).unwrap_or_default().to_owned();
                return Err(DataError::Index { name });
            }
            (counts, named) => counts && named,
        };
        Ok(Self { columns, header, index })
    }
}

fn is_index_name(field: &str) -> bool {
    INDEX.iter().any(|name| field.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_parts_every_line_alike() {
        for (text, due) in [
            ("1,2,a\n3,4,b\n", b','),
            ("1;2;a\n3;4;b\n", b';'),
            ("1,5;2,5;a\n3,5;4;b\n", b';'),
            ("1,5;2,5;a\n3,5;4,5;b\n", b';'),
            ("1,5;a\n3,5;b\n", b';'),
            ("1\t2\ta\n", b'\t'),
            ("x|y|kind\n1|2|a, or b\n", b'|'),
            ("1,2,\"a;b;c;d\"\n3,4,\"e;f;g;h\"\n", b','),
            ("1,2,a;b\n3,4,c\n", b','),
            ("1,2,a;b\n3,4,c;d\n", b','),
            ("1 2 a\n", b','),
            ("", b','),
        ] {
            assert_eq!(delimiter(text.as_bytes()) as char, due as char, "{text:?}");
        }
    }

    #[test]
    fn a_decimal_comma_is_a_point_where_it_parts_nothing() {
        assert_eq!((number("1,5", b';'), number("1,5", b','), number("1.5", b';')), (Some(1.5), None, Some(1.5)));
        assert_eq!(
            (number("1.000,5", b';'), number("1,5,5", b';'), number("-2,5e3", b'\t')),
            (None, None, Some(-2500.0))
        );
    }
}
