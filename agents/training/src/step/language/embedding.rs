//! Tokens and places to vectors; normalised where norms stand after what they normalise.

use tensorlink_model::{Placement, Positions};

use super::dropout::Dropped;
use super::norm::NormPass;
use super::{Builder, Weight, part_of_sum, wide};
use crate::step::build::ceil_log2;
use crate::step::{Class, NodeId, Op, Precision};

const NORM: &str = "embedding.norm";
const TYPE: &str = "embedding.type";

impl Builder<'_> {
    /// The residual stream: a row of the table for each token, times the architecture's factor; one for its place where
    /// those are learned, and the vector of first texts where there are second ones.
    pub(super) fn embedding(&mut self, ids: NodeId) -> (Option<NormPass>, NodeId) {
        let x = self.rows("embedding.tokens", ids);
        let x = self.scaled("embedding.scaled", x, wide(Class::Activation));
        let x = match self.places() {
            Some(places) => {
                let at = self.rows("embedding.positions", places);
                self.sum("embedding", x, at, wide(Class::Activation))
            }
            None => x,
        };
        let x = match self.vector_of(TYPE) {
            Some(vector) => self.sum("embedding.typed", x, vector, wide(Class::Activation)),
            None => x,
        };
        let (norm, x) = self.norm_if(self.architecture.placement == Placement::After, NORM, x);
        (norm, self.dropped(Dropped::Embedding, "embedding", x, wide(Class::Activation)))
    }

    /// Takes in the gradient by the tables; `tied` is that by the table of tokens as weights of the head.
    pub(super) fn embedding_gradient(
        &mut self,
        (ids, norm): (NodeId, Option<&NormPass>),
        dx: NodeId,
        tied: Option<NodeId>,
    ) {
        let name = "embedding.tokens";
        if !self.is_trained(name) {
            return;
        }
        let dx = self.dropped(Dropped::Embedding, "embedding.grad", dx, wide(Class::Gradient));
        let dx = self.norm_gradient_if(NORM, norm, dx);
        if self.is_trained(TYPE) {
            self.vector_gradient(TYPE, dx);
        }
        let by_tokens = self.scaled("embedding.scaled.grad", dx, wide(Class::Gradient));
        let mut tokens = self.rows_gradient(name, ids, by_tokens);
        if let Some(tied) = tied {
            tokens = self.sum(&format!("{name}.grad.both"), tokens, tied, part_of_sum(name));
        }
        self.gradient(name, tokens);
        if let Some(places) = self.places() {
            let name = "embedding.positions";
            let rows = self.rows_gradient(name, places, dx);
            self.gradient(name, rows);
        }
    }

    /// Tokens' vectors, or the gradient by them, times the architecture's factor.
    fn scaled(&mut self, site: &str, x: NodeId, precision: Precision) -> NodeId {
        match self.architecture.embedding_scale {
            Some(factor) => self.like(site, Op::Combine { fa: factor, fb: 0.0 }, &[x, x], precision),
            None => x,
        }
    }

    /// Rows of a table.
    fn rows(&mut self, name: &str, ids: NodeId) -> NodeId {
        let Some(Weight { value: table, .. }) = self.weights.get(name).copied() else { return ids };
        let entries = self.dims(table).first().copied().unwrap_or(1);
        let ones = self.ones(entries);
        let dims = vec![self.recipe.tokens, self.architecture.width];
        self.op(&format!("{name}.rows"), Op::Gather, &[table, ones, ids], dims, wide(Class::Activation))
    }

    fn rows_gradient(&mut self, name: &str, ids: NodeId, dx: NodeId) -> NodeId {
        let Some(Weight { value: table, .. }) = self.weights.get(name).copied() else { return dx };
        let columns = self.transpose(dx);
        let dims = self.dims(table);
        self.op(&format!("{name}.grad"), Op::GatherGrad, &[columns, ids], dims, part_of_sum(name))
    }

    /// The row of each token's place, where places are learned.
    fn places(&mut self) -> Option<NodeId> {
        let Positions::Learned { first } = self.architecture.positions else { return None };
        let (tokens, end) = (self.recipe.tokens, first.saturating_add(self.recipe.tokens));
        let precision = Precision::Fixed { bits: ceil_log2(end).saturating_add(1).max(2), exponent: 0 };
        Some(self.constant("places", &[tokens], precision, || (first..end).map(f64::from).collect()))
    }
}
