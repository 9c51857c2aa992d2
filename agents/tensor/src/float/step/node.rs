//! One operator of a step graph in floats.

use tch::{Kind, TchError, Tensor};
use tensorlink_num::{StepContext, philox};
use tensorlink_training::step::float::factors;
use tensorlink_training::step::{Function, Node, Op, StepGraph};

use super::{Values, dims, heads, per, product, rows};

/// A node's value, in its shape.
pub(super) fn compute(
    graph: &StepGraph,
    node: &Node,
    values: &Values<'_>,
    context: &StepContext,
) -> Result<Tensor, TchError> {
    let id = |i: usize| node.inputs.get(i).copied().ok_or_else(|| lacking(node, i));
    let operand = |i: usize| values.get(id(i)?);
    // Length of an operand's rows.
    let length = |i: usize| Ok::<_, TchError>(row(graph.node(id(i)?)));
    // What an operand's rows are cut into, where parts of them give an element each.
    let part = |i: usize| Ok::<_, TchError>(per(operand(i)?.numel() as i64, node.elements() as i64).max(1));
    // Rows in which a token sees what comes before it.
    let tokens = |i: usize| Ok::<_, TchError>(graph.node(id(i)?).dims.iter().rev().nth(1).map_or(1, |t| i64::from(*t)));
    let products = values.products;
    let multiply = |a: Tensor, b: Tensor| product(&a, &b, products);
    let value = match node.op {
        // Leaves are given.
        Op::Features | Op::Labels | Op::State | Op::Constant(_) => return Err(lacking(node, 0)),
        Op::Sample { first_row } => sample(operand(0)?, first_row, node, context)?,
        Op::MatMul => {
            let depth = length(0)?;
            multiply(rows::of(operand(0)?, depth)?, rows::of(operand(1)?, depth)?.f_transpose(0, 1)?)?
        }
        Op::Transpose => operand(0)?.f_reshape([-1, row(node), length(0)?])?.f_transpose(1, 2)?,
        Op::Combine { fa, fb } => {
            let (a, b) = rows::repeated(operand(0)?, operand(1)?)?;
            times(&a, fa)?.f_add(&times(&b, fb)?)?
        }
        Op::Dropout { keep, stream } => {
            let x = operand(0)?;
            let factors: Vec<f64> = factors(keep, stream, context).take(x.numel()).collect();
            let factors = Tensor::f_from_slice(&factors)?.f_to_kind(Kind::Float)?.f_to_device(x.device())?;
            x.f_mul(&factors.f_reshape(x.size())?)?
        }
        Op::Cast | Op::Ceiling => operand(0)?.shallow_clone(),
        Op::Mul => {
            let (a, b) = rows::repeated(operand(0)?, operand(1)?)?;
            a.f_mul(&b)?
        }
        Op::Relu => operand(0)?.f_relu()?,
        Op::ReluGrad => operand(0)?.f_masked_fill(&rows::not_positive(operand(1)?)?, 0.0)?,
        Op::Lookup(function) => look_up(function, operand(0)?)?,
        Op::RowMax { causal } => {
            let x = rows::of(operand(0)?, part(0)?)?;
            let x = if causal { rows::hide(&x, tokens(0)?, f64::NEG_INFINITY)? } else { x };
            x.f_amax([-1i64], false)?
        }
        Op::ExpNeg { divisor, causal } => {
            let x = rows::of(operand(0)?, length(0)?)?;
            let powers = times(&x.f_sub(&operand(1)?.f_reshape([-1, 1])?)?, 1.0 / divisor)?.f_exp()?;
            if causal { rows::hide(&powers, tokens(0)?, 0.0)? } else { powers }
        }
        Op::RowSum => rows::of(operand(0)?, part(0)?)?.f_sum_dim_intlist([-1i64].as_slice(), false, None)?,
        Op::Normalize | Op::Dither { .. } => {
            // Where a divisor is nothing, so is what it divides.
            let divisors = operand(1)?.f_reshape([-1, 1])?;
            rows::of(operand(0)?, length(0)?)?.f_div(&divisors)?.f_masked_fill(&divisors.f_eq(0.0)?, 0.0)?
        }
        Op::ScaledMatMul { offset } => {
            let depth = length(1)?;
            let a = rows::of(operand(0)?, length(0)?)?.f_narrow(1, offset.into(), depth)?;
            let product = multiply(a, rows::of(operand(1)?, depth)?.f_transpose(0, 1)?)?;
            product.f_mul(&operand(2)?.f_reshape([-1, 1])?)?.f_mul(&operand(3)?.f_reshape([1, -1])?)?
        }
        Op::Slice { offset } => rows::of(operand(0)?, length(0)?)?.f_narrow(1, offset.into(), row(node))?,
        Op::RowCombine { fa, fb } => {
            let (a, b) = rows::runs(operand(0)?, operand(1)?)?;
            times(&a, fa)?.f_add(&times(&b, fb)?)?
        }
        Op::RowMul => {
            let (a, b) = rows::runs(operand(0)?, operand(1)?)?;
            a.f_mul(&b)?
        }
        Op::RowAbsMax => rows::of(operand(0)?, part(0)?)?.f_abs()?.f_amax([-1i64], false)?,
        Op::HeadScores { heads } => {
            heads::scores((operand(0)?, length(0)?), (operand(1)?, length(1)?), (heads.into(), products))?
        }
        Op::HeadMix { heads } => {
            heads::mix(operand(0)?, (operand(1)?, length(1)?), (heads.into(), row(node), products))?
        }
        Op::GroupSum { heads } => heads::group_sum((operand(0)?, length(0)?), heads.into(), row(node))?,
        Op::Norm(spread) => rows::norm(operand(0)?, length(1)?, &spread)?,
        Op::InverseNorm(spread) => rows::inverse_norm(operand(0)?, part(0)?, &spread)?,
        Op::Rope { heads } => rows::rope((operand(0)?, per(length(0)?, heads.into())), (operand(1)?, length(1)?))?,
        Op::Gather => operand(0)?.f_index_select(0, &indices(operand(2)?)?)?,
        Op::GatherGrad => {
            let columns = rows::of(operand(0)?, length(0)?)?.f_transpose(0, 1)?;
            let sums = Tensor::f_zeros(dims(node), (Kind::Float, columns.device()))?;
            sums.f_index_add(0, &indices(operand(1)?)?, &columns)?
        }
        Op::Ratio { epsilon } => {
            let (first, second) = (operand(0)?, operand(1)?);
            let ratio = first.f_div(&second.f_sqrt()?.f_add_scalar(epsilon)?)?;
            ratio.f_masked_fill(&rows::not_positive(second)?, 0.0)?
        }
        Op::Shrink { limit } => {
            let squares = operand(0)?;
            let shares = times(&squares.f_rsqrt()?, limit)?.f_clamp_max(1.0)?;
            shares.f_masked_fill(&rows::not_positive(squares)?, 1.0)?
        }
        Op::AtStep => {
            let table = rows::of(operand(0)?, row(node))?;
            let (last, _) = table.size2()?;
            table.f_get(i64::from(context.step).min(last.saturating_sub(1)))?
        }
        Op::OneHotSub => {
            let labels = indices(operand(1)?)?.f_reshape([-1, 1])?;
            let ones = Tensor::f_full(labels.size(), -1.0, (Kind::Float, labels.device()))?;
            rows::of(operand(0)?, length(0)?)?.f_scatter_add(1, &labels, &ones)?
        }
    };
    value.f_reshape(dims(node))
}

