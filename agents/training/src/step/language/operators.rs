//! Operators as blocks are written in: what they are of, and their shapes.

use tensorlink_program::scale::equal_parts;

use super::Builder;
use crate::model::MAX_WIDTH;
use crate::step::build::ONE;
use crate::step::place::Place;
use crate::step::{ConstantValues, Node, NodeId, Op, Phase, Precision};

impl Builder<'_> {
    pub(super) fn leaf(&mut self, site: &str, op: Op, dims: Vec<u32>, precision: Precision) -> NodeId {
        let Place { layer, .. } = self.place;
        self.graph.push(Node {
            op,
            inputs: Vec::new(),
            dims,
            phase: Phase::Prepare,
            layer,
            site: site.to_owned(),
            precision,
        })
    }

    /// Appends an operator.
    pub(super) fn op(&mut self, site: &str, op: Op, inputs: &[NodeId], dims: Vec<u32>, precision: Precision) -> NodeId {
        let Place { phase, layer } = self.place;
        self.graph.push(Node { op, inputs: inputs.to_vec(), dims, phase, layer, site: site.to_owned(), precision })
    }

    /// Appends an operator whose result has the shape of its first input.
    pub(super) fn like(&mut self, site: &str, op: Op, inputs: &[NodeId], precision: Precision) -> NodeId {
        let dims = inputs.first().map(|id| self.dims(*id)).unwrap_or_default();
        self.op(site, op, inputs, dims, precision)
    }

    /// Appends operators that give one element for each row of their first input: of rows longer than one operator
    /// reduces, by way of equal parts.
    pub(super) fn by_row(&mut self, site: &str, op: Op, input: NodeId, precision: Precision) -> NodeId {
        let y = self.by_part(site, op, input, precision.clone());
        if self.part(input) == self.row(input) { y } else { self.by_row(&format!("{site}.whole"), op, y, precision) }
    }

    /// The sum of each row, without rounding.
    pub(super) fn exact_sum(&mut self, site: &str, input: NodeId) -> NodeId {
        let terms = self.part(input);
        let y = self.by_part(site, Op::RowSum, input, Precision::Exact { terms });
        if terms == self.row(input) { y } else { self.exact_sum(&format!("{site}.whole"), y) }
    }

    /// A tensor in pieces that can be summed up whole, in equal parts: itself, or, of a matrix whose number of rows has
    /// none, as a vocabulary of 30,522 has not, as many rows as have and the rest, as columns.
    pub(super) fn reducible(&mut self, site: &str, x: NodeId) -> Vec<NodeId> {
        let (rows, columns) = match self.dims(x).as_slice() {
            [rows, columns] if equal_parts((*rows).into()).is_none() => (*rows, *columns),
            _ => return vec![x],
        };
        let turned = self.transpose(x);
        let parts = rows.div_ceil(MAX_WIDTH);
        let first = rows.div_ceil(parts.max(1)).saturating_mul(parts.saturating_sub(1));
        let pieces = [(0, first), (first, rows.saturating_sub(first))];
        let piece =
            |(offset, of)| self.op(site, Op::Slice { offset }, &[turned], vec![columns, of], Precision::Like(x));
        pieces.map(piece).into()
    }

    /// Appends an operator that gives one element for each of the equal parts of a row that are reduced at once.
    pub(super) fn by_part(&mut self, site: &str, op: Op, input: NodeId, precision: Precision) -> NodeId {
        self.by_run((site, self.part(input)), op, input, precision)
    }

    /// Appends an operator that gives one element for so many of a row.
    pub(super) fn by_run(&mut self, (site, run): (&str, u32), op: Op, input: NodeId, precision: Precision) -> NodeId {
        let mut dims = self.dims(input);
        dims.pop();
        match self.row(input).checked_div(run) {
            Some(runs) if runs > 1 => dims.push(runs),
            _ if dims.is_empty() => dims.push(1),
            _ => {}
        }
        self.op(site, op, &[input], dims, precision)
    }

    /// Elements of a row that one operator reduces.
    pub(super) fn part(&self, id: NodeId) -> u32 {
        let row = self.row(id);
        equal_parts(row.into()).and_then(|parts| row.checked_div(parts)).unwrap_or(row).max(1)
    }

    pub(super) fn dims(&self, id: NodeId) -> Vec<u32> {
        self.graph.node(id).dims.clone()
    }

    pub(super) fn row(&self, id: NodeId) -> u32 {
        self.graph.node(id).dims.last().copied().unwrap_or(1)
    }

    /// The last two dimensions exchanged, once for each tensor.
    pub(super) fn transpose(&mut self, id: NodeId) -> NodeId {
        if let Some(done) = self.transposed.get(&id) {
            return *done;
        }
        let mut dims = self.dims(id);
        let last = dims.len().saturating_sub(2);
        if let Some(pair) = dims.get_mut(last..) {
            pair.reverse();
        }
        let site = format!("{}.transposed", self.graph.node(id).site);
        let done = self.op(&site, Op::Transpose, &[id], dims, Precision::Like(id));
        self.transposed.insert(id, done);
        done
    }

    pub(super) fn sum(&mut self, site: &str, a: NodeId, b: NodeId, precision: Precision) -> NodeId {
        self.like(site, Op::Combine { fa: 1.0, fb: 1.0 }, &[a, b], precision)
    }

    /// A constant, once for each name.
    pub(super) fn constant(
        &mut self,
        name: &str,
        dims: &[u32],
        precision: Precision,
        values: impl FnOnce() -> Vec<f64>,
    ) -> NodeId {
        if let Some(done) = self.constants.get(name) {
            return *done;
        }
        let index = self.graph.constants.len();
        self.graph.constants.push(ConstantValues { name: name.to_owned(), values: values() });
        let done = self.leaf(name, Op::Constant(index), dims.to_vec(), precision);
        self.constants.insert(name.to_owned(), done);
        done
    }

    /// So many ones.
    pub(super) fn ones(&mut self, length: u32) -> NodeId {
        self.constant(&format!("ones.{length}"), &[length], ONE, || vec![1.0; length as usize])
    }

    /// What a function makes of weights, once and for all sequences.
    pub(super) fn prepared(&mut self, make: impl FnOnce(&mut Self) -> NodeId) -> NodeId {
        let place = self.place;
        self.place.phase = Phase::Prepare;
        let made = make(self);
        self.place = place;
        made
    }

    /// Columns of a matrix of weights, cut out once.
    pub(super) fn slice(&mut self, id: NodeId, offset: u32, columns: u32) -> NodeId {
        if let Some(done) = self.sliced.get(&(id, offset)) {
            return *done;
        }
        let rows = self.dims(id).first().copied().unwrap_or(1);
        let site = format!("{}.from{offset}", self.graph.node(id).site);
        let done = self.op(&site, Op::Slice { offset }, &[id], vec![rows, columns], Precision::Like(id));
        self.sliced.insert((id, offset), done);
        done
    }
}
