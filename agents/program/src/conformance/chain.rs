//! Chains in one against their operators one after another.

use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::Dice;
use tensorlink_types::operator::Operand;
use tensorlink_types::{Opcode, Operator, Source, TensorType, TypeError};

use super::{Failure, Setup, same};
use crate::engine::{Engine, StepContext, one_by_one};
use crate::fused::{Fusions, Turn};
use crate::interpreter::Reference;

/// Gradients of a sum.
const GRADIENTS: u32 = 3;

/// Compares chains of every kind.
///
/// # Errors
/// The first [`Failure`].
pub(super) fn chains<E: Engine>(engine: &E) -> Result<(), Failure> {
    // Fewer elements than a block, not a multiple of one, and more than caches hold.
    for dims in [[3, 5], [7, 300], [1024, 513]] {
        compare(engine, "an optimiser", &optimizer(dims).map_err(Setup::from)?, &[1, 3])?;
    }
    compare(engine, "rows", &rows().map_err(Setup::from)?, &[3])?;
    for bits in [[8, 8], [16, 16], [16, 8]] {
        // Smaller than a part of a sum, and several on either side.
        for dims in [[20, 33, 70], [150, 1000, 40]] {
            compare(engine, "products", &products(bits, dims).map_err(Setup::from)?, &[])?;
        }
    }
    compare(engine, "an embedding", &embedding().map_err(Setup::from)?, &[])
}

/// Compares a chain of which others read some outputs, and the last.
fn compare<E: Engine>(engine: &E, what: &'static str, operators: &[Operator], wanted: &[u32]) -> Result<(), Failure> {
    let (mut dice, context) = (Dice::new(11), StepContext::default());
    let last = operators.len().saturating_sub(1);
    let wanted = wanted.iter().copied().chain(u32::try_from(last)).map(Source::Output);
    let fusions = Fusions::of_segments(operators, std::iter::once(0..operators.len()), wanted);
    let Some(Turn::Chain(_, chain)) = fusions.turn(operators, last) else { return Err(Setup::Chain(what).into()) };
    if chain.links().len() != operators.len() {
        return Err(Setup::Chain(what).into());
    }
    let drawn = chain.operands().into_iter().map(|operand| dice.tensor(&operand.ty));
    let operands: Vec<Tensor> = drawn.collect::<Result<_, _>>().map_err(Setup::from)?;
    let refused = |source| Failure::Refused { what: what.to_owned(), source };
    let due =
        operands.iter().map(|operand| Reference.import(operand)).collect::<Result<Vec<_>, _>>().map_err(refused)?;
    let due = one_by_one::chain(&Reference, &chain, &due.iter().collect::<Vec<_>>(), &context).map_err(refused)?;
    let given =
        operands.iter().map(|operand| engine.import(operand)).collect::<Result<Vec<_>, _>>().map_err(refused)?;
    let given: Vec<&E::Tensor> = given.iter().collect();
    let outputs = engine.chain(&chain, &given, &context).map_err(refused)?;
    if outputs.len() != due.len() {
        return Err(Setup::Chain(what).into());
    }
    for (due, output) in due.iter().zip(&outputs) {
        same(what, due, &engine.export(output).map_err(refused)?)?;
    }
    Ok(())
}

/// Operators under construction.
#[derive(Default)]
struct Operators {
    operators: Vec<Operator>,
    states: u32,
}

impl Operators {
    /// A tensor from outside.
    fn state(&mut self, bits: u8, exponent: i16, dims: &[u32]) -> Result<Operand, TypeError> {
        let source = Source::State(self.states);
        self.states = self.states.saturating_add(1);
        Ok(Operand { source, ty: TensorType::new(bits, exponent, dims)? })
    }

    /// An operator whose result has the shape of its first operand, unless other dimensions are given.
    fn add(
        &mut self,
        opcode: Opcode,
        operands: &[&Operand],
        attributes: &[i64],
        (bits, exponent): (u8, i16),
        dims: Option<&[u32]>,
    ) -> Result<Operand, TypeError> {
        let first = operands.first().map(|operand| operand.ty.dims()).unwrap_or_default();
        let output = TensorType::new(bits, exponent, dims.unwrap_or(first))?;
        let source = Source::Output(u32::try_from(self.operators.len()).unwrap_or(u32::MAX));
        let operands = operands.iter().map(|operand| (*operand).clone()).collect();
        self.operators.push(Operator { opcode, operands, attributes: attributes.to_vec(), output: output.clone() });
        Ok(Operand { source, ty: output })
    }
}

