//! A model in integers: every constant by name, and the stages that it is cut into.

use std::collections::BTreeMap;
use std::ops::Range;

use tensorlink_num::Tensor;
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{TensorRoot, TensorType};

use super::architecture::Architecture;
use super::plan::{Head, Plan, PlanError};
use super::setting::Setting;
use super::sites::Sites;

/// A model in integers, ready to be cut into stages.
#[derive(Clone, PartialEq, Debug)]
pub struct Quantized {
    pub(super) architecture: Architecture,
    pub(super) setting: Setting,
    pub(super) sites: Sites,
    pub(super) constants: BTreeMap<String, Tensor>,
}

impl Quantized {
    /// The architecture.
    pub const fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// In how many bits it is computed.
    pub const fn setting(&self) -> Setting {
        self.setting
    }

    /// Bytes of all constants.
    pub fn bytes(&self) -> u64 {
        self.constants.values().map(|tensor| tensor.ty().byte_len()).sum()
    }

    /// What was quantised before, out of the plan of all layers and that plan's constants in its order, as
    /// [`Self::plan`] and [`Self::constant`] gave them.
    ///
    /// # Errors
    /// [`PlanError`] for the plan of a part of a model, and for one that gives no program with these constants.
    pub fn restore(plan: Plan, constants: Vec<Tensor>) -> Result<Self, PlanError> {
        let layers = plan.architecture().layers;
        if *plan.layers() != (0..layers) {
            return Err(PlanError::Layers { first: plan.layers().start, end: plan.layers().end, layers });
        }
        // Reads every constant by name and type.
        plan.program(1)?;
        let mut named = BTreeMap::new();
        let mut tensors = constants.into_iter();
        for slot in plan.constants() {
            let tensor = tensors.next().filter(|tensor| *tensor.ty() == slot.ty);
            let tensor = tensor.ok_or_else(|| PlanError::Constant(slot.name.clone()))?;
            named.insert(slot.name.clone(), tensor);
        }
        let (architecture, setting, sites) = plan.into_model();
        Ok(Self { architecture, setting, sites, constants: named })
    }

    /// A constant by its name.
    pub fn constant(&self, name: &str) -> Option<&Tensor> {
        self.constants.get(name)
    }

    /// The plan of a stage of some layers; `root` commits to a tensor. The stage with the first layer embeds tokens,
    /// that with the last gives what `head` says.
    ///
    /// # Errors
    /// [`PlanError`] for layers that the model does not have, if calibration missed a site, and for a choice of tokens
    /// by a model without logits.
    pub fn plan(
        &self,
        layers: Range<u32>,
        head: Head,
        root: impl Fn(&Tensor) -> TensorRoot,
    ) -> Result<Plan, PlanError> {
        let types: BTreeMap<&str, &TensorType> =
            self.constants.iter().map(|(name, tensor)| (name.as_str(), tensor.ty())).collect();
        let used = Plan::constants_of((&self.architecture, self.setting), &self.sites, (&layers, head), &types)?;
        let slot = |name: String| match self.constants.get(&name) {
            Some(tensor) => Ok(ConstantSlot { ty: tensor.ty().clone(), root: root(tensor), name }),
            None => Err(PlanError::Constant(name)),
        };
        let slots = used.into_iter().map(slot).collect::<Result<_, _>>()?;
        Ok(Plan::new((self.architecture.clone(), self.setting), self.sites.clone(), (layers, head), slots))
    }

    /// The stage of some layers, with the model's output, and the contents of its constants.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub fn stage(
        &self,
        layers: Range<u32>,
        root: impl Fn(&Tensor) -> TensorRoot,
    ) -> Result<(Plan, Vec<Tensor>), PlanError> {
        self.stage_with(layers, Head::Output, root)
    }

    /// As [`Self::stage`]; a stage with the last layer gives what `head` says.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub fn stage_with(
        &self,
        layers: Range<u32>,
        head: Head,
        root: impl Fn(&Tensor) -> TensorRoot,
    ) -> Result<(Plan, Vec<Tensor>), PlanError> {
        let plan = self.plan(layers, head, root)?;
        let copy = |slot: &ConstantSlot| {
            self.constants.get(&slot.name).cloned().ok_or_else(|| PlanError::Constant(slot.name.clone()))
        };
        let tensors = plan.constants().iter().map(copy).collect::<Result<_, _>>()?;
        Ok((plan, tensors))
    }
}

#[cfg(test)]
mod tests;
