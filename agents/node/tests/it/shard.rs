//! A shard is used only if every file is what the chain registered, and an interval repeats exactly.

use std::sync::Arc;

use tensorlink_node::interval::{Span, inputs_len};
use tensorlink_node::ports::Store;
use tensorlink_node::replay::Replay;
use tensorlink_node::shard::{Shard, ShardError, ShardSource};
use tensorlink_node::wire::manifest::{Manifest, StageFiles, TrainingFiles};
use tensorlink_node::{files, names};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_proof::commit::{ProgramCommitment, state_root, tensor_root};
use tensorlink_types::B256;

use crate::support::{JOB, KEY, MemoryChain, MemoryStore, STEPS, USER, job_view, publish, shards};

struct World {
    chain: Arc<MemoryChain>,
    store: MemoryStore,
    shards: Vec<Arc<Shard>>,
    manifest: Manifest,
}

async fn world() -> World {
    let shards = shards(2);
    let store = MemoryStore::default();
    let (_, manifest) = publish(&store, &shards).await;
    World { chain: MemoryChain::new(job_view(2, 2), &[USER, USER], &shards), store, shards, manifest }
}

impl World {
    async fn fetch(&self, memory: u64) -> Result<Shard, ShardError> {
        let manifest = self.store.put(serde_json::to_vec(&self.manifest).unwrap().into()).await.unwrap();
        let source = ShardSource { job: JOB, stage: 1, manifest, holders: vec![USER] };
        Shard::fetch(self.chain.as_ref(), &self.store, &source, (STEPS, &memory)).await
    }

    /// The files of stage 1.
    fn files(&mut self) -> &mut TrainingFiles {
        match &mut self.manifest.stages[1] {
            StageFiles::Training(files) => files,
            StageFiles::Serving(_) => panic!("a serving stage"),
        }
    }

    fn what(result: Result<Shard, ShardError>) -> String {
        match result.unwrap_err() {
            ShardError::Root { what, .. } => what,
            other => other.to_string(),
        }
    }
}

#[tokio::test]
async fn a_shard_as_registered_is_used() {
    let world = world().await;
    let shard = world.fetch(1 << 30).await.unwrap();
    assert_eq!(shard.initial_state, world.shards[1].initial_state);
    assert_eq!(shard.constants, world.shards[1].constants);
    assert_eq!(**shard.program, **world.shards[1].program);
}

#[tokio::test]
async fn the_program_alone_is_had_with_its_names_if_it_is_the_one_meant() {
    let world = world().await;
    let manifest = world.store.put(serde_json::to_vec(&world.manifest).unwrap().into()).await.unwrap();
    let source = ShardSource { job: JOB, stage: 1, manifest, holders: vec![USER] };
    let program = &world.shards[1].program;
    let root = ProgramCommitment::new(program).unwrap().root();
    let found = names::program(&world.store, &source, (0, root)).await.unwrap();
    assert!(found == ***program && found.names.len() == found.operators.len());
    let other = names::program(&world.store, &source, (0, B256::ZERO)).await;
    assert!(matches!(other, Err(ShardError::Root { actual, .. }) if actual == root), "{other:?}");
}

#[tokio::test]
async fn another_program_or_state_than_registered_is_refused() {
    let world = world().await;
    world.chain.with(|l| l.roots[1].0 = B256::repeat_byte(1));
    assert_eq!(World::what(world.fetch(1 << 30).await), "the program");
    let world = self::world().await;
    world.chain.with(|l| l.roots[1].1 = B256::repeat_byte(1));
    assert_eq!(World::what(world.fetch(1 << 30).await), "the initial state");
}

#[tokio::test]
async fn another_constant_or_a_short_file_is_refused() {
    let mut world = world().await;
    let stage = world.shards.iter().position(|s| !s.constants.is_empty()).unwrap();
    assert_eq!(stage.min(1), stage);
    if let Some(constant) = world.shards[1].constants.first() {
        let zeros = vec![0; constant.ty().byte_len() as usize];
        world.files().constants[0] = world.store.put(zeros.into()).await.unwrap().to_string();
        assert!(World::what(world.fetch(1 << 30).await).starts_with("constant"));
        world.files().constants.clear();
        assert!(matches!(world.fetch(1 << 30).await, Err(ShardError::Manifest(_))));
    }
    let mut world = self::world().await;
    world.files().state = world.store.put(vec![0; 3].into()).await.unwrap().to_string();
    assert!(matches!(world.fetch(1 << 30).await, Err(ShardError::File { .. })));
}

#[tokio::test]
async fn a_job_of_another_version_is_refused_and_both_versions_are_named() {
    let mut world = world().await;
    world.manifest.version += 1;
    let refused = World::what(world.fetch(1 << 30).await);
    let (theirs, ours) = (world.manifest.version, world.manifest.version - 1);
    assert!(refused.contains(&format!("version {theirs}, this node speaks {ours}: update")), "{refused}");
}

#[tokio::test]
async fn a_shard_beyond_the_memory_lent_is_refused_before_it_is_fetched() {
    let mut world = world().await;
    world.files().state = world.files().program.clone();
    assert!(matches!(world.fetch(10).await, Err(ShardError::Memory { limit: 10, .. })));
}

#[test]
fn an_interval_repeats_exactly_and_its_operators_agree_with_its_roots() {
    let shard = shards(1).remove(0);
    let span = Span { first_step: 4, steps: 3 };
    let state = shard.initial_state.to_vec();
    assert_eq!(inputs_len(&shard.program, 3), 0);
    let replay = Replay { shard: shard.clone(), lineage: KEY.into(), span, state, inputs: bytes::Bytes::new() };
    let outcome = replay.outcome(Reference).unwrap();
    let roots = replay.roots(Reference).unwrap();
    assert_eq!((roots.states.len(), roots.traces.len()), (4, 3));
    assert_eq!(state_root(roots.states.last().unwrap()), outcome.state_root);
    assert_ne!(roots.states[0], roots.states[3], "training changes the state");
    assert_eq!(roots.logs.roots(), outcome.logs.roots());
    assert_eq!(replay.outcome(Reference).unwrap().state_root, outcome.state_root);
    for operator in 0..shard.program.operators.len() as u32 {
        let tensors = replay.operator(Reference, 5, operator).unwrap();
        assert_eq!(tensor_root(&tensors.output), roots.traces[1][operator as usize]);
    }
    assert!(replay.operator(Reference, 7, 0).is_err() && replay.operator(Reference, 5, 1 << 20).is_err());
    let bytes = files::join(&outcome.state);
    let back: Vec<Tensor> = files::split(&bytes, shard.program.state.iter().map(|s| &s.ty)).unwrap();
    assert_eq!(back, outcome.state);
}
