//! The numbers that rules bound operators by, and what follows from them.

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
pub const RECIPROCAL_EXPONENT: i64 = 54;
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
