//! Tabular classification data: CSV in, integer tensors out. Texts to go on with are in [`text`], texts to tell apart
//! in [`labelled`].
//!
//! Every row holds numbers and, in its last column, the class as any text. Columns are parted by commas, semicolons,
//! tabs or bars, whichever parts all lines alike. A first row without a single number before its last column is a
//! header, and so is one that counts the columns; a first column that counts the rows and is named so is left out.
//! Classes are numbered in the order of their names.
//!
//! Columns are standardised with mean and deviation of the *training part* and stored with a fixed exponent that covers
//! ±4 deviations; what lies beyond is clamped, and a constant column becomes zero. The quantised tensors are what the
//! job commits to, so this scaling is part of the data, not of the arithmetic. It uses sums, products, quotients and
//! square roots of doubles in a fixed order: the same bits on every machine.

mod dialect;
mod error;
pub mod labelled;
pub mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tensorlink_num::{Tensor, philox};
use tensorlink_types::TensorType;

pub use self::error::DataError;
use crate::compile::TrainingSet;
use crate::model::MAX_WIDTH;

/// Most rows of a data set.
pub const MAX_ROWS: usize = 1 << 24;
/// Largest CSV text in bytes.
pub const MAX_CSV: usize = 1 << 30;
/// Bits beyond the point that ±4 deviations leave: bits − 1 − 2.
const RANGE_BITS: u8 = 2;
/// Numbers that can all be classes; more, of which most rows have one of their own, are measurements.
const NUMBERS: usize = 20;
/// Counter word that keeps the draws of the split apart from others.
const STREAM: u32 = 0x7370_6c69;

/// A data set as read.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// Features of a row.
    pub width: usize,
    /// Row-major `[rows, width]`.
    pub values: Vec<f64>,
    /// Class of each row.
    pub labels: Vec<u32>,
    /// Names of the classes, sorted.
    pub classes: Vec<String>,
}

/// What a data set holds, for people to look at before they pay.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Census {
    /// Rows.
    pub rows: usize,
    /// Columns beside the class.
    pub columns: usize,
    /// Each class, and how many rows are of it.
    pub classes: BTreeMap<String, usize>,
}

impl Census {
    fn of(labels: &[u32], classes: &[String], columns: usize) -> Self {
        let mut counts: BTreeMap<String, usize> = classes.iter().map(|class| (class.clone(), 0)).collect();
        for class in labels.iter().filter_map(|label| classes.get(*label as usize)) {
            if let Some(count) = counts.get_mut(class) {
                *count = count.saturating_add(1);
            }
        }
        Self { rows: labels.len(), columns, classes: counts }
    }
}

/// How a column became integers: `round((x − mean) · factor · 2^exponent)`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ColumnScale {
    /// Mean of the training part.
    pub mean: f64,
    /// One over its standard deviation; 0 for a constant column.
    pub factor: f64,
}

/// A data set ready for training.
#[derive(Clone, PartialEq, Debug)]
pub struct Dataset {
    /// What the job trains on.
    pub training: TrainingSet,
    /// What it never sees, scaled alike.
    pub held_out: TrainingSet,
    /// Names of the classes, by label; none for the tokens of a tokenizer, which has them.
    pub classes: Vec<String>,
    /// How each column was scaled.
    pub scales: Vec<ColumnScale>,
}

impl Table {
    /// Reads CSV text.
    ///
    /// # Errors
    /// A [`DataError`] that names the row and what to do about it.
    pub fn parse(csv: &[u8]) -> Result<Self, DataError> {
        if csv.len() > MAX_CSV {
            return Err(DataError::TooLarge { what: "bytes", actual: csv.len(), limit: MAX_CSV });
        }
        let delimiter = dialect::delimiter(csv);
        let shape = dialect::Shape::of(csv, delimiter)?;
        let mut values = Vec::new();
        let mut names = Vec::new();
        for record in dialect::records(csv, delimiter).skip(usize::from(shape.header)) {
            let (row, record) = record?;
            if record.len() != shape.columns {
                return Err(DataError::Width { row, expected: shape.columns, actual: record.len() });
            }
            for (column, text) in (1..shape.columns).zip(record.iter()).skip(usize::from(shape.index)) {
                let number = || DataError::NotANumber { row, column, text: text.chars().take(40).collect() };
                let value = dialect::number(text, delimiter).ok_or_else(number)?;
                if value.is_nan() || value.abs() > libm::exp2(100.0) {
                    return Err(DataError::NotFinite { row, column, value });
                }
                values.push(value);
            }
            let name = record.iter().next_back().filter(|name| !name.is_empty());
            names.push(name.ok_or(DataError::NoClass { row })?.to_owned());
            if names.len() > MAX_ROWS {
                return Err(DataError::TooLarge { what: "rows", actual: names.len(), limit: MAX_ROWS });
            }
        }
        if names.len() < 2 {
            return Err(DataError::TooFewRows(names.len()));
        }
        let (labels, classes) = classes(names)?;
        Ok(Self { width: shape.columns.saturating_sub(1 + usize::from(shape.index)), values, labels, classes })
    }

