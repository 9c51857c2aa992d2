//! How the rows of a call choose their successors, as their texts' owners say.

use tensorlink_num::Mantissas;

use super::attention::Span;
use super::piece::Need;
use crate::choice::{CONTROLS, NEGATIVE, POSITIVE, TEMPERATURE, TOKEN};

/// Controls of the rows of a call, one after another.
pub(super) struct Choices(pub(super) Vec<i64>);

/// A row of controls.
type Row = [i64];

impl Choices {
    fn rows(&self, span: &Span) -> impl Iterator<Item = &Row> {
        self.0.chunks(CONTROLS).skip(span.first as usize).take(span.rows as usize)
    }

    /// Rows that have a successor chosen, and their controls.
    pub(super) fn chosen(&self) -> (Vec<u32>, Vec<i64>) {
        let rows = (0u32..).zip(self.0.chunks(CONTROLS));
        let (rows, controls): (Vec<_>, Vec<_>) = rows.filter(|(_, row)| chooses(row)).unzip();
        (rows, controls.concat())
    }

    /// The tokens of a session's rows.
    pub(super) fn tokens(&self, span: &Span) -> impl Iterator<Item = i64> {
        self.rows(span).map(|row| at(row, TOKEN))
    }

    /// Whether the text of each row that has a successor chosen has each token of the vocabulary, for sessions that had
    /// these tokens before: mantissas of `rows × vocabulary`.
    pub(super) fn seen<'a>(&self, sessions: impl Iterator<Item = (&'a Span, &'a [i64])>, vocabulary: u32) -> Mantissas {
        let mut all = Vec::new();
        for (span, before) in sessions {
            let mut seen = vec![0i8; vocabulary as usize];
            // As GatherGrad takes them (rule N-41).
            let last = i64::from(vocabulary).saturating_sub(1);
            let see = |token: i64, seen: &mut Vec<i8>| {
                let place = usize::try_from(token.min(last)).unwrap_or(0);
                if let Some(flag) = seen.get_mut(place) {
                    *flag = 1;
                }
            };
            before.iter().for_each(|token| see(*token, &mut seen));
            for row in self.rows(span) {
                see(at(row, TOKEN), &mut seen);
                if chooses(row) {
                    all.extend_from_slice(&seen);
                }
            }
        }
        Mantissas::I8(all)
    }
}

/// What rows of controls need.
pub(super) fn need(controls: &[i64]) -> Need {
    let any = |wants: fn(&Row) -> bool| controls.chunks(CONTROLS).any(wants);
    Need {
        // Below 0 is none, too (rule N-36).
        temperature: any(|row| at(row, TEMPERATURE) > 0),
        penalty: any(|row| at(row, POSITIVE) != 0 || at(row, NEGATIVE) != 0),
    }
}

fn chooses(row: &Row) -> bool {
    at(row, 0) != 0
}

fn at(row: &Row, column: usize) -> i64 {
    row.get(column).copied().unwrap_or_default()
}
