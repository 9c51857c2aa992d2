//! The test suite of the [`Engine`] trait: every implementation is held against the [`Reference`](crate::Reference),
//! bit for bit.
//!
//! ```text
//! conformance::operators(&MyEngine::new()?, 50)?;
//! ```

mod attention;
mod chain;
mod layer;

use tensorlink_num::arbitrary::{Case, CaseError, MAX_SIZE};
use tensorlink_num::tables::TableError;
use tensorlink_num::{OpError, Tensor, TensorError};
use tensorlink_types::operator::Operand;
use tensorlink_types::{Opcode, Operator, Source, TensorType, TypeError};
use thiserror::Error;

use crate::engine::{Engine, EngineError, StepContext};

/// How an engine failed.
#[derive(Debug, Error)]
pub enum Failure {
    /// It gave other bits than the reference; it must not be used.
    #[error("{what}: element {element} is {actual:?}, the reference gives {expected:?}")]
    Different {
        /// The operator, or where it stands.
        what: String,
        /// Row-major index of the first difference.
        element: u64,
        /// The reference's mantissa.
        expected: Option<i64>,
        /// The engine's.
        actual: Option<i64>,
    },
    /// It gave another type than the operator names.
    #[error("{what}: the result is {actual}, not {expected}")]
    Type {
        /// The operator.
        what: String,
        /// What the operator names.
        expected: TensorType,
        /// What came back.
        actual: TensorType,
    },
    /// It refused an accepted operator.
    #[error("{what}: {source}")]
    Refused {
        /// The operator.
        what: String,
        /// Why.
        source: EngineError,
    },
    /// It accepted what breaks a rule.
    #[error("{what} was accepted, though it is malformed")]
    Accepted {
        /// What was wrong.
        what: &'static str,
    },
    /// The suite itself could not be set up: a defect of this crate.
    #[error("setting up: {0}")]
    Setup(#[from] Setup),
}

/// A defect of the suite.
#[derive(Debug, Error)]
pub enum Setup {
    /// A random operator.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// The reference.
    #[error(transparent)]
    Operator(#[from] OpError),
    /// A type.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// A tensor.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Operators that should have been found to be an attention.
    #[error("an attention was not recognised")]
    Attention,
    /// Operators that should have been found to be a chain.
    #[error("a chain was not recognised: {0}")]
    Chain(&'static str),
}

/// Runs `cases` random operators of every opcode, of a few elements: some milliseconds.
///
/// # Errors
/// The first [`Failure`].
pub fn drawn<E: Engine>(engine: &E, cases: u32) -> Result<(), Failure> {
    for &opcode in Opcode::ALL {
        for seed in 0..cases {
            let size = seed.checked_rem(MAX_SIZE).unwrap_or_default().saturating_add(1);
            let case = Case::new(opcode, size, seed.into()).map_err(Setup::from)?;
            compare(engine, &case.operator, &case.operands, &case.context)?;
        }
    }
    Ok(())
}

/// Runs [`drawn`] operators, those of a transformer's layer, attentions and chains in one, and matrix products of
/// extreme operands in awkward shapes.
///
/// # Errors
/// The first [`Failure`].
pub fn operators<E: Engine>(engine: &E, cases: u32) -> Result<(), Failure> {
    drawn(engine, cases)?;
    for (bits, limit) in [(8, 127i64), (16, 32767)] {
        for (m, k, n) in [(1, 4096, 3), (17, 64, 8), (33, 100, 31), (16, 1, 1), (5, 4095, 17), (2, 2048, 64)] {
            for signs in [[1, 1], [1, -1], [-1, -1]] {
                let [a, b] = signs.map(|sign| sign * limit);
                extreme(engine, bits, (m, k, n), |i| (if i % 7 == 6 { -a } else { a }, b))?;
            }
            extreme(engine, bits, (m, k, n), |i| ((i * 37) % limit - limit / 2, (i * 59) % limit - limit / 3))?;
        }
    }
    layer::operators(engine)?;
    attention::attentions(engine)?;
    chain::chains(engine)?;
    refusals(engine)
}

/// A product of operands made from each element's index, rounded to 32 bits by eight places.
fn extreme<E: Engine>(
    engine: &E,
    bits: u8,
    (m, k, n): (u32, u32, u32),
    mantissas: impl Fn(i64) -> (i64, i64),
) -> Result<(), Failure> {
    let set_up = || {
        let (a, b) = (TensorType::new(bits, 0, &[m, k])?, TensorType::new(bits, 0, &[n, k])?);
        let output = TensorType::new(32, -8, &[m, n])?;
        let values = |ty: &TensorType| (0..ty.elements() as i64).map(&mantissas).collect::<Vec<_>>();
        let left: Vec<i64> = values(&a).into_iter().map(|pair| pair.0).collect();
        let right: Vec<i64> = values(&b).into_iter().map(|pair| pair.1).collect();
        let operands = vec![Tensor::from_wide(a, &left)?, Tensor::from_wide(b, &right)?];
        let named = |(i, tensor): (u32, &Tensor)| Operand { source: Source::State(i), ty: tensor.ty().clone() };
        let named = (0..).zip(&operands).map(named).collect();
        Ok((Operator { opcode: Opcode::MatMul, operands: named, attributes: vec![8], output }, operands))
    };
    let (operator, operands) = set_up().map_err(Failure::Setup)?;
    compare(engine, &operator, &operands, &StepContext::default())
}

/// What an engine must not accept: each case with one thing wrong.
fn refusals<E: Engine>(engine: &E) -> Result<(), Failure> {
    let context = StepContext::default();
    for &opcode in Opcode::ALL {
        let case = Case::new(opcode, 4, 1).map_err(Setup::from)?;
        let tensors = import(engine, &case.operator, &case.operands)?;
        let operands: Vec<&E::Tensor> = tensors.iter().collect();
        let mut extra = case.operator.clone();
        extra.attributes.push(0);
        if engine.execute(&extra, &operands, &context).is_ok() {
            return Err(Failure::Accepted { what: "an operator with an attribute too many" });
        }
        let fewer = operands.split_last().map_or(&[][..], |(_, rest)| rest);
        if engine.execute(&case.operator, fewer, &context).is_ok() {
            return Err(Failure::Accepted { what: "an operator with an operand too few" });
        }
    }
    Ok(())
}

fn import<E: Engine>(engine: &E, operator: &Operator, operands: &[Tensor]) -> Result<Vec<E::Tensor>, Failure> {
    let refused = |source| Failure::Refused { what: operator.to_string(), source };
    operands.iter().map(|tensor| engine.import(tensor).map_err(refused)).collect()
}

fn compare<E: Engine>(
    engine: &E,
    operator: &Operator,
    operands: &[Tensor],
    context: &StepContext,
) -> Result<(), Failure> {
    let what = operator.to_string();
    let borrowed: Vec<&Tensor> = operands.iter().collect();
    let expected = tensorlink_num::execute(operator, &borrowed, context).map_err(Setup::from)?;
    let tensors = import(engine, operator, operands)?;
    let tensors: Vec<&E::Tensor> = tensors.iter().collect();
    let refused = |source| Failure::Refused { what: what.clone(), source };
    let actual =
        engine.execute(operator, &tensors, context).and_then(|tensor| engine.export(&tensor)).map_err(refused)?;
    same(&what, &expected, &actual)
}

/// Whether a result is the reference's, bit for bit.
///
/// # Errors
/// [`Failure::Different`] and [`Failure::Type`], of `what`.
pub fn same(what: &str, expected: &Tensor, actual: &Tensor) -> Result<(), Failure> {
    if expected == actual {
        return Ok(());
    }
    if expected.ty() != actual.ty() {
        let (expected, actual) = (expected.ty().clone(), actual.ty().clone());
        return Err(Failure::Type { what: what.to_owned(), expected, actual });
    }
    let element = (0..expected.ty().elements()).find(|i| expected.get(*i) != actual.get(*i)).unwrap_or_default();
    let (expected, actual) = (expected.get(element), actual.get(element));
    Err(Failure::Different { what: what.to_owned(), element, expected, actual })
}