/// Length of a node's rows.
pub(super) fn row(node: &Node) -> i64 {
    node.dims.last().map_or(1, |d| i64::from(*d)).max(1)
}

fn lacking(node: &Node, operand: usize) -> TchError {
    TchError::Torch(format!("{node} has no operand {operand}"))
}

/// Rows drawn for the step.
fn sample(data: &Tensor, first_row: u32, node: &Node, context: &StepContext) -> Result<Tensor, TchError> {
    let rows = data.size().first().map_or(0, |rows| *rows as u64);
    let batch = node.dims.first().copied().unwrap_or_default();
    let draw =
        |i: u32| philox::draw_below(&context.job_key, first_row.saturating_add(i), context.step, rows).cast_signed();
    let drawn: Vec<i64> = (0..batch).map(draw).collect();
    data.f_index_select(0, &Tensor::f_from_slice(&drawn)?.f_to_device(data.device())?)
}

fn indices(ids: &Tensor) -> Result<Tensor, TchError> {
    ids.f_reshape([-1])?.f_to_kind(Kind::Int64)
}

fn times(x: &Tensor, factor: f64) -> Result<Tensor, TchError> {
    // A copy less, for most of them.
    if factor == 1.0 { Ok(x.shallow_clone()) } else { x.f_mul_scalar(factor) }
}

fn look_up(function: Function, x: &Tensor) -> Result<Tensor, TchError> {
    match function {
        Function::Gelu => x.f_gelu("none"),
        Function::GeluDerivative => x.f_gelu_backward(&x.f_ones_like()?, "none"),
        Function::GeluTanh => x.f_gelu("tanh"),
        Function::GeluTanhDerivative => x.f_gelu_backward(&x.f_ones_like()?, "tanh"),
        Function::Silu => x.f_silu(),
        Function::Tanh => x.f_tanh(),
        Function::SiluDerivative => {
            // σ(x)·(1 + x·(1 − σ(x)))
            let share = x.f_sigmoid()?;
            let rest = share.f_neg()?.f_add_scalar(1.0)?;
            share.f_mul(&x.f_mul(&rest)?.f_add_scalar(1.0)?)
        }
    }
}
