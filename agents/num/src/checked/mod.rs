//! The rules an operator must obey before anything is computed: parsed once into a `CheckedOperator`, whose existence
//! is the proof that rules N-6 and N-7 hold.
//!
//! | module | what lives there |
//! |---|---|
//! | `check` | what the rules ask of types, attributes, shifts and accumulators |
//! | `linear` | MatMul, ScaledMatMul, Transpose |
//! | `elementwise` | Combine, Scale, Mul, Relu, ReluGrad, Lookup |
//! | `rows` | RowMax, RowAbsMax, RowSum, ExpNeg, Normalize, OneHotSub, Norm |
//! | `attention` | HeadScores, HeadMix, Rope |
//! | `choice` | Sample, Gather |
//! | `sampling` | RowArgMax, RowPick, TailSum, Threshold, Perturb, Choose |
//! | `training` | RowCombine, RowMul, InverseNorm, GatherGrad, GroupSum, Slice |
//! | `optimizer` | Ratio, Shrink, AtStep |
//! | `random` | Dropout, Dither |
//! | `shifted` | RowShift, ShiftRows, ShiftedMatMul |

mod attention;
mod check;
mod choice;
mod elementwise;
mod linear;
mod optimizer;
mod random;
mod rows;
mod sampling;
mod shifted;
mod training;

use tensorlink_types::{Opcode, Operator};

use crate::error::OpError;

use self::check::Check;

/// Accumulators stay below this (rule N-6).
pub const ACCUMULATOR_BOUND: u128 = 1 << 62;
/// Coefficients and offsets of Combine, Scale, Lookup and OneHotSub stay below this.
pub const COEFFICIENT_BOUND: i64 = 1 << 40;
/// Entries of the exponential table (rule N-20).
pub const EXP_TABLE_LEN: u64 = 257;
/// Exponent of the exponential table and of ExpNeg's output (rule N-20).
pub const EXP_EXPONENT: i16 = 24;
/// Bits of ExpNeg's output (rule N-20): the least that hold `2^24`.
pub const EXP_BITS: u8 = 26;
/// Largest fixed-point argument of ExpNeg (rule N-20): beyond it the result is zero anyway.
pub const EXP_ARGUMENT_MAX: i64 = 40 << 16;
/// Most rows of a data set (rule N-24).
pub const MAX_POPULATION: u64 = 1 << 31;
/// Largest `p` of a Lookup table of `2^p + 1` entries (rule N-18).
pub const MAX_TABLE_LOG: u32 = 12;
/// Most bits of a row that Norm normalises (rule N-28).
pub const NORM_INPUT_BITS: u8 = 24;
/// Most places by which Norm's mean is finer than its input (rule N-28).
const NORM_PLACES: u8 = 4;
/// Epsilon of Norm stays below this (rule N-28).
pub const EPSILON_BOUND: i64 = 1 << 60;
/// Largest `bias_shift` of Norm (rule N-28).
pub const MAX_BIAS_SHIFT: i64 = 40;
/// Largest exponent of Rope's table (rule N-29).
pub const MAX_ROPE_EXPONENT: i16 = 15;
/// Bits of the number of an element (rules N-32 and N-37).
pub const CHOICE_BITS: u8 = 32;
/// Numbers that say how a token is chosen (rules N-35 to N-37).
pub const CONTROLS: u64 = 7;
/// Entries of the table of Gumbel draws: 257 for each number of leading zeros (rule N-36).
pub const GUMBEL_TABLE_LEN: u64 = 32 * 257;
/// Exponent of the table of Gumbel draws (rule N-36).
pub const GUMBEL_EXPONENT: i16 = 16;
/// Exponent of Perturb's accumulator: that of the table and of the temperature together (rule N-36).
pub const PERTURB_EXPONENT: i64 = 28;
/// Most binary places by which Perturb aligns an element (rule N-36).
pub const MAX_PERTURB_PLACES: i64 = 40;
/// Exponent of Norm's R, which is `1/√v`, before its j (rule N-28).
pub(crate) const RECIPROCAL_EXPONENT: i64 = 54;
/// Least shift of InverseNorm: with its j, at most 30, no shift leaves N-2 (rule N-40).
pub const MIN_INVERSE_SHIFT: i64 = -32;
/// Most heads that GroupSum adds: an element of each is opened by itself (rule N-45).
pub const MAX_GROUP: u64 = 128;
/// Most binary places of Ratio (rule N-42).
pub const MAX_RATIO_PLACES: i64 = 40;
/// Most binary places of Shrink (rule N-43).
pub const MAX_SHRINK_PLACES: i64 = 30;
/// The norm that Shrink brings down to stays below this (rule N-43).
pub const SHRINK_BOUND: i64 = 1 << 31;
/// First word of Dropout's streams, and of Dither's (rules N-46 and N-48): apart from those of other draws.
pub const DROPOUT_DRAWS: u32 = 1 << 16;
/// See [`DROPOUT_DRAWS`].
pub const DITHER_DRAWS: u32 = 1 << 17;
/// Bits of what Dither divides by (rule N-48).
pub const DITHER_BITS: u8 = 30;
/// Largest shift of a row (rules N-50 and N-51).
pub const MAX_ROW_SHIFT: i64 = 31;
/// Least shift of ShiftedMatMul: less the largest of a row, it is one of N-2 (rule N-51).
pub const MIN_SHIFTED_SHIFT: i64 = -32;
/// The share that is all of it, of Threshold (rule N-35).
pub const WHOLE_SHARE: i64 = 1 << 16;

