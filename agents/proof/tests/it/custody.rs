//! What is demanded is shown as the contract checks it, whatever part of whatever tensor.

use proptest::prelude::*;
use tensorlink_num::Tensor;
use tensorlink_proof::commit::{tensor_list, tensor_roots};
use tensorlink_proof::custody::{Undeliverable, deliver};
use tensorlink_proof::merkle::tensor::leaf_count;
use tensorlink_proof::merkle::{root_from_data, verify_membership, verify_range};
use tensorlink_types::abi::{Demand, Part};
use tensorlink_types::{B256, TensorType};

fn tensors() -> Vec<Tensor> {
    let tensor = |(bits, dims): (u8, &[u32])| {
        let ty = TensorType::new(bits, 0, dims).unwrap();
        let limit = ty.limit();
        let values: Vec<i64> = (0..ty.elements()).map(|i| (i as i64 * 37) % limit).collect();
        Tensor::from_wide(ty, &values).unwrap()
    };
    [(8, &[3][..]), (26, &[70, 33]), (16, &[128]), (8, &[1025])].map(tensor).to_vec()
}

fn demand(tensors: &[Tensor], part: Part) -> Demand {
    let list = tensor_list(&tensor_roots(tensors)).root();
    Demand { list, tensors: tensors.len() as u32, part, ..Demand::default() }
}

proptest! {
    #[test]
    fn any_part_opens_to_the_list(tensor in 0..4u32, first in any::<u32>(), leaves in 1..=64u32) {
        let tensors = tensors();
        let demand = demand(&tensors, Part { tensor, firstLeaf: first, leaves });
        let shown = deliver(&tensors, &demand).unwrap();
        let ty = tensors[tensor as usize].ty();
        let count = leaf_count(ty);
        prop_assert_eq!(shown.tensorType, ty.to_word());
        let root = root_from_data(ty, shown.dataRoot).0;
        verify_membership(demand.list, demand.tensors.into(), tensor.into(), root, &shown.membership).unwrap();
        verify_range(shown.dataRoot, count, &shown.range).unwrap();
        prop_assert_eq!(u64::from(shown.range.firstLeaf), u64::from(first) % count);
        let wanted = u64::from(leaves).min(count - u64::from(first) % count);
        prop_assert_eq!(shown.range.leaves.len() as u64, wanted * 256);
    }
}

#[test]
fn other_tensors_than_those_demanded_are_not_shown() {
    let tensors = tensors();
    let part = Part { tensor: 1, firstLeaf: 0, leaves: 1 };
    let asked = demand(&tensors, part.clone());
    assert_eq!(deliver(&tensors[..3], &asked), Err(Undeliverable::OtherTensors));
    assert_eq!(deliver(&tensors, &Demand { list: B256::ZERO, ..asked }), Err(Undeliverable::OtherTensors));
    let beyond = demand(&tensors, Part { tensor: 4, ..part });
    assert_eq!(deliver(&tensors, &beyond), Err(Undeliverable::OtherTensors));
}
