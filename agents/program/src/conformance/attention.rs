//! Attention in one against its operators one after another.

use std::fmt;

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::Dice;
use tensorlink_num::tables::exp2_table;
use tensorlink_types::operator::Operand;
use tensorlink_types::{Opcode, Operator, Source, TensorType, TypeError};

use super::{Failure, Setup, same};
use crate::engine::{Engine, EngineError, StepContext, one_by_one};
use crate::fused::{Fusions, Turn};
use crate::interpreter::Reference;

/// An attention's dimensions.
#[derive(Clone, Copy)]
struct Shape {
    queries: u32,
    keys: u32,
    heads: u32,
    /// Heads of keys, and of values.
    kv_heads: [u32; 2],
    /// Elements of a head of keys, and of values.
    depths: [u32; 2],
    causal: bool,
    /// Of queries, keys and values.
    bits: u8,
    /// Places by which scores are rounded: the more, the smaller they are.
    shift: i16,
}

/// One row and many, fewer keys than rows and more, heads that share keys and values and that do not, words and bytes,
/// scores from tiny to saturated.
const SHAPES: [Shape; 8] = {
    let small =
        Shape { queries: 1, keys: 1, heads: 1, kv_heads: [1, 1], depths: [1, 1], causal: false, bits: 12, shift: 8 };
    let usual = Shape { heads: 4, kv_heads: [2, 2], depths: [16, 16], causal: true, bits: 12, ..small };
    [
        small,
        Shape { queries: 300, keys: 300, ..usual },
        Shape { queries: 1, keys: 333, causal: false, ..usual },
        Shape { queries: 11, keys: 70, heads: 6, kv_heads: [3, 2], depths: [33, 20], causal: false, ..usual },
        Shape { queries: 129, keys: 200, bits: 16, shift: 14, ..usual },
        Shape { queries: 40, keys: 7, shift: 0, bits: 16, ..usual },
        Shape { queries: 140, keys: 150, causal: false, shift: 12, ..usual },
        Shape { queries: 20, keys: 30, bits: 8, shift: 3, ..usual },
    ]
};

/// Compares attentions of every kind of shape.
///
/// # Errors
/// The first [`Failure`].
pub(super) fn attentions<E: Engine>(engine: &E) -> Result<(), Failure> {
    let (mut dice, context) = (Dice::new(7), StepContext::default());
    for shape in SHAPES {
        let operators = shape.operators().map_err(Setup::from)?;
        let fusions = Fusions::attentions(&operators, []);
        let Some(Turn::Attention(_, attention)) = fusions.turn(&operators, operators.len().saturating_sub(1)) else {
            return Err(Setup::Attention.into());
        };
        let [query, key, _, values] = attention.operands().ok_or(Setup::Attention)?;
        let mut drawn = |operand: &Operand| dice.tensor(&operand.ty).map_err(Setup::from);
        let operands = [drawn(query)?, drawn(key)?, exp2_table().map_err(Setup::from)?, drawn(values)?];
        let what = shape.to_string();
        let refused = |source| Failure::Refused { what: what.clone(), source };
        let expected =
            result(&Reference, &operands, |operands| one_by_one::attend(&Reference, &attention, operands, &context));
        let actual = result(engine, &operands, |operands| engine.attend(&attention, operands, &context));
        same(&what, &expected.map_err(refused)?, &actual.map_err(refused)?)?;
    }
    Ok(())
}

/// What an engine gives for operands of the host.
fn result<E: Engine>(
    engine: &E,
    [query, key, table, values]: &[Tensor; 4],
    attend: impl FnOnce([&E::Tensor; 4]) -> Result<E::Tensor, EngineError>,
) -> Result<Tensor, EngineError> {
    let (query, key) = (engine.import(query)?, engine.import(key)?);
    let (table, values) = (engine.import(table)?, engine.import(values)?);
    engine.export(&attend([&query, &key, &table, &values])?)
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queries, keys, heads, causal, bits, .. } = self;
        write!(f, "attention of {queries} queries to {keys} keys, {heads} heads, {bits} bits, causal: {causal}")
    }
}

impl Shape {
    /// HeadScores, RowMax, ExpNeg, RowSum, Normalize, HeadMix.
    fn operators(self) -> Result<Vec<Operator>, TypeError> {
        let Self { queries, keys, heads, kv_heads: [key_heads, value_heads], depths: [key_depth, depth], .. } = self;
        let of_heads = |number: u32, depth: u32| number.saturating_mul(depth);
        let (causal, shift) = (i64::from(self.causal), self.shift);
        let exponent = 16i16.saturating_sub(shift);
        let query = TensorType::new(self.bits, 8, &[queries, of_heads(heads, key_depth)])?;
        let key = TensorType::new(self.bits, 8, &[keys, of_heads(key_heads, key_depth)])?;
        let values = TensorType::new(self.bits.max(12), 8, &[of_heads(value_heads, depth), keys])?;
        let table = TensorType::new(26, 24, &[257])?;
        let whole = |bits, exponent| TensorType::new(bits, exponent, &[heads, queries, keys]);
        let row = |bits, exponent| TensorType::new(bits, exponent, &[heads, queries]);
        let (scores, max, powers) = (whole(16, exponent)?, row(16, exponent)?, whole(26, 24)?);
        let (sum, probabilities) = (row(32, 16)?, whole(16, 15)?);
        let mixed = TensorType::new(16, 8, &[queries, of_heads(heads, depth)])?;
        let state = |index, ty: &TensorType| Operand { source: Source::State(index), ty: ty.clone() };
        let output = |index, ty: &TensorType| Operand { source: Source::Output(index), ty: ty.clone() };
        let operator = |opcode, operands: &[Operand], attributes: &[i64], output: &TensorType| Operator {
            opcode,
            operands: operands.to_vec(),
            attributes: attributes.to_vec(),
            output: output.clone(),
        };
        // log2(e)·2^14; the argument of powers has 16 fraction bits.
        let power = [23637, i64::from(exponent).saturating_sub(2), causal];
        let [max_of, powers_of] = [output(1, &max), output(2, &powers)];
        Ok(vec![
            operator(Opcode::HeadScores, &[state(0, &query), state(1, &key)], &[heads.into(), shift.into()], &scores),
            operator(Opcode::RowMax, &[output(0, &scores)], &[causal], &max),
            operator(Opcode::ExpNeg, &[output(0, &scores), max_of, state(2, &table)], &power, &powers),
            operator(Opcode::RowSum, std::slice::from_ref(&powers_of), &[8], &sum),
            operator(Opcode::Normalize, &[powers_of, output(3, &sum)], &[7], &probabilities),
            operator(Opcode::HeadMix, &[output(4, &probabilities), state(3, &values)], &[heads.into(), 15], &mixed),
        ])
    }
}