/// An accepted operator: opcode with its attributes and the lengths its loops need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CheckedOperator {
    MatMul {
        columns: u64,
        depth: u64,
        shift: i64,
    },
    /// Of one matrix or of several, one after another.
    Transpose {
        rows: u64,
        columns: u64,
    },
    Combine {
        ca: i64,
        cb: i64,
        period: u64,
        shift: i64,
    },
    Scale {
        c: i64,
        shift: i64,
    },
    Mul {
        period: u64,
        shift: i64,
    },
    Relu,
    ReluGrad,
    Lookup(Lookup),
    RowMax {
        depth: u64,
        visible: Visible,
    },
    ExpNeg {
        depth: u64,
        multiplier: i64,
        input_shift: i64,
        visible: Visible,
    },
    RowSum {
        depth: u64,
        shift: i64,
    },
    Normalize {
        depth: u64,
        bits: u32,
    },
    OneHotSub {
        depth: u64,
        one: i64,
        shift: i64,
    },
    Sample {
        population: u64,
        width: u64,
        first_row: u32,
    },
    ScaledMatMul(ScaledMatMul),
    HeadScores(Heads),
    HeadMix(Heads),
    Norm(Norm),
    Rope(Rope),
    Gather {
        entries: u64,
        width: u64,
        shift: i64,
    },
    RowAbsMax {
        depth: u64,
    },
    RowArgMax {
        depth: u64,
    },
    RowPick {
        depth: u64,
    },
    TailSum(TailSum),
    Threshold {
        parts: u64,
        step: i64,
    },
    Perturb(Perturb),
    Choose {
        parts: u64,
        length: i64,
    },
    RowCombine {
        run: u64,
        ca: i64,
        cb: i64,
        shift: i64,
    },
    RowMul {
        run: u64,
        shift: i64,
    },
    InverseNorm(Norm),
    GatherGrad {
        tokens: u64,
        width: u64,
        entries: u64,
        shift: i64,
    },
    Ratio {
        places: u32,
        floor: i64,
    },
    Shrink {
        places: u32,
        limit: i64,
    },
    AtStep {
        rows: u64,
        width: u64,
    },
    GroupSum(Heads),
    Dropout {
        keep: u64,
        stream: u32,
        c: i64,
        shift: i64,
    },
    Slice {
        row: u64,
        width: u64,
        offset: u64,
    },
    Dither {
        depth: u64,
        places: u32,
        stream: u32,
    },
    RowShift {
        depth: u64,
        bits: u32,
    },
    ShiftRows {
        depth: u64,
    },
    ShiftedMatMul(ScaledMatMul),
}

