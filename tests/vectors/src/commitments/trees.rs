//! Trees over tensors and over lists.

use serde::{Deserialize, Serialize};
use tensorlink_num::Tensor;
use tensorlink_num::arbitrary::Dice;
use tensorlink_proof::keccak::hash_one;
use tensorlink_proof::merkle::tensor::leaf_count;
use tensorlink_proof::merkle::{
    List, TensorTree, data_root, root_from_data, tensor_root, verify_membership, verify_range,
};
use tensorlink_types::abi::LeafRange;
use tensorlink_types::{B256, Bytes, TensorType};

use super::{check_rule, malformed};
use crate::file::{VectorError, compare};

/// A tensor's roots.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TensorCase {
    rule: String,
    name: String,
    tensor_type: B256,
    bytes: Bytes,
    leaf_count: u32,
    data_root: B256,
    root: B256,
}

/// Leaves opened against a data root.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RangeCase {
    rule: String,
    name: String,
    data_root: B256,
    leaf_count: u32,
    first_leaf: u32,
    leaves: Bytes,
    siblings: Vec<B256>,
}

/// A list's root and the place of one entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ListCase {
    rule: String,
    name: String,
    items: Vec<B256>,
    root: B256,
    index: u32,
    siblings: Vec<B256>,
}

/// A tensor of drawn mantissas, both limits among them where there is room.
fn drawn(bits: u8, exponent: i16, dims: &[u32]) -> Result<Tensor, VectorError> {
    let ty = TensorType::new(bits, exponent, dims).map_err(malformed("tensor", "tensorType"))?;
    let (mut dice, limit) = (Dice::new(u64::from(bits) * 1_000 + ty.elements()), ty.limit());
    let mut values: Vec<i64> = (0..ty.elements())
        .map(|_| (i128::from(dice.bits(64)) % (2 * i128::from(limit) + 1) - i128::from(limit)) as i64)
        .collect();
    for (value, edge) in values.iter_mut().zip([limit, -limit]) {
        *value = edge;
    }
    Tensor::from_wide(ty, &values).map_err(malformed("tensor", "bytes"))
}

pub(super) fn tensors() -> Result<Vec<TensorCase>, VectorError> {
    let shapes: [(&str, u8, i16, &[u32]); 11] = [
        ("one element", 8, 0, &[1]),
        ("two bits", 2, -3, &[9]),
        ("one byte short of a leaf", 8, 7, &[255]),
        ("a whole leaf", 8, 7, &[256]),
        ("one byte more than a leaf", 8, 7, &[257]),
        ("16 bits, two leaves", 12, 4, &[2, 100]),
        ("26 bits, three leaves", 26, 24, &[3, 50]),
        ("64 bits, five leaves", 64, 256, &[160]),
        ("rank 3, seven leaves", 32, -256, &[7, 8, 8]),
        ("rank 4", 16, 1, &[2, 3, 4, 5]),
        ("nine leaves, the last with one element", 8, 0, &[2049]),
    ];
    let case = |(name, bits, exponent, dims): (&str, u8, i16, &[u32])| {
        let tensor = drawn(bits, exponent, dims)?;
        Ok(TensorCase {
            rule: "C-2".into(),
            name: name.into(),
            tensor_type: tensor.ty().to_word().into(),
            bytes: tensor.to_bytes().into(),
            leaf_count: leaf_count(tensor.ty()) as u32,
            data_root: TensorTree::new(&tensor).data_root(),
            root: tensor_root(&tensor).into(),
        })
    };
    let mut cases = shapes.map(case).into_iter().collect::<Result<Vec<TensorCase>, VectorError>>()?;
    // C-1 by itself: three 16-bit mantissas whose bytes show order and sign.
    let ty = TensorType::new(16, 0, &[3]).map_err(malformed("C-1", "tensorType"))?;
    let tensor = Tensor::from_wide(ty, &[1, -2, 0x1234]).map_err(malformed("C-1", "bytes"))?;
    cases.push(TensorCase {
        rule: "C-1".into(),
        name: "1, −2 and 0x1234 are 0x0100 feff 3412".into(),
        tensor_type: tensor.ty().to_word().into(),
        bytes: tensor.to_bytes().into(),
        leaf_count: 1,
        data_root: TensorTree::new(&tensor).data_root(),
        root: tensor_root(&tensor).into(),
    });
    Ok(cases)
}

