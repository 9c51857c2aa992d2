//! Trees against a plain reference, and attacks on their openings.

use alloy_primitives::{B256, keccak256};
use proptest::prelude::*;
use tensorlink_num::Tensor;
use tensorlink_proof::merkle::tensor::{leaf_count, leaves_of};
use tensorlink_proof::merkle::{
    List, OpeningError, TensorTree, data_root, depth, list_root, root_from_data, tensor_root, verify_membership,
    verify_range,
};
use tensorlink_types::TensorType;
use tensorlink_types::abi::LeafRange;

fn node(left: B256, right: B256) -> B256 {
    keccak256([&[1], left.as_slice(), right.as_slice()].concat())
}

/// C-2 and C-4 as they are written: pad the leaves to a power of two with zero digests, then hash pairs.
fn plain_root(mut level: Vec<B256>) -> B256 {
    level.resize(level.len().next_power_of_two(), B256::ZERO);
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| node(pair[0], pair[1])).collect();
    }
    level[0]
}

fn plain_data_root(bytes: &[u8]) -> B256 {
    let leaf = |chunk: &[u8]| {
        let mut message = vec![0u8; 257];
        message[1..=chunk.len()].copy_from_slice(chunk);
        keccak256(message)
    };
    plain_root(bytes.chunks(256).map(leaf).collect())
}

fn plain_list_root(items: &[B256]) -> B256 {
    plain_root(items.iter().map(|item| keccak256([&[3], item.as_slice()].concat())).collect())
}

/// Deterministic mantissas over the whole range of the type.
fn tensor(bits: u8, exponent: i16, dims: &[u32]) -> Tensor {
    let ty = TensorType::new(bits, exponent, dims).unwrap();
    let value = |i: u64| {
        let x = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((i128::from(x ^ (x >> 31)) % (2 * i128::from(ty.limit()) + 1)) - i128::from(ty.limit())) as i64
    };
    Tensor::from_wide(ty.clone(), &(0..ty.elements()).map(value).collect::<Vec<_>>()).unwrap()
}

fn items(n: u8) -> Vec<B256> {
    (1..=n).map(B256::repeat_byte).collect()
}

#[test]
fn tensor_roots_are_those_of_the_plain_tree() {
    for (bits, dims) in [
        (8, vec![1]),
        (8, vec![255]),
        (8, vec![256]),
        (8, vec![257]),
        (16, vec![3, 100]),
        (26, vec![5, 64]),
        (64, vec![7, 9, 11]),
        (12, vec![2, 3, 4, 5]),
    ] {
        let tensor = tensor(bits, 3, &dims);
        let data = plain_data_root(&tensor.to_bytes());
        let word = tensor.ty().to_word().to_be_bytes::<32>();
        let root = keccak256([&[2], &word[..], data.as_slice()].concat());
        assert_eq!(tensor_root(&tensor).0, root, "{}", tensor.ty());
        let tree = TensorTree::new(&tensor);
        assert_eq!((tree.data_root(), tree.root().0), (data, root), "{}", tensor.ty());
    }
}

/// Lengths around whole pieces of parallel work, and above the threshold of parallelism.
#[test]
fn pieces_join_into_the_plain_tree() {
    let bytes: Vec<u8> = (0..(1usize << 20) + 5 * 131_072 + 77).map(|i| (i * 7 + i / 253) as u8).collect();
    for len in [131_071, 131_072, 131_073, 262_144, 300_000, 131_072 * 3, (1 << 20) + 1, bytes.len()] {
        assert_eq!(data_root(&bytes[..len]), plain_data_root(&bytes[..len]), "{len} bytes");
    }
}

#[test]
fn the_type_is_part_of_the_root() {
    let data = B256::repeat_byte(5);
    let root = |bits, exponent, dims: &[u32]| root_from_data(&TensorType::new(bits, exponent, dims).unwrap(), data);
    let roots = [root(8, 0, &[6]), root(7, 0, &[6]), root(8, 1, &[6]), root(8, 0, &[2, 3]), root(8, 0, &[3, 2])];
    for (i, one) in roots.iter().enumerate() {
        assert!(roots.iter().skip(i + 1).all(|other| other != one));
    }
}

#[test]
fn list_roots_and_memberships_are_those_of_the_plain_tree() {
    assert_eq!(list_root(Vec::<B256>::new()), B256::ZERO);
    for n in 1..=33 {
        let items = items(n);
        let list = List::new(items.clone());
        assert_eq!(list.root(), plain_list_root(&items), "{n} items");
        for (i, item) in items.iter().enumerate() {
            let siblings = list.prove(i as u64).unwrap();
            assert_eq!(siblings.len(), depth(u64::from(n)) as usize);
            verify_membership(list.root(), n.into(), i as u64, *item, &siblings).unwrap();
        }
        assert!(matches!(list.prove(n.into()), Err(OpeningError::OutOfRange { .. })));
    }
}

