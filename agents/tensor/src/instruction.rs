//! An accepted operator, its attributes decoded.
//!
//! An engine is handed programs that the checker accepted, and checks each operator again, cheaply: no accumulator
//! below may leave `i64`.

use tensorlink_num::check_operator;
use tensorlink_num::bounds::{norm_exponent, norm_places};
use tensorlink_program::EngineError;
use tensorlink_types::{Opcode, Operator, TensorType};

/// An opcode with its attributes; its existence is the proof that [`check_operator`] passed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instruction {
    MatMul {
        shift: i32,
    },
    Transpose,
    Combine {
        ca: i64,
        cb: i64,
        shift: i32,
    },
    Scale {
        c: i64,
        shift: i32,
    },
    Mul {
        shift: i32,
    },
    Relu,
    ReluGrad,
    Lookup(Lookup),
    /// Of every so many elements.
    RowMax {
        run: usize,
        causal: bool,
    },
    ExpNeg {
        multiplier: i64,
        input_shift: i32,
        causal: bool,
    },
    /// Of every so many elements.
    RowSum {
        run: usize,
        shift: i32,
    },
    Normalize {
        bits: u32,
    },
    OneHotSub {
        one: i64,
        shift: i32,
    },
    Sample {
        first_row: u32,
    },
    ScaledMatMul {
        offset: usize,
        shift: i32,
    },
    HeadScores {
        heads: usize,
        shift: i32,
    },
    HeadMix {
        heads: usize,
        shift: i32,
    },
    Norm(Norm),
    Rope {
        heads: usize,
        shift: i32,
    },
    Gather {
        shift: i32,
    },
    /// Of every so many elements.
    RowAbsMax {
        run: usize,
    },
    /// Of every so many elements.
    RowArgMax {
        run: usize,
    },
    /// From every so many elements.
    RowPick {
        run: usize,
    },
    /// Of every so many elements.
    TailSum {
        run: usize,
        bound: i64,
        weighted: bool,
        shift: i32,
    },
    Threshold {
        step: i64,
    },
    /// `places` is the c of rule N-36.
    Perturb {
        bound: i64,
        places: u32,
        shift: i32,
    },
    Choose {
        length: i64,
    },
    RowCombine {
        ca: i64,
        cb: i64,
        shift: i32,
    },
    RowMul {
        shift: i32,
    },
    /// Of every so many elements.
    InverseNorm {
        run: usize,
        spread: Spread,
        shift: i32,
    },
    GatherGrad {
        shift: i32,
    },
    Ratio {
        bits: u32,
        floor: i64,
    },
    Shrink {
        most: i64,
        bits: u32,
    },
    AtStep,
    GroupSum {
        heads: usize,
        shift: i32,
    },
    Dropout(Dropout),
    Slice {
        offset: usize,
    },
    Dither {
        bits: u32,
        stream: u32,
    },
    /// Of every so many elements.
    RowShift {
        run: usize,
        bits: u32,
    },
    ShiftRows,
    ShiftedMatMul {
        offset: usize,
        shift: i32,
    },
}

/// Attributes of a Dropout (rule N-46).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropout {
    pub(crate) keep: i64,
    pub(crate) stream: u32,
    pub(crate) c: i64,
    pub(crate) shift: i32,
}

/// Attributes of a Lookup (rule N-18), and the `p` of its table of `2^p + 1` entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup {
    pub(crate) input_shift: i32,
    pub(crate) low: i64,
    pub(crate) fraction_bits: u32,
    pub(crate) shift: i32,
    pub(crate) index_bits: u32,
}

/// What mean and spread of a row are computed by (rules N-28 and N-40).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) center: bool,
    pub(crate) epsilon: i64,
    /// The f of the rules.
    pub(crate) places: u32,
}

impl Spread {
    fn of(operator: &Operator) -> Self {
        let attribute = |i: usize| operator.attributes.get(i).copied().unwrap_or_default();
        let bits = operator.operands.first().map_or(0, |x| x.ty.bits());
        Self { center: attribute(0) == 1, epsilon: attribute(1), places: norm_places(bits).into() }
    }
}

/// Attributes of a Norm (rule N-28).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    pub(crate) spread: Spread,
    /// Exponent of a normalised element, which has two bits more.
    pub(crate) exponent: u32,
    pub(crate) bias_shift: u32,
    pub(crate) shift: i32,
}

impl Norm {
    /// Limit of a normalised element.
    pub(crate) const fn limit(&self) -> i64 {
        (1 << (self.exponent + 1)) - 1
    }

    /// How far a deviation times R is shifted, before R's j.
    pub(crate) const fn places(&self) -> i32 {
        54 - self.exponent as i32
    }
}

