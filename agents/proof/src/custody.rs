//! What a demand for data is answered with (`Custody`).

use tensorlink_num::Tensor;
use tensorlink_types::abi::{Delivery, Demand};
use thiserror::Error;

use crate::commit::{tensor_list, tensor_roots};
use crate::merkle::tensor::leaf_count;
use crate::merkle::{OpeningError, TensorTree};

/// Why nothing can be delivered.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Undeliverable {
    /// The tensors are not those of the list.
    #[error("these are not the tensors that were demanded")]
    OtherTensors,
    /// The list has no such tensor, or it has no leaves.
    #[error(transparent)]
    Opening(#[from] OpeningError),
}

/// The part of these tensors that was demanded.
///
/// # Errors
/// [`Undeliverable`].
pub fn deliver(tensors: &[Tensor], demand: &Demand) -> Result<Delivery, Undeliverable> {
    let list = tensor_list(&tensor_roots(tensors));
    let tensor = tensors.get(demand.part.tensor as usize).ok_or(Undeliverable::OtherTensors)?;
    if list.root() != demand.list {
        return Err(Undeliverable::OtherTensors);
    }
    let tree = TensorTree::new(tensor);
    let count = leaf_count(tensor.ty());
    let first = u64::from(demand.part.firstLeaf).checked_rem(count).unwrap_or_default();
    let leaves = u64::from(demand.part.leaves).min(count.saturating_sub(first));
    Ok(Delivery {
        tensorType: tensor.ty().to_word(),
        dataRoot: tree.data_root(),
        membership: list.prove(demand.part.tensor.into())?,
        range: tree.open(first, leaves)?,
    })
}
