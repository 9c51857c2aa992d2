//! keccak-256 of many equal messages at once.
//!
//! Trees hash millions of short messages of one length, and keccak has no parallelism inside a message: so each vector
//! register holds the same state word of 8 (AVX-512) or 4 (AVX2) messages. Chosen at run time; other machines hash one
//! message after the other with `alloy_primitives`.

#[cfg(target_arch = "x86_64")]
mod lanes;

use alloy_primitives::keccak256;

/// A digest as trees store it.
pub type Digest = [u8; 32];

/// Which implementation [`hash_many`] uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// Eight messages at once.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Four messages at once.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// One after the other, on any machine.
    Scalar,
}

impl Backend {
    /// Every implementation this machine can run, fastest first.
    pub fn supported() -> Vec<Self> {
        let mut backends = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                backends.push(Self::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                backends.push(Self::Avx2);
            }
        }
        backends.push(Self::Scalar);
        backends
    }

    /// The fastest implementation this machine can run.
    pub fn fastest() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Scalar
    }
}

/// `out[i] = keccak256(domain ‖ payload i)`, where payload `i` is `payloads[i·len .. (i+1)·len]`. Hashes as many as
/// both slices hold. `len` 0 hashes the bare domain byte.
pub fn hash_many(domain: u8, payloads: &[u8], len: usize, out: &mut [Digest]) {
    hash_many_with(Backend::fastest(), domain, payloads, len, out);
}

/// [`hash_many`] by a chosen implementation, for tests and benches. One that the machine lacks falls back to scalar.
pub fn hash_many_with(backend: Backend, domain: u8, payloads: &[u8], len: usize, out: &mut [Digest]) {
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 if is_x86_feature_detected!("avx512f") => {
            in_groups::<8>(domain, payloads, len, out, |group, out| {
                // SAFETY: the guard of this arm has just seen the feature.
                unsafe { lanes::avx512::hash(domain, group, out) }
            });
        }
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 if is_x86_feature_detected!("avx2") => {
            in_groups::<4>(domain, payloads, len, out, |group, out| {
                // SAFETY: the guard of this arm has just seen the feature.
                unsafe { lanes::avx2::hash(domain, group, out) }
            });
        }
        _ => in_groups::<1>(domain, payloads, len, out, |[payload], [digest]| *digest = hash_one(domain, payload)),
    }
}

/// `keccak256(domain ‖ payload)`.
pub fn hash_one(domain: u8, payload: &[u8]) -> Digest {
    let mut message = [0u8; 264];
    match message.get_mut(..=payload.len()) {
        Some([head, tail @ ..]) => {
            *head = domain;
            tail.copy_from_slice(payload);
            keccak256(message.get(..=payload.len()).unwrap_or_default()).0
        }
        _ => keccak256([&[domain], payload].concat()).0,
    }
}

/// Hands payloads to `hash` in groups of `N`. A last group of two or more is filled up with its first payload, because
/// one vector pass costs about as much as one scalar hash; a single one is hashed alone.
fn in_groups<const N: usize>(
    domain: u8,
    payloads: &[u8],
    len: usize,
    out: &mut [Digest],
    mut hash: impl FnMut([&[u8]; N], &mut [Digest; N]),
) {
    let count = payloads.len().checked_div(len).map_or(out.len(), |n| n.min(out.len()));
    let payload = |i: usize| payloads.get(i * len..(i + 1) * len).unwrap_or_default();
    let (groups, rest) = out.get_mut(..count).unwrap_or_default().as_chunks_mut::<N>();
    let done = groups.len() * N;
    for (g, group) in groups.iter_mut().enumerate() {
        hash(std::array::from_fn(|lane| payload(g * N + lane)), group);
    }
    match rest {
        [] => {}
        [last] => *last = hash_one(domain, payload(done)),
        _ => {
            let mut filled = [[0u8; 32]; N];
            let used = rest.len();
            hash(std::array::from_fn(|lane| payload(if lane < used { done + lane } else { done })), &mut filled);
            for (digest, computed) in rest.iter_mut().zip(filled) {
                *digest = computed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(domain: u8, payloads: &[u8], len: usize, count: usize) {
        for backend in Backend::supported() {
            let mut out = vec![[0u8; 32]; count];
            hash_many_with(backend, domain, payloads, len, &mut out);
            for (i, digest) in out.iter().enumerate() {
                let message = [&[domain], &payloads[i * len..(i + 1) * len]].concat();
                assert_eq!(*digest, keccak256(message).0, "{backend:?}, {len} bytes, message {i} of {count}");
            }
        }
    }

    /// Message lengths (payload and domain byte) on and around multiples of the rate, where the padding moves.
    #[test]
    fn every_length_up_to_three_blocks() {
        let data: Vec<u8> = (0..9 * 420usize).map(|i| (i * 131 + i / 251) as u8).collect();
        for len in 0..=412 {
            check(0x5a, &data, len, 9);
        }
    }

    #[test]
    fn out_shorter_or_longer_than_the_payloads_hashes_what_both_hold() {
        let mut out = vec![[7u8; 32]; 4];
        hash_many(1, &[1, 2, 3, 4, 5], 2, &mut out);
        assert_eq!(out, [hash_one(1, &[1, 2]), hash_one(1, &[3, 4]), [7; 32], [7; 32]]);
    }

    proptest! {
        #[test]
        fn equals_alloy(domain: u8, len in 0usize..600, count in 0usize..20, seed: u64) {
            let data: Vec<u8> = (0..len * count).map(|i| (seed.wrapping_mul(i as u64 + 1) >> 29) as u8).collect();
            check(domain, &data, len, count);
        }
    }
}
