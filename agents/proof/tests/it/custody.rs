//! What is demanded is shown as the contract checks it, whatever part of whatever tensor.

use proptest::prelude::*;
use tensorlink_num::Tensor;
use tensorlink_proof::commit::{Boundary, BoundaryLists, LogBuilder, io_root, tensor_list, tensor_root, tensor_roots};
use tensorlink_proof::custody::{Undeliverable, deliver, deliver_sent, sent_over};
use tensorlink_proof::merkle::tensor::leaf_count;
use tensorlink_proof::merkle::{root_from_data, verify_membership, verify_range};
use tensorlink_types::abi::{Demand, DemandKind, Part};
use tensorlink_types::{B256, Program, TensorType};

fn tensors() -> Vec<Tensor> {
    let tensor = |(bits, dims): (u8, &[u32])| {
        let ty = TensorType::new(bits, 0, dims).unwrap();
        let limit = ty.limit();
        let values: Vec<i64> = (0..ty.elements()).map(|i| (i as i64 * 37) % limit).collect();
        Tensor::from_wide(ty, &values).unwrap()
    };
    [(8, &[3][..]), (26, &[70, 33]), (16, &[128]), (8, &[1025])].map(tensor).to_vec()
}

/// Steps and micro-batches of an interval in which all of [`tensors`] go to the next stage, in turn, and to the
/// previous one, backwards.
const STEPS: u32 = 3;
const MICRO_BATCHES: u32 = 2;

fn logs() -> BoundaryLists {
    let program = Program {
        operators: vec![],
        segments: vec![],
        constants: vec![],
        state: vec![],
        names: vec![],
        micro_batches: MICRO_BATCHES,
        to_next: vec![0; 2],
        to_previous: vec![0; 2],
        from_previous: vec![],
        from_next: vec![],
    };
    let mut logs = LogBuilder::new(&program, STEPS).unwrap();
    for entry in 0..STEPS * MICRO_BATCHES {
        let (step, micro_batch) = (entry / MICRO_BATCHES, entry % MICRO_BATCHES);
        for boundary in [Boundary::ToNext, Boundary::ToPrevious] {
            logs.record(boundary, step, micro_batch, tensor_root(&sent(boundary, entry))).unwrap();
        }
    }
    logs.finish().unwrap()
}

fn sent(boundary: Boundary, entry: u32) -> Tensor {
    let entry = if boundary == Boundary::ToNext { entry } else { 7 - entry };
    tensors().swap_remove(entry as usize % 4)
}

fn demand_sent(boundary: Boundary, part: Part) -> Demand {
    let kind = if boundary == Boundary::ToNext { DemandKind::SentToNext } else { DemandKind::SentToPrevious };
    let list = io_root(&logs().roots());
    Demand { kind: kind as u8, list, tensors: STEPS * MICRO_BATCHES, part, ..Demand::default() }
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

proptest! {
    #[test]
    fn any_part_of_what_was_sent_opens_to_its_log(
        to_next in any::<bool>(), entry in 0..6u32, first in any::<u32>(), leaves in 1..=64u32,
    ) {
        let boundary = if to_next { Boundary::ToNext } else { Boundary::ToPrevious };
        let (logs, tensor) = (logs(), sent(boundary, entry));
        let demand = demand_sent(boundary, Part { tensor: entry, firstLeaf: first, leaves });
        prop_assert_eq!(sent_over(&demand), Some(boundary));
        let shown = deliver_sent(&logs, &tensor, &demand).unwrap();
        let root = root_from_data(tensor.ty(), shown.dataRoot).0;
        let log = boundary.root(&logs.roots());
        verify_membership(log, demand.tensors.into(), entry.into(), root, &shown.membership).unwrap();
        let count = leaf_count(tensor.ty());
        verify_range(shown.dataRoot, count, &shown.range).unwrap();
        prop_assert_eq!(u64::from(shown.range.firstLeaf), u64::from(first) % count);
        let wanted = u64::from(leaves).min(count - u64::from(first) % count);
        prop_assert_eq!(shown.range.leaves.len() as u64, wanted * 256);
    }
}

#[test]
fn what_was_not_sent_so_is_not_shown() {
    let (logs, part) = (logs(), Part { tensor: 1, firstLeaf: 0, leaves: 1 });
    let asked = demand_sent(Boundary::ToNext, part.clone());
    let right = sent(Boundary::ToNext, 1);
    assert!(deliver_sent(&logs, &right, &asked).is_ok());
    let refused = Err(Undeliverable::OtherTensors);
    assert_eq!(deliver_sent(&logs, &sent(Boundary::ToNext, 2), &asked), refused, "another entry");
    assert_eq!(
        deliver_sent(&logs, &right, &Demand { list: B256::ZERO, ..asked.clone() }),
        refused,
        "another claim's logs"
    );
    let beyond = demand_sent(Boundary::ToNext, Part { tensor: 6, ..part });
    assert_eq!(deliver_sent(&logs, &right, &beyond), refused);
    assert_eq!(deliver_sent(&BoundaryLists::default(), &right, &asked), refused, "no such neighbour");
    for kind in [0, DemandKind::State as u8, DemandKind::Files as u8, 5] {
        let of_lists = Demand { kind, ..asked.clone() };
        assert_eq!((sent_over(&of_lists), deliver_sent(&logs, &right, &of_lists)), (None, refused.clone()));
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
