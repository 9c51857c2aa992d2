//! From a step graph to integers: bits and exponent of every node, and the attributes of its operator.

use tensorlink_num::bounds::{
    ACCUMULATOR_BOUND, COEFFICIENT_BOUND, EXP_EXPONENT, SHRINK_BOUND, norm_exponent, reciprocal_exponent,
};
use tensorlink_program::scale::epsilon;
use tensorlink_types::operator::Operand;
use tensorlink_types::{Opcode, Operator, Source, TensorType};

use crate::compile::error::CompileError;
use crate::exponents::Exponents;
use crate::step::{Class, DataTypes, Node, NodeId, Op, Precision, StepGraph};
use crate::tables::LookupTable;

/// Binary digits of ExpNeg's multiplier `log2(e)/divisor` at the most (rule N-20), and of its argument after the point.
const EXP_DIGITS: i64 = 14;
const EXP_FRACTION: i64 = 16;
/// A factor smaller than this as an integer would be off by more than 0.1 %.
const LEAST_FACTOR: i64 = 512;
/// Largest shift (rule N-2).
const MAX_SHIFT: i64 = 63;

/// Type of every node, by its position in the graph.
///
/// # Errors
/// [`CompileError::Uncalibrated`] for a site without exponent, [`CompileError::Type`] for a type out of range.
pub fn types(graph: &StepGraph, exponents: &Exponents, data: &DataTypes) -> Result<Vec<TensorType>, CompileError> {
    let at = |site: &str, bits: u8, class: Class| {
        exponents.of(site, bits, class).ok_or_else(|| CompileError::Uncalibrated { site: site.to_owned() })
    };
    let mut types: Vec<TensorType> = Vec::with_capacity(graph.len());
    for (_, node) in graph.nodes() {
        let of = |id: &NodeId| types.get(id.index());
        let operand = |i: usize| node.inputs.get(i).and_then(of);
        let bits_of = |i: usize| operand(i).map_or(0, TensorType::bits);
        let exponent_of = |i: usize| operand(i).map_or(0, TensorType::exponent);
        let products = matches!(node.op, Op::MatMul | Op::Mul | Op::RowMul);
        let (bits, exponent) = match &node.precision {
            Precision::Data if node.op == Op::Labels => (data.labels.bits(), data.labels.exponent()),
            Precision::Data => (data.features.bits(), data.features.exponent()),
            Precision::Like(id) => of(id).map_or((0, 0), |ty| (ty.bits(), ty.exponent())),
            Precision::Fixed { bits, exponent } => (*bits, *exponent),
            &Precision::Calibrated { bits, class } => {
                let exponent = at(&node.site, bits, class)?;
                // A product has no more fraction bits than its factors; more would be empty.
                let finest = exponent_of(0).saturating_add(exponent_of(1));
                (bits, if products { exponent.min(finest) } else { exponent })
            }
            &Precision::Even { bits, class } => {
                let exponent = at(&node.site, bits, class)?;
                (bits, exponent.saturating_sub(exponent.rem_euclid(2)))
            }
            Precision::At { site, bits, class } => (*bits, at(site, *bits, *class)?),
            Precision::SquareAt { site, bits, class } => {
                (bits.saturating_mul(2), at(site, *bits, *class)?.saturating_mul(2))
            }
            Precision::Coarser { than, by } => {
                let bits = of(than).map_or(0, TensorType::bits).saturating_sub(*by).saturating_add(1);
                (bits, of(than).map_or(0, TensorType::exponent).saturating_sub((*by).into()))
            }
            &Precision::Exact { terms } => {
                let growth = crate::step::build::ceil_log2(terms);
                let factors =
                    if products || matches!(node.op, Op::ScaledMatMul { .. }) { node.inputs.len() } else { 1 };
                let of_factors = (0..factors).map(|i| bits_of(i).saturating_sub(1));
                let bits = of_factors.fold(growth.saturating_add(1), u8::saturating_add);
                (bits, (0..factors).map(exponent_of).fold(0, i16::saturating_add))
            }
        };
        let ty = TensorType::new(bits, exponent, &node.dims);
        types.push(ty.map_err(|source| CompileError::Type { node: node.to_string(), source })?);
    }
    Ok(types)
}