/// Places f by which Norm's mean is finer than an input of so many bits: as many as leave room for its squares (rule
/// N-28).
pub const fn norm_places(bits: u8) -> u8 {
    let room = NORM_INPUT_BITS.saturating_sub(bits);
    if room < NORM_PLACES { room } else { NORM_PLACES }
}

/// Exponent of Norm's normalised value `n`, for an input of so many bits (rule N-28).
pub const fn norm_exponent(bits: u8) -> i64 {
    NORM_INPUT_BITS.saturating_sub(norm_places(bits)) as i64
}

/// Exponent by which InverseNorm's R is finer than an input of so many bits and of exponent 0 is coarse, before its j
/// (rule N-40).
pub const fn reciprocal_exponent(bits: u8) -> i64 {
    RECIPROCAL_EXPONENT.saturating_sub(norm_places(bits) as i64)
}

/// A row's shift as N-50 and N-51 take it.
pub(crate) const fn row_shift(shift: i64) -> i64 {
    if shift < 0 {
        0
    } else if shift > MAX_ROW_SHIFT {
        MAX_ROW_SHIFT
    } else {
        shift
    }
}

/// Attributes of rule N-18; the table has `2^log + 1` entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lookup {
    pub(crate) input_shift: i64,
    pub(crate) low: i64,
    pub(crate) fraction_bits: u32,
    pub(crate) log: u32,
    pub(crate) shift: i64,
}

/// Rule N-8: what of its row an element sees. `None` is everything, else the tokens of one sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Visible(Option<u64>);

impl Visible {
    /// Everything.
    pub(crate) const ALL: Self = Self(None);

    /// How many of the first elements of row `m`, `depth` long, are visible: at least 1.
    pub(crate) fn of_row(self, m: u64, depth: u64) -> u64 {
        // The tokens are a dimension, so never 0.
        self.0.map_or(depth, |tokens| m.checked_rem(tokens).unwrap_or_default().saturating_add(1).min(depth))
    }
}

/// Lengths and attributes of rules N-25 and N-51: row m of the first operand is read from `offset` on, `depth` of its
/// `row` elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ScaledMatMul {
    pub(crate) columns: u64,
    pub(crate) row: u64,
    pub(crate) offset: u64,
    pub(crate) depth: u64,
    pub(crate) shift: i64,
}

/// Lengths of rules N-26 and N-27: `heads · width` is the row of the tensor of tokens, `kv_heads · width` that of keys
/// (or the rows of values), `keys` the S of the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Heads {
    pub(crate) tokens: u64,
    pub(crate) keys: u64,
    pub(crate) heads: u64,
    pub(crate) kv_heads: u64,
    pub(crate) width: u64,
    pub(crate) shift: i64,
}

impl Heads {
    /// The key/value head that head `h` reads: `⌊h·G/H⌋`.
    pub(crate) fn kv_head(&self, h: u64) -> u64 {
        h.saturating_mul(self.kv_heads).checked_div(self.heads).unwrap_or_default()
    }
}

/// Attributes of rule N-28.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Norm {
    pub(crate) depth: u64,
    /// Its f.
    pub(crate) places: u8,
    pub(crate) center: bool,
    pub(crate) epsilon: i64,
    pub(crate) bias_shift: u32,
    pub(crate) shift: i64,
}

impl Norm {
    /// `2^f`, by what the mean is finer than the input.
    pub(crate) const fn unit(&self) -> i64 {
        1i64.wrapping_shl(self.places as u32)
    }

    /// Exponent of the normalised value n.
    const fn exponent(&self) -> u8 {
        NORM_INPUT_BITS.saturating_sub(self.places)
    }

    /// Bits of n, which is between −2 and 2.
    pub(crate) const fn bits(&self) -> u8 {
        self.exponent().saturating_add(2)
    }

