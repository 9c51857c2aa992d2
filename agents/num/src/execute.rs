//! Whole operators. Rule N-6, checked first, keeps every accumulator below 2^62, so `i64` holds them exactly; the tests
//! compare every element with the `i128` form in [`crate::element()`].

use std::iter;

use tensorlink_types::Operator;

use crate::context::StepContext;
use crate::error::OpError;
use crate::fixed::limit;
use crate::kernel::{EXP_ARGUMENT_MAX, Kernel, Lookup};
use crate::philox;
use crate::tensor::{Mantissas, Tensor};

/// Computes an operator; `operands` in its order and of the types it names.
///
/// # Errors
/// A rule the operator breaks; [`OpError::OperandType`]; [`OpError::Memory`].
pub fn execute(operator: &Operator, operands: &[&Tensor], context: &StepContext) -> Result<Tensor, OpError> {
    let kernel = Kernel::new(operator)?;
    let (opcode, expected, actual) = (operator.opcode, operator.operands.len(), operands.len());
    if expected != actual {
        return Err(OpError::OperandCount { opcode, expected, actual });
    }
    for (operand, (named, tensor)) in operator.operands.iter().zip(operands).enumerate() {
        if named.ty != *tensor.ty() {
            return Err(OpError::OperandType { operand, expected: named.ty.clone(), actual: tensor.ty().clone() });
        }
    }
    let values = match *operands {
        [a] => unary(&kernel, operator, a, context)?,
        [a, b] => binary(&kernel, operator, a, b)?,
        [a, b, c] => ternary(&kernel, operator, a, b, c)?,
        _ => Vec::new(),
    };
    Ok(Tensor::from_wide(operator.output.clone(), &values)?)
}

/// Collects as many values as the output has elements.
fn collect(operator: &Operator, values: impl Iterator<Item = i64>) -> Result<Vec<i64>, OpError> {
    let elements = operator.output.elements();
    let mut out = Vec::new();
    usize::try_from(elements).ok().and_then(|n| out.try_reserve_exact(n).ok()).ok_or(OpError::Memory(elements))?;
    out.extend(values);
    Ok(out)
}

fn unary(kernel: &Kernel, op: &Operator, a: &Tensor, context: &StepContext) -> Result<Vec<i64>, OpError> {
    let round = |shift| Rescale::new(shift, op);
    match *kernel {
        Kernel::Transpose { rows, columns } => {
            let at = |n: u64| (0..rows).map(move |m| a.get(m.saturating_mul(columns).saturating_add(n)).unwrap_or(0));
            collect(op, (0..columns).flat_map(at))
        }
        Kernel::Scale { c, shift } => {
            let round = round(shift);
            collect(op, wide(a).into_iter().map(|a| round.apply(a.wrapping_mul(c))))
        }
        Kernel::Relu => collect(op, wide(a).into_iter().map(|a| a.max(0))),
        Kernel::RowMax { depth } => {
            collect(op, rows(&wide(a), depth).map(|row| row.iter().copied().max().unwrap_or_default()))
        }
        Kernel::RowSum { depth, shift } => {
            let round = round(shift);
            let sum = |row: &[i64]| row.iter().fold(0i64, |sum, a| sum.wrapping_add(*a));
            collect(op, rows(&wide(a), depth).map(|row| round.apply(sum(row))))
        }
        Kernel::Sample { population, width, first_row } => {
            let batch = op.output.elements().checked_div(width).unwrap_or_default();
            let row = |i: u64| {
                // SAFETY of the cast: the checker keeps first_row + i below 2^32.
                let row = first_row.wrapping_add(i as u32);
                let drawn = philox::draw_below(&context.job_key, row, context.step, population);
                (0..width).map(move |f| a.get(drawn.saturating_mul(width).saturating_add(f)).unwrap_or(0))
            };
            collect(op, (0..batch).flat_map(row))
        }
        _ => Ok(Vec::new()),
    }
}