/// The operator of a node on operands that were placed already.
///
/// # Errors
/// [`CompileError::Factor`] if a factor cannot be written as an integer, [`CompileError::Rule`] if the operator breaks
/// a rule of the arithmetic.
pub fn operator(
    node: &Node,
    operands: Vec<Operand>,
    output: TensorType,
    table: Option<&LookupTable>,
) -> Result<Operator, CompileError> {
    let e = |i: usize| operands.get(i).map_or(0, |o| i64::from(o.ty.exponent()));
    let bits = |i: usize| operands.get(i).map_or(0, |o| o.ty.bits());
    let ey = i64::from(output.exponent());
    let spread_epsilon =
        |spread: crate::step::Spread, run: u64| operands.first().map_or(1, |x| epsilon(spread.epsilon, run, &x.ty));
    let (opcode, attributes) = match node.op {
        Op::MatMul => (Opcode::MatMul, vec![e(0) + e(1) - ey]),
        Op::Transpose => (Opcode::Transpose, vec![]),
        Op::Combine { fa, fb } => (Opcode::Combine, combine(node, &[fa, fb], &operands, ey)?),
        Op::Dropout { keep, stream } => {
            let factor = combine(node, &[1.0 / share(keep)], &operands, ey)?;
            let draws = [keep.min(1 << 32) as i64, stream.into()];
            (Opcode::Dropout, draws.into_iter().chain(factor).collect())
        }
        Op::Cast => (Opcode::Scale, vec![1, e(0) - ey]),
        Op::Mul => (Opcode::Mul, vec![e(0) + e(1) - ey]),
        Op::Relu => (Opcode::Relu, vec![]),
        Op::ReluGrad => (Opcode::ReluGrad, vec![]),
        Op::Lookup(_) => {
            let (low, fraction) = table.map_or((0, 0), |t| (t.low, t.fraction_bits));
            (Opcode::Lookup, vec![0, low, fraction, e(1) + fraction - ey])
        }
        Op::RowMax { causal } => (Opcode::RowMax, vec![causal.into()]),
        Op::ExpNeg { divisor, causal } => (Opcode::ExpNeg, exp_neg(e(0), divisor, causal)),
        Op::RowSum => (Opcode::RowSum, vec![e(0) - ey]),
        Op::Normalize => (Opcode::Normalize, vec![ey - e(0) + e(1)]),
        Op::Dither { stream } => (Opcode::Dither, vec![ey - e(0) + e(1), stream.into()]),
        Op::OneHotSub => (Opcode::OneHotSub, vec![1 << EXP_EXPONENT, e(0) - ey]),
        Op::Sample { first_row } => (Opcode::Sample, vec![first_row.into()]),
        Op::ScaledMatMul { offset } => (Opcode::ScaledMatMul, vec![offset.into(), e(0) + e(1) + e(2) + e(3) - ey]),
        Op::Slice { offset } => (Opcode::Slice, vec![offset.into()]),
        Op::RowCombine { fa, fb } => (Opcode::RowCombine, combine(node, &[fa, fb], &operands, ey)?),
        Op::RowMul => (Opcode::RowMul, vec![e(0) + e(1) - ey]),
        Op::RowAbsMax => (Opcode::RowAbsMax, vec![]),
        // Half of what is cut off is added first, so that nothing is rounded down below a.
        Op::Ceiling => {
            let by = e(0) - ey;
            (Opcode::Combine, vec![1, 1i64.wrapping_shl(by.clamp(1, 63) as u32) / 2, by])
        }
        Op::HeadScores { heads } => (Opcode::HeadScores, vec![heads.into(), e(0) + e(1) - ey]),
        Op::HeadMix { heads } => (Opcode::HeadMix, vec![heads.into(), e(0) + e(1) - ey]),
        Op::GroupSum { heads } => (Opcode::GroupSum, vec![heads.into(), e(0) - ey]),
        Op::Norm(spread) => {
            let (product, run) = (norm_exponent(bits(0)) + e(1), operands.get(1).map_or(1, |gain| gain.ty.elements()));
            (Opcode::Norm, vec![spread.center.into(), spread_epsilon(spread, run), product - e(2), product - ey])
        }
        Op::InverseNorm(spread) => {
            let shift = reciprocal_exponent(bits(0)) - e(0) - ey;
            let elements = operands.first().map_or(1, |x| x.ty.elements());
            let run = elements.checked_div(output.elements()).unwrap_or(1);
            (Opcode::InverseNorm, vec![spread.center.into(), spread_epsilon(spread, run), shift])
        }
        Op::Rope { heads } => (Opcode::Rope, vec![heads.into(), e(0) + e(1) - ey]),
        Op::Gather => (Opcode::Gather, vec![e(0) + e(1) - ey]),
        Op::GatherGrad => (Opcode::GatherGrad, vec![e(0) - ey]),
        Op::Ratio { epsilon } => {
            let floor = libm::rint(epsilon * libm::exp2((e(1) / 2) as f64)).max(1.0);
            (Opcode::Ratio, vec![ey - e(0) + e(1) / 2, floor as i64])
        }
        Op::Shrink { limit } => {
            let limit = libm::rint(limit * libm::exp2((e(0) / 2) as f64));
            if !(1.0..SHRINK_BOUND as f64).contains(&limit) {
                return Err(CompileError::Factor { node: node.to_string() });
            }
            (Opcode::Shrink, vec![limit as i64, ey])
        }
        Op::AtStep => (Opcode::AtStep, vec![]),
        Op::Features | Op::Labels | Op::State | Op::Constant(_) => {
            return Err(CompileError::Leaf { node: node.to_string() });
        }
    };
    let operator = Operator { opcode, operands, attributes, output };
    tensorlink_num::check_operator(&operator)
        .map_err(|source| CompileError::Rule { node: node.to_string(), source: Box::new(source) })?;
    Ok(operator)
}

