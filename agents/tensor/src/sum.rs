//! Gradients of several sequences and their sum, a part of the result at a time: what each sequence adds stays in the
//! second-level cache.

use std::ops::Range;

use tensorlink_num::CheckedOperator;
use tensorlink_num::operators::Combine;
use tensorlink_program::EngineError;
use tensorlink_program::fused::chain::{Chain, Link, Taken};
use tensorlink_types::{Operator, TensorType};

use crate::checked::decode;
use crate::host::block::Precision;
use crate::host::gradients::{add_gather_grad, gather_grad};
use crate::host::vnni::finish::{Added, Scaled};
use crate::host::vnni::matrix::{Batch, View};
use crate::matmul::{Product, ProductDispatch, Scales, malformed, size};
use crate::slice::SliceMut;
use crate::tensor::TorchTensor;

/// Columns of a part, a multiple of what tiles take.
const COLUMNS: usize = 960;
/// Elements of a part: in 32 bits, half of a second-level cache of 1 MiB.
const ELEMENTS: usize = 1 << 17;
/// Rows of a part are a multiple of this, those of a panel.
const ROWS: usize = 16;

/// The gradients of a sum, decoded, in the order in which they are added.
pub(crate) enum Sum<'a> {
    /// Of matrices.
    Products(Vec<(Product<'a>, i32)>),
    /// Of an embedding: gradients, ids, and by how much sums are rescaled.
    Rows(Vec<([&'a TorchTensor; 2], i32)>),
}

impl<'a> Sum<'a> {
    /// Checks and decodes; nothing of other chains.
    ///
    /// # Errors
    /// [`EngineError::Malformed`] with the rule that is broken.
    pub(crate) fn parse(chain: &Chain<&Operator>, operands: &[&'a TorchTensor]) -> Result<Option<Self>, EngineError> {
        let Some(parts) = parts(chain.links())? else { return Ok(None) };
        let (mut products, mut rows) = (Vec::new(), Vec::new());
        for part in &parts {
            let find = |taken: &Taken| match *taken {
                Taken::Outside(number) => operands.get(number).copied(),
                Taken::Link(_) => None,
            };
            let Some(found) = part.operands.iter().map(find).collect::<Option<Vec<_>>>() else { return Ok(None) };
            match (decode(part.operator)?, &*found) {
                (CheckedOperator::ScaledMatMul(op), &[a, b, r, c]) => {
                    let (offset, scales) = (op.product.offset as usize, Scales::Rows(r, c));
                    products.push((Product { a, b, offset, scales }, op.shift as i32));
                }
                (CheckedOperator::GatherGrad(op), &[gradient, ids]) => {
                    rows.push(([gradient, ids], op.shift as i32));
                }
                _ => return Ok(None),
            }
        }
        Ok(match (products.len(), rows.len()) {
            (_, 0) => Some(Self::Products(products)),
            (0, _) => Some(Self::Rows(rows)),
            _ => None,
        })
    }

    /// The sum; nothing if products are not by kernels of our own.
    ///
    /// # Errors
    /// [`EngineError::Device`] if memory runs out or an operand is not in host memory.
    pub(crate) fn compute(
        &self,
        dispatch: ProductDispatch,
        output: &TensorType,
    ) -> Result<Option<TorchTensor>, EngineError> {
        let ours = |(product, _): &(Product<'_>, i32)| dispatch.kernels.own(product.a.ty().bits() <= 8).is_some();
        match self {
            Self::Products(parts) if !parts.iter().all(ours) => Ok(None),
            Self::Products(parts) => {
                TorchTensor::build(output, |mut out| products(dispatch, parts, output, &mut out)).map(Some)
            }
            Self::Rows(parts) => TorchTensor::build(output, |mut out| {
                let width = size(output.row())?;
                for (place, ([gradient, ids], shift)) in parts.iter().enumerate() {
                    let to = Precision { shift: *shift, limit: output.limit() };
                    let add = if place == 0 { gather_grad } else { add_gather_grad };
                    add(dispatch.simd, gradient.slice()?, ids.slice()?, width, to, &mut out);
                }
                Ok(())
            })
            .map(Some),
        }
    }
}

/// The links whose outputs are added, if a chain is nothing but their sum, each type being that of the sum.
fn parts<'c>(links: &'c [Link<&'c Operator>]) -> Result<Option<Vec<&'c Link<&'c Operator>>>, EngineError> {
    let Some(last) = links.len().checked_sub(1) else { return Ok(None) };
    let output = &links[last].operator.output;
    if links.iter().enumerate().any(|(place, link)| link.kept != (place == last) || link.operator.output != *output) {
        return Ok(None);
    }
    let (mut parts, mut place) = (Vec::new(), last);
    while let CheckedOperator::Combine(Combine { ca: 1, cb: 1, shift: 0, .. }) = decode(links[place].operator)? {
        let &[Taken::Link(total), Taken::Link(part)] = &*links[place].operands else { return Ok(None) };
        parts.push(&links[part]);
        place = total;
    }
    parts.push(&links[place]);
    parts.reverse();
    // Each is added once.
    Ok((2 * parts.len() == links.len() + 1).then_some(parts))
}

fn products(
    dispatch: ProductDispatch,
    parts: &[(Product<'_>, i32)],
    output: &TensorType,
    out: &mut SliceMut<'_>,
) -> Result<(), EngineError> {
    let (m, n) = (size(output.rows())?, size(output.row())?);
    let height = (ELEMENTS / n.min(COLUMNS)).next_multiple_of(ROWS);
    for row in (0..m).step_by(height) {
        for column in (0..n).step_by(COLUMNS) {
            let block = (row..m.min(row + height), column..n.min(column + COLUMNS));
            for (place, (product, shift)) in parts.iter().enumerate() {
                let to = Precision { shift: *shift, limit: output.limit() };
                part(dispatch, product, (to, place > 0), &block, (out.part(row * n + column), n))?;
            }
        }
    }
    Ok(())
}

/// Some rows and columns of a product, written or added to what is there.
fn part(
    dispatch: ProductDispatch,
    product: &Product<'_>,
    (to, add): (Precision, bool),
    (rows, columns): &(Range<usize>, Range<usize>),
    (out, stride): (SliceMut<'_>, usize),
) -> Result<(), EngineError> {
    let Product { a, b, offset, scales } = *product;
    let (Some(own), Scales::Rows(r, c)) = (dispatch.kernels.own(a.ty().bits() <= 8), scales) else {
        return Err(malformed("a gradient that is no scaled product of our own"));
    };
    let (width, k) = (size(a.ty().row())?, size(b.ty().row())?);
    let batch = Batch {
        count: 1,
        a: (View { first: rows.start * width + offset, rows: rows.len(), width: k, stride: width }, 0),
        b: (View { first: columns.start * k, rows: columns.len(), width: k, stride: k }, 0),
        share: 1,
        out: (rows.len() * stride, stride),
    };
    let operands = ((a.slice()?, a.ty().limit()), (b.slice()?, b.ty().limit()));
    let scaled = Scaled::new(r.slice()?.part(rows.start), c.slice()?.part(columns.start), to);
    if add {
        dispatch.multiply_into(own, operands, &batch, &Added(scaled), out)
    } else {
        dispatch.multiply_into(own, operands, &batch, &scaled, out)
    }
}