fn binary(kernel: &Kernel, op: &Operator, a: &Tensor, b: &Tensor) -> Result<Vec<i64>, OpError> {
    let round = |shift| Rescale::new(shift, op);
    match *kernel {
        Kernel::MatMul { depth, shift, .. } => mat_mul(op, a, b, depth, &round(shift)),
        Kernel::Combine { ca, cb, shift, .. } => {
            let (round, b) = (round(shift), wide(b));
            let pairs = wide(a).into_iter().zip(b.iter().cycle());
            collect(op, pairs.map(|(a, b)| round.apply(a.wrapping_mul(ca).wrapping_add(b.wrapping_mul(cb)))))
        }
        Kernel::Mul { shift, .. } => {
            let (round, b) = (round(shift), wide(b));
            let pairs = wide(a).into_iter().zip(b.iter().cycle());
            collect(op, pairs.map(|(a, b)| round.apply(a.wrapping_mul(*b))))
        }
        Kernel::ReluGrad => {
            let pairs = wide(a).into_iter().zip(wide(b));
            collect(op, pairs.map(|(dy, x)| if x > 0 { dy } else { 0 }))
        }
        Kernel::Lookup(lookup) => {
            let (round, table) = (round(lookup.shift), wide(b));
            collect(op, wide(a).into_iter().map(|x| round.apply(interpolate(&lookup, &table, x))))
        }
        Kernel::Normalize { depth, bits } => {
            let (p, z, limit) = (wide(a), wide(b), limit(op.output.bits()));
            let quotient = |p: i64, z: i64| {
                let twice = p.wrapping_mul(1i64.wrapping_shl(bits.wrapping_add(1)));
                // The divisor is positive, so the Euclidean quotient is the floor.
                twice.wrapping_add(z).wrapping_div_euclid(z.wrapping_mul(2)).clamp(limit.wrapping_neg(), limit)
            };
            let pairs = rows(&p, depth).zip(&z).flat_map(|(row, z)| row.iter().map(move |p| (*p, (*z).max(1))));
            collect(op, pairs.map(|(p, z)| quotient(p, z)))
        }
        Kernel::OneHotSub { depth, one, shift } => {
            let (round, p, label) = (round(shift), wide(a), wide(b));
            let pairs = rows(&p, depth)
                .zip(&label)
                .flat_map(|(row, label)| (0i64..).zip(row).map(move |(k, p)| (*p, k == *label)));
            collect(op, pairs.map(|(p, hit)| round.apply(p.wrapping_sub(if hit { one } else { 0 }))))
        }
        _ => Ok(Vec::new()),
    }
}

fn ternary(kernel: &Kernel, op: &Operator, a: &Tensor, b: &Tensor, table: &Tensor) -> Result<Vec<i64>, OpError> {
    let Kernel::ExpNeg { depth, multiplier, input_shift } = *kernel else { return Ok(Vec::new()) };
    let (a, max, table) = (wide(a), wide(b), wide(table));
    let fixed = Rescale { shift: input_shift, limit: limit(63) };
    let output = limit(op.output.bits());
    let exp = |a: i64, max: i64| {
        let z = max.wrapping_sub(a).max(0);
        let u = fixed.apply(z.wrapping_mul(multiplier)).min(EXP_ARGUMENT_MAX);
        let sum = blend(&table, (u & 0xffff) >> 8, u & 0xff, 8);
        Rescale { shift: (u >> 16).wrapping_add(8), limit: output }.apply(sum)
    };
    let pairs = rows(&a, depth).zip(&max).flat_map(|(row, max)| row.iter().map(move |a| (*a, *max)));
    collect(op, pairs.map(|(a, max)| exp(a, max)))
}

fn mat_mul(op: &Operator, a: &Tensor, b: &Tensor, depth: u64, round: &Rescale) -> Result<Vec<i64>, OpError> {
    let depth = usize::try_from(depth).unwrap_or(usize::MAX).max(1);
    macro_rules! products {
        ($a:expr, $b:expr, $dot:path) => {
            collect(
                op,
                $a.chunks_exact(depth).flat_map(|row| $b.chunks_exact(depth).map(|col| round.apply($dot(row, col)))),
            )
        };
    }
    match (a.mantissas(), b.mantissas()) {
        (Mantissas::I8(a), Mantissas::I8(b)) => products!(a, b, dot8),
        (Mantissas::I16(a), Mantissas::I16(b)) => products!(a, b, dot16),
        // The checker refused other widths.
        _ => Ok(Vec::new()),
    }
}

