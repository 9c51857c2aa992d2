//! In-memory doubles of the ports, and a small job to run on them. Shared by the tests of the roles.
//!
//! | module | what lives there |
//! |---|---|
//! | `mod` | the job, and the world of a node |
//! | [`chain`], [`ledger`] | a chain of one job; what its contracts hold |
//! | [`store`], [`net`], [`clock`] | files; nodes that reach each other; waits that are over at once |
//! | [`pressed`] | a store that takes files in a way of its own |
//! | [`serving`] | a job that serves texts |
#![allow(dead_code, missing_docs, unreachable_pub, unused_imports, reason = "every test binary uses its own part")]

pub mod chain;
pub mod clock;
pub mod ledger;
pub mod net;
pub mod pressed;
pub mod serving;
pub mod store;

use std::path::Path;
use std::sync::Arc;

pub use chain::MemoryChain;
pub use clock::Hasty;
pub use ledger::Ledger;
pub use net::{Hub, MemoryNet};
pub use pressed::{Press, Pressed};
pub use store::{MemoryStore, publish, publish_to};
use tensorlink_node::bounds::Bounds;
use tensorlink_node::ports::chain::*;
use tensorlink_node::ports::*;
use tensorlink_node::shard::Shard;
use tensorlink_node::{Identity, Journal};
use tensorlink_program::CheckedProgram;
use tensorlink_proof::commit::{Contracts, tensor_root};
use tensorlink_training::calibrate::{calibrate, float_state};
use tensorlink_training::{Margins, Model, Table, compile, init};
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, B256, JobId, JobKey, Lane};

pub const JOB: JobId = JobId(1);
pub const USER: Address = Address::repeat_byte(0x55);
pub const KEY: JobKey = JobKey(B256::repeat_byte(0x77));
/// What jobs pay in.
pub const SNO: Address = Address::repeat_byte(0x50);
/// What its posting is named by.
pub const TERMS: B256 = B256::repeat_byte(0x7e);
pub const WINDOW: u64 = 10;
pub const SEAL_WINDOW: u64 = 20;
pub const STEPS: u32 = 2;
pub const CONTRACTS: Contracts = Contracts {
    chain_id: 31_337,
    jobs: Address::repeat_byte(1),
    checkpoints: Address::repeat_byte(2),
    channels: Address::repeat_byte(4),
    disputes: Address::repeat_byte(3),
    custody: Address::repeat_byte(5),
};

pub fn identity(n: u8) -> Identity {
    Identity::new(&[n; 32]).unwrap()
}

pub fn lane(stage: u16) -> Lane {
    Lane { job: JOB, stage, replica: 0 }
}

pub fn job_view(stages: u16, intervals: u32) -> JobView {
    JobView {
        id: JOB,
        kind: JobKind::Training,
        user: USER,
        state: JobState::Running,
        escrow: 1 << 60,
        audit_budget: 0,
        token: SNO,
        stages,
        replicas: 1,
        intervals,
        steps_per_interval: STEPS,
        accept_by: 50,
        duration: 1000,
        started_at: 100,
        deadline: 1100,
        challenge_window: WINDOW,
        worker_stake: 10,
        lineage: KEY.into(),
        terms: TERMS,
    }
}

/// A trained-from-nothing network of three layers in `stages` stages.
pub fn shards(stages: usize) -> Vec<Arc<Shard>> {
    shards_of(stages, 7)
}

/// The same, other ones for each seed.
pub fn shards_of(stages: usize, seed: usize) -> Vec<Arc<Shard>> {
    let csv: String = (0..24)
        .map(|i| format!("{},{},{},{}\n", i % 5, (i * 7 + (i % 4) * (seed + 4)) % 11, i, ["a", "b", "c"][i % 3]))
        .collect();
    let json = r#"{"name": "test", "layers": [{"kind": "linear", "out": 6}, {"kind": "relu"}, {"kind": "linear", "out": 5},
        {"kind": "relu"}], "optimizer": {"learning_rate": 0.05, "momentum": 0.9}, "batch_size": 4, "micro_batches": 2,
        "steps": 10, "operand_bits": 16, "seed": 7}"#;
    let json = json.replace(r#""seed": 7"#, &format!(r#""seed": {seed}"#));
    let model = Model::parse("test.json", json.as_bytes()).unwrap();
    let table = Table::parse(csv.as_bytes()).unwrap();
    let data = table.split(model.operand_bits(), model.seed()).unwrap();
    let network = model.network(table.width as u32, data.classes.len() as u32).unwrap();
    let weights = init::gaussian(&network, model.seed());
    let margins = Margins::for_operands(model.operand_bits());
    let exponents = calibrate(&network, &weights, &data.training, 5, model.seed(), margins).unwrap().exponents;
    let last = network.layers.len();
    let ranges: Vec<_> = (0..stages).map(|s| if s + 1 == stages { s..last } else { s..s + 1 }).collect();
    let compiled = compile(&network, &exponents, &data.training, &ranges, tensor_root).unwrap();
    let shard = |stage: tensorlink_training::CompiledStage| Shard {
        memory: None,
        initial_state: init::state(&stage.program, &float_state(&weights)).unwrap().into(),
        program: Arc::new(CheckedProgram::new(stage.program).unwrap()),
        constants: stage.constants.into(),
        info: stage.info,
        bounds: Bounds::default(),
    };
    compiled.into_iter().map(|stage| Arc::new(shard(stage))).collect()
}

/// The world of the node with this key, its records in `folder`.
pub fn ports(key: u8, chain: Arc<MemoryChain>, store: Arc<MemoryStore>, hub: Arc<Hub>, folder: &Path) -> Ports {
    let identity = identity(key);
    let net = Arc::new(MemoryNet { own: identity.address(), hub });
    let journal = Journal::open(folder).unwrap();
    let (clock, pins) = (Arc::new(SystemClock), Arc::default());
    Ports { identity, chain, net, store, clock, contracts: CONTRACTS, journal, pins }
}