    /// How far a product with R is shifted to become n, before R's j.
    pub(crate) const fn reciprocal_shift(&self) -> i64 {
        RECIPROCAL_EXPONENT.saturating_sub(self.exponent() as i64)
    }
}

/// Lengths of rule N-29: rows of `row` elements in heads of `width`, of which the first `2·half` rotate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rope {
    pub(crate) row: u64,
    pub(crate) width: u64,
    pub(crate) half: u64,
    pub(crate) exponent: u32,
    pub(crate) shift: i64,
}

/// Attributes of rule N-34; a row has `parts` parts of `depth` elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TailSum {
    pub(crate) depth: u64,
    pub(crate) parts: u64,
    pub(crate) bound: i64,
    pub(crate) weighted: bool,
    pub(crate) shift: i64,
}

/// Attributes of rule N-36; `places` is its c.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Perturb {
    pub(crate) row: u64,
    pub(crate) bound: i64,
    pub(crate) places: u32,
    pub(crate) shift: i64,
}

/// Checks an operator by itself: counts, shapes, widths, attribute ranges, accumulator bounds (rules N-6 to N-8, N-11
/// to N-51). Whether its operands exist is the program checker's business.
///
/// # Errors
/// The first rule it breaks, and what to change.
pub fn check_operator(operator: &Operator) -> Result<(), OpError> {
    CheckedOperator::new(operator).map(drop)
}

impl CheckedOperator {
    pub(crate) fn new(op: &Operator) -> Result<Self, OpError> {
        let opcode = op.opcode;
        if op.operands.len() != opcode.operands() {
            return Err(OpError::OperandCount { opcode, expected: opcode.operands(), actual: op.operands.len() });
        }
        let expected = opcode.attributes().len();
        if op.attributes.len() != expected {
            return Err(OpError::AttributeCount { opcode, expected, actual: op.attributes.len() });
        }
        let check = Check::new(op);
        match opcode {
            Opcode::MatMul => check.mat_mul(),
            Opcode::Transpose => check.transpose(),
            Opcode::Combine => check.combine(),
            Opcode::Scale => check.scale(),
            Opcode::Mul => check.mul(),
            Opcode::Relu => check.relu(),
            Opcode::ReluGrad => check.relu_grad(),
            Opcode::Lookup => check.lookup(),
            Opcode::RowMax => check.row_max(),
            Opcode::ExpNeg => check.exp_neg(),
            Opcode::RowSum => check.row_sum(),
            Opcode::Normalize => check.normalize(),
            Opcode::OneHotSub => check.one_hot_sub(),
            Opcode::Sample => check.sample(),
            Opcode::ScaledMatMul => check.scaled_mat_mul(),
            Opcode::HeadScores => check.head_scores(),
            Opcode::HeadMix => check.head_mix(),
            Opcode::Norm => check.norm(),
            Opcode::Rope => check.rope(),
            Opcode::Gather => check.gather(),
            Opcode::RowAbsMax => check.row_abs_max(),
            Opcode::RowArgMax => check.row_arg_max(),
            Opcode::RowPick => check.row_pick(),
            Opcode::TailSum => check.tail_sum(),
            Opcode::Threshold => check.raise_threshold(),
            Opcode::Perturb => check.perturb(),
            Opcode::Choose => check.choose(),
            Opcode::RowCombine => check.row_combine(),
            Opcode::RowMul => check.row_mul(),
            Opcode::InverseNorm => check.inverse_norm(),
            Opcode::GatherGrad => check.gather_grad(),
            Opcode::Ratio => check.ratio(),
            Opcode::Shrink => check.shrink(),
            Opcode::AtStep => check.at_step(),
            Opcode::GroupSum => check.group_sum(),
            Opcode::Dropout => check.dropout(),
            Opcode::Slice => check.slice(),
            Opcode::Dither => check.dither(),
            Opcode::RowShift => check.row_shift(),
            Opcode::ShiftRows => check.shift_rows(),
            Opcode::ShiftedMatMul => check.shifted_mat_mul(),
        }
    }
}

#[cfg(test)]
mod tests;
