//! Adapters beside frozen projections: `y = W·x + s·B·(A·x)`, s being `alpha/rank`.
//!
//! A and B are projections of their own, whose gradients are those of any other.

use tensorlink_model::lora::beside;

use super::{Adapters, Builder, Quantised, WIDE_BITS, wide};
use crate::step::{Class, NodeId, Op, Precision};

impl Builder<'_> {
    /// `x·Wᵀ` of a projection, to a site, and what its adapter adds, if it has one.
    pub(super) fn adapted(&mut self, (name, site): (&str, &str), x: Quantised, precision: Precision) -> NodeId {
        let Some(scale) = self.adapter(name) else { return self.product((name, site), x, precision) };
        let frozen = format!("{name}.frozen");
        let y = self.product((name, &frozen), x, wide(Class::Activation));
        let [down, up] = beside(name);
        let low = self.product((&down, &down), x, wide(Class::Activation));
        let low = self.quantise(&down, low);
        self.lowered.insert(name.to_owned(), low);
        // It begins at nothing, so that what calibration sees of it says little.
        let like_frozen = Precision::At { site: frozen, bits: WIDE_BITS, class: Class::Activation };
        let change = self.product((&up, &up), low, like_frozen);
        self.like(site, Op::Combine { fa: 1.0, fb: scale }, &[y, change], precision)
    }

    /// Takes in the gradients by A and B; gives the one by x that goes through them.
    pub(super) fn adapter_gradient(&mut self, name: &str, x: Quantised, dy: NodeId) -> Option<NodeId> {
        let scale = self.adapter(name)?;
        let low = self.lowered.remove(name)?;
        let [down, up] = beside(name);
        let scaled = Op::Combine { fa: scale / 2.0, fb: scale / 2.0 };
        let dy = self.like(&format!("{up}.output.grad"), scaled, &[dy, dy], wide(Class::Gradient));
        let dy = self.linear_gradient(&up, low, dy);
        Some(self.linear_gradient(&down, x, dy))
    }

    /// What the adapter's product is multiplied by, if the projection has one.
    fn adapter(&self, projection: &str) -> Option<f64> {
        let Adapters { lora, .. } = self.recipe.adapters.as_ref()?;
        lora.adapts(projection).then(|| lora.scale())
    }
}
