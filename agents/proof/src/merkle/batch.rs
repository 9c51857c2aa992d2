//! Roots of many small tensors at once: their leaves, nodes and types share the lanes of the hash, most of which a
//! tensor of a few leaves would leave idle.

use tensorlink_num::Tensor;
use tensorlink_types::TensorRoot;

use super::tensor::{canonical_bytes, leaf_count, tensor_root};
use super::{LEAF, LEAF_BYTES, NODE, TENSOR, depth, empty_subtree};
use crate::keccak::{Digest, hash_many};

/// Most leaves of a tensor that is hashed with others; one with more fills the lanes by itself.
const SMALL: u64 = 256;

/// Commitments of tensors (C-2), each what [`tensor_root`] gives, in order.
pub fn tensor_roots(tensors: &[Tensor]) -> Vec<TensorRoot> {
    let is_small = |tensor: &&Tensor| leaf_count(tensor.ty()) <= SMALL;
    let mut small = small_roots(&tensors.iter().filter(is_small).collect::<Vec<_>>()).into_iter();
    let batched = |tensor: &Tensor| if is_small(&tensor) { small.next() } else { None };
    let roots: Vec<Option<TensorRoot>> = tensors.iter().map(batched).collect();
    tensors.iter().zip(roots).map(|(tensor, root)| root.unwrap_or_else(|| tensor_root(tensor))).collect()
}

fn small_roots(tensors: &[&Tensor]) -> Vec<TensorRoot> {
    let mut payloads = Vec::new();
    for tensor in tensors {
        payloads.extend_from_slice(&canonical_bytes(tensor));
        payloads.resize(payloads.len().next_multiple_of(LEAF_BYTES), 0);
    }
    let counts: Vec<usize> = tensors.iter().map(|tensor| leaf_count(tensor.ty()) as usize).collect();
    let mut levels = split(hash(LEAF, &payloads, LEAF_BYTES), &counts);
    let deepest = counts.iter().map(|count| depth(*count as u64)).max().unwrap_or(0);
    for height in 0..deepest {
        let mut pairs: Vec<Digest> = Vec::new();
        let mut above = Vec::with_capacity(levels.len());
        for level in &levels {
            // A level of one digest is a root already.
            let nodes = if level.len() > 1 { level.len().div_ceil(2) } else { 0 };
            above.push(nodes);
            if nodes > 0 {
                pairs.extend_from_slice(level);
                pairs.extend((level.len() % 2 == 1).then(|| empty_subtree(height)));
            }
        }
        let hashed = split(hash(NODE, pairs.as_flattened(), 64), &above);
        for (level, hashed) in levels.iter_mut().zip(hashed).filter(|(_, hashed)| !hashed.is_empty()) {
            *level = hashed;
        }
    }
    let mut typed: Vec<Digest> = Vec::with_capacity(2 * tensors.len());
    for (tensor, level) in tensors.iter().zip(&levels) {
        typed.push(tensor.ty().to_word().to_be_bytes());
        typed.push(level.first().copied().unwrap_or_default());
    }
    hash(TENSOR, typed.as_flattened(), 64).into_iter().map(|root| TensorRoot(root.into())).collect()
}

/// Hashes of payloads of `len` bytes each, one after another.
fn hash(domain: u8, payloads: &[u8], len: usize) -> Vec<Digest> {
    let mut out = vec![[0u8; 32]; payloads.len() / len];
    hash_many(domain, payloads, len, &mut out);
    out
}

/// Cuts digests into runs of these lengths.
fn split(digests: Vec<Digest>, counts: &[usize]) -> Vec<Vec<Digest>> {
    let mut rest = digests.into_iter();
    counts.iter().map(|count| rest.by_ref().take(*count).collect()).collect()
}

#[cfg(test)]
mod tests {
    use tensorlink_types::TensorType;

    use super::*;

    #[test]
    fn roots_in_a_batch_are_the_roots_alone() {
        let tensor = |(bits, elements): (u8, u32)| {
            let ty = TensorType::new(bits, 0, &[elements]).unwrap();
            let values: Vec<i64> = (0..i64::from(elements)).map(|i| (i * 37 + 11) % 100 - 50).collect();
            Tensor::from_wide(ty, &values).unwrap()
        };
        // One element; exactly one, just over one, odd numbers of leaves; as many as the batch takes, and more.
        let sizes =
            [(8, 1), (8, 256), (8, 257), (16, 640), (32, 64), (64, 165), (8, 65_536), (8, 65_537), (16, 1), (8, 1280)];
        let tensors: Vec<Tensor> = sizes.into_iter().map(tensor).collect();
        assert_eq!(tensor_roots(&tensors), tensors.iter().map(tensor_root).collect::<Vec<_>>());
        assert!(tensor_roots(&[]).is_empty());
    }
}