/// At most 4096 products of at most 2^14: the sum fits 32 bits, which vectorises best.
fn dot8(a: &[i8], b: &[i8]) -> i64 {
    let term = |(a, b): (&i8, &i8)| i32::from(*a).wrapping_mul(i32::from(*b));
    a.iter().zip(b).map(term).fold(0i32, i32::wrapping_add).into()
}

/// Products of at most 2^30, sums of at most 2^42.
fn dot16(a: &[i16], b: &[i16]) -> i64 {
    let term = |(a, b): (&i16, &i16)| i64::from(i32::from(*a).wrapping_mul(i32::from(*b)));
    a.iter().zip(b).map(term).fold(0i64, i64::wrapping_add)
}

fn interpolate(lookup: &Lookup, table: &[i64], x: i64) -> i64 {
    let fixed = Rescale { shift: lookup.input_shift, limit: limit(63) };
    let top = 1i64.wrapping_shl(lookup.log.wrapping_add(lookup.fraction_bits));
    let u = fixed.apply(x).wrapping_sub(lookup.low).clamp(0, top);
    let last = 1i64.wrapping_shl(lookup.log).wrapping_sub(1);
    let j = (u >> lookup.fraction_bits).min(last);
    blend(table, j, u.wrapping_sub(j << lookup.fraction_bits), lookup.fraction_bits)
}

/// `table[j]·(2^f − r) + table[j+1]·r`: at most 2^31 · 2^16.
fn blend(table: &[i64], j: i64, rest: i64, fraction_bits: u32) -> i64 {
    let mut entries = iter::successors(usize::try_from(j).ok(), |j| j.checked_add(1)).map(|j| table.get(j).copied());
    let mut next = || entries.next().flatten().unwrap_or_default();
    let (low, high) = (next(), next());
    let unit = 1i64.wrapping_shl(fraction_bits);
    low.wrapping_mul(unit.wrapping_sub(rest)).wrapping_add(high.wrapping_mul(rest))
}

fn wide(tensor: &Tensor) -> Vec<i64> {
    tensor.mantissas().to_vec()
}

fn rows(values: &[i64], depth: u64) -> std::slice::ChunksExact<'_, i64> {
    values.chunks_exact(usize::try_from(depth).unwrap_or(usize::MAX).max(1))
}

/// Rule N-2 for a fixed shift and output, on accumulators below 2^62.
#[derive(Clone, Copy)]
struct Rescale {
    shift: i64,
    limit: i64,
}

impl Rescale {
    fn new(shift: i64, op: &Operator) -> Self {
        Self { shift, limit: limit(op.output.bits()) }
    }

    fn apply(&self, x: i64) -> i64 {
        // SAFETY of the cast: the checker keeps |shift| ≤ 63 (and ExpNeg's n + 8 ≤ 48).
        let places = self.shift.unsigned_abs() as u32;
        if self.shift > 0 {
            let quotient = x.wrapping_shr(places);
            let rest = (x as u64) & u64::MAX.wrapping_shr(64u32.wrapping_sub(places));
            let half = 1u64.wrapping_shl(places.wrapping_sub(1));
            let up = rest > half || (rest == half && quotient & 1 == 1);
            return quotient.wrapping_add(i64::from(up)).clamp(self.limit.wrapping_neg(), self.limit);
        }
        // Comparing before shifting: x·2^n exceeds the limit exactly if x exceeds ⌊limit / 2^n⌋.
        let reach = self.limit.wrapping_shr(places);
        match x {
            x if x > reach => self.limit,
            x if x < reach.wrapping_neg() => self.limit.wrapping_neg(),
            x => x.wrapping_shl(places),
        }
    }
}