impl Instruction {
    /// Checks and decodes an operator.
    ///
    /// # Errors
    /// [`EngineError::Malformed`] with the rule that is broken.
    pub(crate) fn parse(operator: &Operator) -> Result<Self, EngineError> {
        check_operator(operator).map_err(|error| EngineError::Malformed(error.to_string()))?;
        // The counts were checked: an absent attribute does not occur.
        let attribute = |i: usize| operator.attributes.get(i).copied().unwrap_or_default();
        // Shifts lie within ±63, table sizes and bits within 40, first_row and streams within u32, heads and offset
        // within a row.
        let shift = |i: usize| attribute(i) as i32;
        Ok(match operator.opcode {
            Opcode::MatMul => Self::MatMul { shift: shift(0) },
            Opcode::Transpose => Self::Transpose,
            Opcode::Combine => Self::Combine { ca: attribute(0), cb: attribute(1), shift: shift(2) },
            Opcode::Scale => Self::Scale { c: attribute(0), shift: shift(1) },
            Opcode::Mul => Self::Mul { shift: shift(0) },
            Opcode::Relu => Self::Relu,
            Opcode::ReluGrad => Self::ReluGrad,
            Opcode::Lookup => Self::Lookup(Lookup {
                input_shift: shift(0),
                low: attribute(1),
                fraction_bits: attribute(2) as u32,
                shift: shift(3),
                index_bits: table_bits(operator),
            }),
            Opcode::RowMax => Self::RowMax { run: run_length(operator), causal: attribute(0) == 1 },
            Opcode::ExpNeg => {
                Self::ExpNeg { multiplier: attribute(0), input_shift: shift(1), causal: attribute(2) == 1 }
            }
            Opcode::RowSum => Self::RowSum { run: run_length(operator), shift: shift(0) },
            Opcode::Normalize => Self::Normalize { bits: attribute(0) as u32 },
            Opcode::OneHotSub => Self::OneHotSub { one: attribute(0), shift: shift(1) },
            Opcode::Sample => Self::Sample { first_row: attribute(0) as u32 },
            Opcode::ScaledMatMul => Self::ScaledMatMul { offset: attribute(0) as usize, shift: shift(1) },
            Opcode::HeadScores => Self::HeadScores { heads: attribute(0) as usize, shift: shift(1) },
            Opcode::HeadMix => Self::HeadMix { heads: attribute(0) as usize, shift: shift(1) },
            Opcode::Norm => Self::Norm(Norm {
                spread: Spread::of(operator),
                exponent: norm_exponent(operator.operands.first().map_or(0, |x| x.ty.bits())) as u32,
                bias_shift: attribute(2) as u32,
                shift: shift(3),
            }),
            Opcode::Rope => Self::Rope { heads: attribute(0) as usize, shift: shift(1) },
            Opcode::Gather => Self::Gather { shift: shift(0) },
            Opcode::RowAbsMax => Self::RowAbsMax { run: run_length(operator) },
            Opcode::RowArgMax => Self::RowArgMax { run: run_length(operator) },
            Opcode::RowPick => Self::RowPick { run: run_length(operator) },
            Opcode::TailSum => Self::TailSum {
                run: run_length(operator),
                bound: attribute(0),
                weighted: attribute(1) == 1,
                shift: shift(2),
            },
            Opcode::Threshold => Self::Threshold { step: attribute(0) },
            Opcode::Perturb => Self::Perturb { bound: attribute(0), places: alignment(operator), shift: shift(1) },
            Opcode::Choose => Self::Choose { length: attribute(0) },
            Opcode::RowCombine => Self::RowCombine { ca: attribute(0), cb: attribute(1), shift: shift(2) },
            Opcode::RowMul => Self::RowMul { shift: shift(0) },
            Opcode::InverseNorm => {
                Self::InverseNorm { run: run_length(operator), spread: Spread::of(operator), shift: shift(2) }
            }
            Opcode::GatherGrad => Self::GatherGrad { shift: shift(0) },
            Opcode::Ratio => Self::Ratio { bits: attribute(0) as u32, floor: attribute(1) },
            Opcode::Shrink => Self::Shrink { most: attribute(0), bits: attribute(1) as u32 },
            Opcode::AtStep => Self::AtStep,
            Opcode::GroupSum => Self::GroupSum { heads: attribute(0) as usize, shift: shift(1) },
            Opcode::Dropout => Self::Dropout(Dropout {
                keep: attribute(0),
                stream: attribute(1) as u32,
                c: attribute(2),
                shift: shift(3),
            }),
            Opcode::Slice => Self::Slice { offset: attribute(0) as usize },
            Opcode::Dither => Self::Dither { bits: attribute(0) as u32, stream: attribute(1) as u32 },
            Opcode::RowShift => Self::RowShift { run: run_length(operator), bits: attribute(0) as u32 },
            Opcode::ShiftRows => Self::ShiftRows,
            Opcode::ShiftedMatMul => Self::ShiftedMatMul { offset: attribute(0) as usize, shift: shift(1) },
        })
    }
}

/// Elements of the first operand for each of the output.
fn run_length(operator: &Operator) -> usize {
    let elements = operator.operands.first().map_or(1, |a| a.ty.elements());
    (elements / operator.output.elements()) as usize
}

/// Binary places by which Perturb aligns its first operand: 0 to 40, by the check.
fn alignment(operator: &Operator) -> u32 {
    let exponent = operator.operands.first().map_or(0, |a| i32::from(a.ty.exponent()));
    u32::try_from(28 - exponent).unwrap_or_default()
}

/// `p` of a table of `2^p + 1` entries.
fn table_bits(operator: &Operator) -> u32 {
    let intervals = operator.operands.get(1).map_or(1, |table| table.ty.elements().saturating_sub(1));
    intervals.checked_ilog2().unwrap_or(0)
}

/// Largest mantissa of a type, for bounds of accumulators.
pub(crate) fn magnitude(ty: &TensorType) -> u128 {
    u128::from(ty.limit().unsigned_abs())
}

/// Number and length of what Sample draws: rows, or single elements of a data set of one column.
pub(crate) fn samples(ty: &TensorType) -> (u64, u64) {
    if ty.dims().len() == 1 { (ty.elements(), 1) } else { (ty.rows(), ty.row()) }
}