/// Attributes of ExpNeg for `exp(−(max − a)/divisor)`, a of exponent `e`.
fn exp_neg(e: i64, divisor: f64, causal: bool) -> Vec<i64> {
    let factor = std::f64::consts::LOG2_E / divisor;
    // As many digits as leave the multiplier below 2^24, and no more than half of them for a divisor of 1.
    let digits = EXP_DIGITS.saturating_sub(libm::floor(libm::log2(factor)) as i64);
    let multiplier = libm::rint(factor * libm::exp2(digits as f64)) as i64;
    vec![multiplier, e.saturating_add(digits).saturating_sub(EXP_FRACTION), causal.into()]
}

/// An operand of a node.
pub const fn operand(source: Source, ty: TensorType) -> Operand {
    Operand { source, ty }
}

/// The share of elements that are kept.
pub(crate) fn share(keep: u64) -> f64 {
    keep as f64 / 2f64.powi(32)
}

/// Attributes `ca, cb, shift` of `fa·a + fb·b`, or of a single product: the factors as integers over one power of two,
/// as few digits as make them exact, else as many as the accumulator holds.
fn combine(node: &Node, factors: &[f64], operands: &[Operand], ey: i64) -> Result<Vec<i64>, CompileError> {
    let terms = || factors.iter().zip(operands).map(|(f, o)| (*f, i64::from(o.ty.exponent()), o.ty.limit()));
    // Multiplying a float by a power of two in this range is exact.
    let scaled = |f: f64, digits: i64| f * libm::exp2(digits as f64);
    let fits = |digits: i64| {
        let mut total = 0u128;
        for (f, e, limit) in terms() {
            let c = scaled(f, digits - e).abs() + 1.0;
            if c >= COEFFICIENT_BOUND as f64 {
                return false;
            }
            total = total.saturating_add((c as u128).saturating_mul(u128::from(limit.unsigned_abs())));
        }
        total < ACCUMULATOR_BOUND && (digits - ey).abs() <= MAX_SHIFT
    };
    let exact = |digits: i64| terms().all(|(f, e, _)| scaled(f, digits - e).fract() == 0.0);
    let candidates = -512..=512;
    let fitting = candidates.filter(|digits| fits(*digits)).collect::<Vec<_>>();
    let best = fitting.iter().find(|digits| exact(**digits)).or(fitting.last());
    let factor = || CompileError::Factor { node: node.to_string() };
    let &digits = best.ok_or_else(factor)?;
    let coefficients: Vec<i64> = terms().map(|(f, e, _)| scaled(f, digits - e).round_ties_even() as i64).collect();
    let coarse = coefficients.iter().zip(factors).any(|(c, f)| *f != 0.0 && c.abs() < LEAST_FACTOR);
    if coarse && !exact(digits) {
        return Err(factor());
    }
    Ok(coefficients.into_iter().chain([digits - ey]).collect())
}