/// A step of AdamW.
fn optimizer(dims: [u32; 2]) -> Result<Vec<Operator>, TypeError> {
    let mut all = Operators::default();
    let (gradient, share) = (all.state(32, 20, &dims)?, all.state(17, 15, &[1])?);
    let (value, first, second) = (all.state(32, 29, &dims)?, all.state(32, 20, &dims)?, all.state(48, 24, &dims)?);
    let (rate, decay) = (all.state(24, 30, &[1])?, all.state(24, 30, &[1])?);
    let clipped = all.add(Opcode::Mul, &[&gradient, &share], &[23], (24, 12), None)?;
    let first = all.add(Opcode::Combine, &[&first, &clipped], &[14746, 419_430, 14], (32, 20), None)?;
    let square = all.add(Opcode::Mul, &[&clipped, &clipped], &[0], (47, 24), None)?;
    let second = all.add(Opcode::Combine, &[&second, &square], &[4055, 41, 12], (48, 24), None)?;
    let direction = all.add(Opcode::Ratio, &[&first, &second], &[12, 1], (24, 20), None)?;
    let change = all.add(Opcode::Mul, &[&direction, &rate], &[21], (32, 29), None)?;
    let next = all.add(Opcode::Combine, &[&value, &change], &[1, -1, 0], (32, 29), None)?;
    let decay = all.add(Opcode::Mul, &[&value, &decay], &[30], (32, 29), None)?;
    all.add(Opcode::Combine, &[&next, &decay], &[1, -1, 0], (32, 29), None)?;
    Ok(all.operators)
}

/// Operators on rows and columns, rounded to fewer places and to more.
fn rows() -> Result<Vec<Operator>, TypeError> {
    let mut all = Operators::default();
    let (x, by_row, by_column) = (all.state(24, 8, &[5, 300])?, all.state(18, 10, &[5])?, all.state(16, 4, &[300])?);
    let scaled = all.add(Opcode::RowMul, &[&x, &by_row], &[12], (24, 6), None)?;
    let moved = all.add(Opcode::RowCombine, &[&scaled, &by_row], &[3, -5, 0], (26, 6), None)?;
    let finer = all.add(Opcode::Scale, &[&moved], &[7, -3], (40, 9), None)?;
    all.add(Opcode::Mul, &[&scaled, &by_column], &[6], (32, 4), None)?;
    all.add(Opcode::Combine, &[&finer, &x], &[1, 300, 9], (32, 4), None)?;
    Ok(all.operators)
}

/// Gradients of a matrix, and their sum, which reaches its limits.
fn products([left, right]: [u8; 2], [m, n, k]: [u32; 3]) -> Result<Vec<Operator>, TypeError> {
    let mut all = Operators::default();
    let mut total: Option<Operand> = None;
    for _ in 0..GRADIENTS {
        let (a, b) = (all.state(left, 0, &[m, k])?, all.state(right, 0, &[n, k])?);
        let (r, c) = (all.state(18, 0, &[m])?, all.state(2, 0, &[n])?);
        let shift = i16::from(left).saturating_add(right.into()).saturating_sub(13);
        let exponent = 0i16.saturating_sub(shift);
        let operands = [&a, &b, &r, &c];
        let attributes = [0, shift.into()];
        let part = all.add(Opcode::ScaledMatMul, &operands, &attributes, (32, exponent), Some(&[m, n]))?;
        total = Some(match total {
            None => part,
            Some(total) => all.add(Opcode::Combine, &[&total, &part], &[1, 1, 0], (32, exponent), None)?,
        });
    }
    Ok(all.operators)
}

/// Gradients of an embedding, and their sum.
fn embedding() -> Result<Vec<Operator>, TypeError> {
    let mut all = Operators::default();
    let mut total: Option<Operand> = None;
    for _ in 0..GRADIENTS {
        let (gradient, ids) = (all.state(24, 0, &[70, 30])?, all.state(6, 0, &[30])?);
        let part = all.add(Opcode::GatherGrad, &[&gradient, &ids], &[-7], (32, 7), Some(&[11, 70]))?;
        total = Some(match total {
            None => part,
            Some(total) => all.add(Opcode::Combine, &[&total, &part], &[1, 1, 0], (32, 7), None)?,
        });
    }
    Ok(all.operators)
}