    /// What it holds.
    pub fn census(&self) -> Census {
        Census::of(&self.labels, &self.classes, self.width)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// Holds out a fifth of the rows, drawn by `seed`, and scales all of them to `bits` bits by the others.
    ///
    /// # Errors
    /// None for a parsed table; those of tensor types are passed on rather than assumed away.
    pub fn split(&self, bits: u8, seed: u64) -> Result<Dataset, DataError> {
        let (training, held_out) = hold_out(self.rows(), seed);
        let scales = self.scales(&training);
        Ok(Dataset {
            training: self.quantise(&training, bits, &scales)?,
            held_out: self.quantise(&held_out, bits, &scales)?,
            classes: self.classes.clone(),
            scales,
        })
    }

    fn row(&self, row: usize) -> &[f64] {
        let start = row.saturating_mul(self.width);
        self.values.get(start..start.saturating_add(self.width)).unwrap_or_default()
    }

    fn scales(&self, rows: &[usize]) -> Vec<ColumnScale> {
        let count = rows.len().max(1) as f64;
        let mean = self.sum(rows, |x, _| x, &[]).into_iter().map(|sum| sum / count).collect::<Vec<_>>();
        let squares = self.sum(rows, |x, mean| (x - mean) * (x - mean), &mean);
        let scale = |(mean, squares): (f64, f64)| {
            let deviation = (squares / count).sqrt();
            // A deviation of mere rounding errors is no deviation.
            let constant = deviation <= mean.abs() * 1e-12;
            ColumnScale { mean, factor: if constant { 0.0 } else { 1.0 / deviation } }
        };
        mean.into_iter().zip(squares).map(scale).collect()
    }

    /// Column sums of `f(x, with[column])`, over the rows in order.
    fn sum(&self, rows: &[usize], f: impl Fn(f64, f64) -> f64, with: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.width];
        for row in rows {
            let with = with.iter().copied().chain(std::iter::repeat(0.0));
            for ((sum, x), with) in sums.iter_mut().zip(self.row(*row)).zip(with) {
                *sum += f(*x, with);
            }
        }
        sums
    }

    fn quantise(&self, rows: &[usize], bits: u8, scales: &[ColumnScale]) -> Result<TrainingSet, DataError> {
        let exponent = i16::from(bits).saturating_sub(1 + i16::from(RANGE_BITS));
        // SAFETY of the casts: rows and columns are bounded on arrival.
        let (count, width) = (rows.len() as u32, self.width as u32);
        let ty = TensorType::new(bits, exponent, &[count, width])?;
        let (unit, limit) = (libm::exp2(f64::from(exponent)), ty.limit() as f64);
        let quantise = |(x, scale): (&f64, &ColumnScale)| {
            let scaled = (x - scale.mean) * scale.factor * unit;
            scaled.round_ties_even().clamp(-limit, limit) as i64
        };
        let features: Vec<i64> = rows.iter().flat_map(|row| self.row(*row).iter().zip(scales).map(quantise)).collect();
        let labels: Vec<i64> = rows.iter().filter_map(|row| self.labels.get(*row)).map(|l| i64::from(*l)).collect();
        Ok(TrainingSet {
            features: Tensor::from_wide(ty, &features)?,
            labels: Tensor::from_wide(TensorType::new(16, 0, &[count])?, &labels)?,
        })
    }
}

/// So many rows in an order drawn by a seed, parted: those to train on, and a fifth that is held out.
fn hold_out(rows: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..rows).collect();
    // SAFETY of the casts: the two halves of the seed; a row number is below 2^24.
    let key = [seed as u32, (seed >> 32) as u32];
    order.sort_by_key(|row| (philox::philox4x32(key, [*row as u32, 0, 0, STREAM]), *row));
    let held_out = order.split_off(rows.saturating_sub(rows.div_ceil(5).min(rows.saturating_sub(1))));
    (order, held_out)
}

/// What a class looks like to people: numbers by what they are worth, all else without its case.
fn looks(class: &str) -> String {
    class.parse::<f64>().map_or_else(|_| class.to_lowercase(), |number| number.to_string())
}

/// Numbers the classes in the order of their names.
fn classes(names: Vec<String>) -> Result<(Vec<u32>, Vec<String>), DataError> {
    let mut numbers: BTreeMap<&String, u32> = names.iter().map(|name| (name, 0)).collect();
    let distinct = numbers.len();
    if distinct > NUMBERS && distinct > names.len() / 2 && numbers.keys().all(|name| name.parse::<f64>().is_ok()) {
        return Err(DataError::Measurement { distinct, rows: names.len() });
    }
    if distinct > MAX_WIDTH as usize {
        return Err(DataError::TooManyClasses(distinct));
    }
    let mut seen = BTreeMap::new();
    for name in numbers.keys() {
        if let Some(other) = seen.insert(looks(name), (*name).clone()) {
            return Err(DataError::AlikeClasses(other, (*name).clone()));
        }
    }
    if numbers.len() < 2 {
        return Err(DataError::OneClass(names.into_iter().next().unwrap_or_default()));
    }
    for (number, slot) in (0u32..).zip(numbers.values_mut()) {
        *slot = number;
    }
    let labels = names.iter().filter_map(|name| numbers.get(name).copied()).collect();
    let classes = numbers.into_keys().cloned().collect();
    Ok((labels, classes))
}

#[cfg(test)]
mod tests;
