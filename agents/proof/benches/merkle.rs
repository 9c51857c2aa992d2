//! Tensor roots on one thread, against the same tree hashed message by message with alloy's keccak.

#![allow(missing_docs, reason = "criterion's macros")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tensorlink_num::{Mantissas, Tensor};
use tensorlink_proof::keccak::{Backend, hash_many_with};
use tensorlink_proof::merkle::{TensorTree, data_root, tensor_root};
use tensorlink_types::TensorType;

const MIB: u32 = 1 << 20;
const BYTES: u32 = 64 * MIB;

fn int8() -> Tensor {
    let ty = TensorType::new(8, 0, &[BYTES]).expect("a valid type");
    let values = (0..BYTES).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as i8).map(|m| m.max(-127));
    Tensor::new(ty, Mantissas::I8(values.collect())).expect("in range")
}

fn int32() -> Tensor {
    let ty = TensorType::new(26, 0, &[BYTES / 4]).expect("a valid type");
    let values = (0..BYTES / 4).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as i32 - (1 << 23));
    Tensor::new(ty, Mantissas::I32(values.collect())).expect("in range")
}

/// The same data root, one scalar hash at a time. 64 MiB are a power of two leaves, so nothing is padded.
fn plain_root(bytes: &[u8]) -> [u8; 32] {
    let leaf = |chunk: &[u8]| {
        let mut message = [0u8; 257];
        message[1..].copy_from_slice(chunk);
        alloy_primitives::keccak256(message).0
    };
    let mut level: Vec<[u8; 32]> = bytes.chunks(256).map(leaf).collect();
    while level.len() > 1 {
        let node = |pair: &[[u8; 32]]| {
            let mut message = [1u8; 65];
            message[1..].copy_from_slice(pair.as_flattened());
            alloy_primitives::keccak256(message).0
        };
        level = level.chunks(2).map(node).collect();
    }
    level[0]
}

/// Time this thread has had a core, so that a busy machine does not count; wall time where the system does not say.
fn core_time(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|line| line.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn best_of(runs: u32, pool: &rayon::ThreadPool, f: impl Fn() + Sync) -> Duration {
    let origin = Instant::now();
    let time = |_| {
        pool.install(|| {
            let start = core_time(origin);
            f();
            core_time(origin) - start
        })
    };
    (0..runs).map(time).min().expect("at least one run")
}

fn tensor_roots(c: &mut Criterion) {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let mut group = c.benchmark_group("tensor_root");
    group.throughput(Throughput::Bytes(BYTES.into())).sample_size(10);
    for (name, tensor) in [("int8", int8()), ("int32", int32())] {
        let bytes = tensor.to_bytes();
        assert_eq!(data_root(&bytes).0, plain_root(&bytes), "both hash the same tree");
        let ours = best_of(5, &one, || {
            black_box(tensor_root(&tensor));
        });
        let plain = best_of(3, &one, || {
            black_box(plain_root(&bytes));
        });
        let gb = |time: Duration| f64::from(BYTES) / 1e9 / time.as_secs_f64();
        println!(
            "{name}: {:.2} GB/s on one thread ({:?}), {:.2} GB/s with plain keccak: {:.1} times as fast",
            gb(ours),
            Backend::fastest(),
            gb(plain),
            plain.as_secs_f64() / ours.as_secs_f64()
        );
        group.bench_function(BenchmarkId::new("root", name), |b| b.iter(|| one.install(|| tensor_root(&tensor))));
        group.bench_function(BenchmarkId::new("tree", name), |b| b.iter(|| one.install(|| TensorTree::new(&tensor))));
    }
    group.finish();
}

/// Leaves and nodes that stay in cache, by each implementation.
fn batches(c: &mut Criterion) {
    let data = vec![0x5a; 256 * 512];
    let mut out = vec![[0; 32]; 512];
    for (what, domain, len) in [("leaves", 0, 256), ("nodes", 1, 64)] {
        let mut group = c.benchmark_group(what);
        group.throughput(Throughput::Bytes(512 * len as u64)).sample_size(20);
        for backend in Backend::supported() {
            group.bench_function(format!("{backend:?}"), |b| {
                b.iter(|| hash_many_with(backend, domain, &data[..512 * len], len, &mut out));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, tensor_roots, batches);
criterion_main!(benches);