/// With odd promotion, the last of three leaves would also stand at index 3.
#[test]
fn no_index_aliases_another() {
    let items = items(3);
    let list = List::new(items.clone());
    let siblings = list.prove(2).unwrap();
    for index in [0, 1, 3, 4, 6, u64::MAX] {
        assert!(verify_membership(list.root(), 3, index, items[2], &siblings).is_err(), "index {index}");
    }
    // Told that the list is longer, padding would be a place; it still holds nothing anyone knows.
    assert!(verify_membership(list.root(), 4, 3, items[2], &siblings).is_err());
}

/// A node passed off as an item (and an item as a node) hashes in another domain.
#[test]
fn nodes_are_no_items() {
    let items = items(4);
    let list = List::new(items.clone());
    let leaf = |item: &B256| keccak256([&[3], item.as_slice()].concat());
    let left = node(leaf(&items[0]), leaf(&items[1]));
    let right = node(leaf(&items[2]), leaf(&items[3]));
    assert_eq!(list.root(), node(left, right));
    // As a list of two, whose items would be the inner nodes.
    assert!(verify_membership(list.root(), 2, 0, left, &[right]).is_err());
    assert!(verify_membership(list.root(), 1, 0, list.root(), &[]).is_err());
    // A list's root is no tensor root of the same digests, nor the other way round.
    assert_ne!(list_root([items[0]]), items[0]);
}

/// The 64 bytes of a node padded to a leaf: a classic second preimage where domains are not kept apart.
#[test]
fn a_leaf_that_spells_a_node_is_another_tensor() {
    let bytes: Vec<u8> = (0..512u32).map(|i| i as u8).collect();
    let leaf = |i: usize| keccak256([&[0], &bytes[256 * i..256 * (i + 1)]].concat());
    let mut forged = [leaf(0), leaf(1)].concat();
    forged.resize(256, 0);
    assert_ne!(data_root(&forged), data_root(&bytes));
    let range = LeafRange { firstLeaf: 0, leaves: forged.into(), siblings: vec![] };
    assert!(matches!(verify_range(data_root(&bytes), 1, &range), Err(OpeningError::Root { .. })));
}

#[test]
fn every_range_of_every_small_tree_opens() {
    for leaves in 1..=11u32 {
        let tensor = tensor(8, 0, &[leaves * 256 - 9]);
        let tree = TensorTree::new(&tensor);
        for first in 0..leaves {
            for count in 1..=leaves - first {
                let range = tree.open(first.into(), count.into()).unwrap();
                verify_range(tree.data_root(), leaves.into(), &range).unwrap();
                // Of another number of leaves it is refused, unless the tree has the same shape.
                for other in [1, leaves.next_power_of_two() + 1, leaves.next_power_of_two() / 2] {
                    assert!(verify_range(tree.data_root(), other.into(), &range).is_err() || other == leaves);
                }
            }
        }
        assert_eq!(tree.open(0, 0), Err(OpeningError::Empty));
        assert!(matches!(tree.open(1, leaves.into()), Err(OpeningError::OutOfRange { .. })));
        assert!(matches!(tree.open(u64::MAX, 2), Err(OpeningError::OutOfRange { .. })));
    }
}

#[test]
fn padding_cannot_be_opened() {
    let tensor = tensor(8, 0, &[3 * 256]);
    let tree = TensorTree::new(&tensor);
    let good = tree.open(2, 1).unwrap();
    for first in [3, 4, u32::MAX] {
        let bad = LeafRange { firstLeaf: first, ..good.clone() };
        assert!(matches!(verify_range(tree.data_root(), 3, &bad), Err(OpeningError::OutOfRange { .. })));
    }
    let long = LeafRange { leaves: vec![0; 512].into(), ..good };
    assert!(matches!(verify_range(tree.data_root(), 3, &long), Err(OpeningError::OutOfRange { .. })));
}

#[test]
fn truncated_and_overlong_proofs_are_refused() {
    let tensor = tensor(32, 0, &[1000]);
    let tree = TensorTree::new(&tensor);
    let leaves = leaf_count(tensor.ty());
    let good = tree.open(5, 3).unwrap();
    verify_range(tree.data_root(), leaves, &good).unwrap();
    let mut bad = good.clone();
    bad.siblings.pop();
    assert!(matches!(verify_range(tree.data_root(), leaves, &bad), Err(OpeningError::Siblings { .. })));
    bad.siblings = [good.siblings.clone(), vec![B256::ZERO]].concat();
    assert!(matches!(verify_range(tree.data_root(), leaves, &bad), Err(OpeningError::Siblings { .. })));
    bad = LeafRange { leaves: good.leaves.slice(..700), ..good.clone() };
    assert_eq!(verify_range(tree.data_root(), leaves, &bad), Err(OpeningError::Misaligned(700)));
    bad = LeafRange { leaves: vec![].into(), ..good };
    assert_eq!(verify_range(tree.data_root(), leaves, &bad), Err(OpeningError::Empty));

    let list = List::new(items(9));
    let mut siblings = list.prove(8).unwrap();
    siblings.push(B256::ZERO);
    assert!(verify_membership(list.root(), 9, 8, items(9)[8], &siblings).is_err());
    assert!(verify_membership(list.root(), 9, 8, items(9)[8], &siblings[..3]).is_err());
}