impl TensorCase {
    pub(super) fn verify(&self) -> Result<&str, VectorError> {
        check_rule(&self.rule, &["C-1", "C-2"])?;
        let case = format!("{} {}", self.rule, self.name);
        let ty = TensorType::from_word(self.tensor_type.into()).map_err(malformed(&case, "tensorType"))?;
        let tensor = Tensor::from_bytes(ty, &self.bytes).map_err(malformed(&case, "bytes"))?;
        compare(&case, "leafCount", &u64::from(self.leaf_count), &leaf_count(tensor.ty()))?;
        compare(&case, "dataRoot", &self.data_root, &data_root(&self.bytes))?;
        compare(&case, "root of the tree", &self.data_root, &TensorTree::new(&tensor).data_root())?;
        compare(&case, "root", &self.root, &root_from_data(tensor.ty(), self.data_root).into())?;
        Ok(&self.rule)
    }
}

pub(super) fn ranges() -> Result<Vec<RangeCase>, VectorError> {
    let openings: [(&str, u32, u64, u64); 10] = [
        ("the only leaf", 1, 0, 1),
        ("the left of two", 2, 0, 1),
        ("all of three", 3, 0, 3),
        ("the last of three, beside padding", 3, 2, 1),
        ("odd start, odd end", 5, 1, 3),
        ("odd start, even end", 6, 1, 2),
        ("the last of five, beside an empty subtree", 5, 4, 1),
        ("even start, odd end across the middle", 8, 2, 4),
        ("all but both ends", 7, 1, 5),
        ("one of nine", 9, 6, 1),
    ];
    let case = |(name, leaf_count, first, count): (&str, u32, u64, u64)| {
        let tensor = drawn(8, 0, &[leaf_count * 256 - 3])?;
        let tree = TensorTree::new(&tensor);
        let range = tree.open(first, count).map_err(malformed(name, "leaves"))?;
        Ok(RangeCase {
            rule: "C-3".into(),
            name: format!("{name}: leaves {first} to {} of {leaf_count}", first + count - 1),
            data_root: tree.data_root(),
            leaf_count,
            first_leaf: range.firstLeaf,
            leaves: range.leaves,
            siblings: range.siblings,
        })
    };
    openings.map(case).into_iter().collect()
}

impl RangeCase {
    pub(super) fn verify(&self) -> Result<&str, VectorError> {
        check_rule(&self.rule, &["C-3"])?;
        let range =
            LeafRange { firstLeaf: self.first_leaf, leaves: self.leaves.clone(), siblings: self.siblings.clone() };
        verify_range(self.data_root, self.leaf_count.into(), &range).map_err(malformed(&self.name, "leaves"))?;
        Ok(&self.rule)
    }
}

pub(super) fn lists() -> Result<Vec<ListCase>, VectorError> {
    let places: [(&str, &str, u32, u32); 12] = [
        ("C-4", "empty: the root is zero, nothing is a member", 0, 0),
        ("C-4", "the only entry", 1, 0),
        ("C-4", "right of two", 2, 1),
        ("C-4", "the last of three, beside padding", 3, 2),
        ("C-4", "the last of five, beside an empty subtree", 5, 4),
        ("C-4", "inside eight", 8, 3),
        ("C-4", "the last of 33", 33, 32),
        ("C-6", "a state of six tensors", 6, 2),
        ("C-7", "a trace of 21 outputs", 21, 13),
        ("C-12", "an epoch of 3 receipts", 3, 1),
        ("C-13", "programs of texts of up to 5 tokens: that for 4", 5, 3),
        ("C-8", "a log of 3 steps of 4 micro-batches: step 2, micro-batch 1", 12, 2 * 4 + 1),
    ];
    let case = |(rule, name, count, index): (&str, &str, u32, u32)| {
        let list = List::new((0..count).map(|i| B256::from(hash_one(0xff, &i.to_be_bytes()))));
        let siblings = if count == 0 { vec![] } else { list.prove(index.into()).map_err(malformed(name, "index"))? };
        let (items, root) = (list.items().to_vec(), list.root());
        Ok(ListCase { rule: rule.into(), name: name.into(), items, root, index, siblings })
    };
    places.map(case).into_iter().collect()
}

impl ListCase {
    pub(super) fn verify(&self) -> Result<&str, VectorError> {
        check_rule(&self.rule, &["C-4", "C-6", "C-7", "C-8", "C-12", "C-13"])?;
        let list = List::new(self.items.iter().copied());
        compare(&self.name, "root", &self.root, &list.root())?;
        let (count, index) = (self.items.len() as u64, self.index.into());
        match self.items.get(self.index as usize) {
            Some(item) => verify_membership(self.root, count, index, *item, &self.siblings)
                .map_err(malformed(&self.name, "siblings"))?,
            None if count == 0 && index == 0 && self.siblings.is_empty() => {}
            None => return Err(malformed(&self.name, "index")(())),
        }
        Ok(&self.rule)
    }
}
