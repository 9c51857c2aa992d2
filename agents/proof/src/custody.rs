//! What a demand for data is answered with (`Custody`).

use tensorlink_num::Tensor;
use tensorlink_types::B256;
use tensorlink_types::abi::{Delivery, Demand, DemandKind, EdgeLog};
use thiserror::Error;

use crate::commit::{Boundary, BoundaryLists, io_root, tensor_list, tensor_root, tensor_roots};
use crate::merkle::tensor::leaf_count;
use crate::merkle::{List, OpeningError, TensorTree};

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

/// The boundary over which was sent what a demand asks for; none if it asks for a state or for files.
pub const fn sent_over(demand: &Demand) -> Option<Boundary> {
    match DemandKind::from_number(demand.kind) {
        Some(DemandKind::SentToPrevious) => Some(Boundary::ToPrevious),
        Some(DemandKind::SentToNext) => Some(Boundary::ToNext),
        _ => None,
    }
}

/// What the holder signs that meets a demand for what was sent, whose log has this root; none if it asks for a state or
/// for files.
pub fn attested_log(demand: &Demand, root: B256) -> Option<EdgeLog> {
    Some(EdgeLog {
        job: demand.job,
        replica: demand.replica,
        fromStage: demand.stage,
        toStage: sent_over(demand)?.neighbour(demand.stage)?,
        interval: demand.interval,
        root,
    })
}

/// The part of these tensors, of a state or of files, that was demanded.
///
/// # Errors
/// [`Undeliverable`].
pub fn deliver(tensors: &[Tensor], demand: &Demand) -> Result<Delivery, Undeliverable> {
    let list = tensor_list(&tensor_roots(tensors));
    let tensor = tensors.get(demand.part.tensor as usize).ok_or(Undeliverable::OtherTensors)?;
    if list.root() != demand.list {
        return Err(Undeliverable::OtherTensors);
    }
    show(&list, tensor, demand)
}

/// The part that was demanded of what was sent in an interval with these logs: `tensor` is the entry that the
/// demand names.
///
/// # Errors
/// [`Undeliverable`].
pub fn deliver_sent(logs: &BoundaryLists, tensor: &Tensor, demand: &Demand) -> Result<Delivery, Undeliverable> {
    let list = sent_over(demand).and_then(|boundary| logs.get(boundary)).ok_or(Undeliverable::OtherTensors)?;
    let logged = list.items().get(demand.part.tensor as usize);
    if io_root(&logs.roots()) != demand.list || logged != Some(&tensor_root(tensor).0) {
        return Err(Undeliverable::OtherTensors);
    }
    show(list, tensor, demand)
}

fn show(list: &List, tensor: &Tensor, demand: &Demand) -> Result<Delivery, Undeliverable> {
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