#[test]
fn elements_map_to_the_leaves_that_hold_them() {
    let ty = TensorType::new(32, 0, &[130]).unwrap();
    assert_eq!(leaves_of(&ty, 0, 1), Ok((0, 1)));
    assert_eq!(leaves_of(&ty, 63, 1), Ok((0, 1)));
    assert_eq!(leaves_of(&ty, 63, 2), Ok((0, 2)));
    assert_eq!(leaves_of(&ty, 64, 64), Ok((1, 2)));
    assert_eq!(leaves_of(&ty, 128, 2), Ok((2, 3)));
    assert!(leaves_of(&ty, 129, 2).is_err());
    assert!(leaves_of(&ty, 0, 0).is_err());
}

#[test]
fn a_liars_bytes_have_a_tree_too() {
    let ty = TensorType::new(26, 0, &[3]).unwrap();
    let honest = Tensor::from_wide(ty.clone(), &[1, 2, 3]).unwrap();
    let mut padded = honest.to_bytes();
    padded.resize(256, 0);
    assert_eq!(TensorTree::from_bytes(ty.clone(), &padded).unwrap().root(), tensor_root(&honest));
    padded[255] = 1;
    let tree = TensorTree::from_bytes(ty.clone(), &padded).unwrap();
    assert_ne!(tree.root(), tensor_root(&honest));
    verify_range(tree.data_root(), 1, &tree.open(0, 1).unwrap()).unwrap();
    let wrong = TensorTree::from_bytes(ty, &padded[..13]).unwrap_err();
    assert_eq!(wrong, OpeningError::Length { expected: 12, actual: 13 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn random_ranges_open(elements in 1u32..20_000, first: u32, count: u32, bits in prop::sample::select(vec![8u8, 16, 26, 64])) {
        let tensor = tensor(bits, 0, &[elements]);
        let tree = TensorTree::new(&tensor);
        prop_assert_eq!(tree.data_root(), plain_data_root(&tensor.to_bytes()));
        let first = u64::from(first % elements);
        let count = 1 + u64::from(count) % (u64::from(elements) - first);
        let range = tree.open_elements(first, count).unwrap();
        verify_range(tree.data_root(), leaf_count(tensor.ty()), &range).unwrap();
        let width = tensor.ty().width().bytes() as u64;
        let offset = (first * width - u64::from(range.firstLeaf) * 256) as usize;
        let bytes = &tensor.to_bytes()[(first * width) as usize..((first + count) * width) as usize];
        prop_assert_eq!(&range.leaves[offset..offset + bytes.len()], bytes);
    }

    /// One changed byte anywhere in an opening is noticed.
    #[test]
    fn mutated_ranges_are_refused(leaves in 1u32..40, first: u32, count: u32, at: prop::sample::Index, flip in 1u8..) {
        let tensor = tensor(8, 0, &[leaves * 256]);
        let tree = TensorTree::new(&tensor);
        let first = first % leaves;
        let good = tree.open(first.into(), (1 + count % (leaves - first)).into()).unwrap();
        let mut bytes = good.firstLeaf.to_be_bytes().to_vec();
        bytes.extend_from_slice(&good.leaves);
        bytes.extend(good.siblings.iter().flatten());
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let (head, rest) = bytes.split_at(4);
        let (opened, siblings) = rest.split_at(good.leaves.len());
        let bad = LeafRange {
            firstLeaf: u32::from_be_bytes(head.try_into().unwrap()),
            leaves: opened.to_vec().into(),
            siblings: siblings.chunks(32).map(B256::from_slice).collect(),
        };
        prop_assert!(verify_range(tree.data_root(), leaves.into(), &bad).is_err());
    }

    #[test]
    fn mutated_memberships_are_refused(n in 1u8..60, index: u8, at: prop::sample::Index, flip in 1u8..) {
        let items = items(n);
        let list = List::new(items.clone());
        let index = u64::from(index % n);
        let siblings = list.prove(index).unwrap();
        let mut bytes = [items[index as usize].to_vec(), siblings.concat()].concat();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let digests: Vec<B256> = bytes.chunks(32).map(B256::from_slice).collect();
        prop_assert!(verify_membership(list.root(), n.into(), index, digests[0], &digests[1..]).is_err());
    }
}
