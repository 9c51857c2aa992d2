//! A serving stage is used only if every length's program is what the chain registered, and a text repeats exactly.

use std::sync::Arc;

use tensorlink_model::choice::controls;
use tensorlink_model::{Plan, SamplingParams, StageRunner, tokens};
use tensorlink_node::interval::Span;
use tensorlink_node::names;
use tensorlink_node::ports::Store;
use tensorlink_node::price::{multiply_adds, price_per_token};
use tensorlink_node::replay::Replay;
use tensorlink_node::serving::{Gives, ServingShard, programs_root};
use tensorlink_node::shard::{ShardError, ShardSource};
use tensorlink_node::wire::manifest::{Manifest, StageFiles};
use tensorlink_node::wire::{decode, decode_plan, encode};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_proof::commit::{Crossed, ProgramCommitment, receipt, tensor_root, trace_root};
use tensorlink_types::B256;

use crate::support::serving::{LONGEST, choosing_plans, plans, publish_serving, serving_shards, serving_view, shards};
use crate::support::{JOB, KEY, MemoryChain, MemoryStore, USER, lane};

struct World {
    chain: Arc<MemoryChain>,
    store: MemoryStore,
    shards: Vec<Arc<ServingShard>>,
    manifest: Manifest,
}

async fn world() -> World {
    let shards = serving_shards();
    let store = MemoryStore::default();
    let (_, manifest) = publish_serving(&store, &shards).await;
    World { chain: MemoryChain::serving(serving_view(2), &[USER, USER], &shards), store, shards, manifest }
}

impl World {
    async fn fetch(&self, longest: u32, memory: u64) -> Result<ServingShard, ShardError> {
        let manifest = self.store.put(serde_json::to_vec(&self.manifest).unwrap().into()).await.unwrap();
        let source = ShardSource { job: JOB, stage: 1, manifest, holders: vec![USER] };
        ServingShard::fetch(self.chain.as_ref(), &self.store, &source, (longest, &memory)).await
    }

    /// Replaces the files of stage 1.
    fn files(&mut self, change: impl FnOnce(&mut String, &mut Vec<String>)) {
        match &mut self.manifest.stages[1] {
            StageFiles::Serving(files) => change(&mut files.plan, &mut files.constants),
            StageFiles::Training(_) => panic!("a training stage"),
        }
    }
}

fn what(result: Result<ServingShard, ShardError>) -> String {
    match result.unwrap_err() {
        ShardError::Root { what, .. } => what,
        other => other.to_string(),
    }
}

#[tokio::test]
async fn a_stage_as_registered_is_used() {
    let world = world().await;
    let shard = world.fetch(LONGEST, 1 << 30).await.unwrap();
    assert_eq!((&shard.plan, &shard.constants), (&world.shards[1].plan, &world.shards[1].constants));
    for tokens in 1..=LONGEST {
        let program = shard.program(tokens).unwrap();
        assert_eq!(shard.programs.get(tokens), Some(ProgramCommitment::new(&program).unwrap().root()));
        assert_eq!(Some(shard.received(tokens).unwrap()), program.from_previous.first().cloned());
        assert_eq!(shard.given(tokens).unwrap(), program.operators[program.to_next[0] as usize].output);
        let (first, program) = (&world.shards[0], world.shards[0].program(tokens).unwrap());
        assert_eq!(first.given(tokens).unwrap(), program.operators[program.to_next[0] as usize].output);
    }
    assert_eq!((world.shards[0].gives(), shard.gives()), (Gives::RowsOfTheWhole, Gives::One));
    assert!(shard.shard(0).is_err() && shard.shard(LONGEST + 1).is_err(), "the context is longer, the job is not");
    assert_eq!(programs_root(&shard.plan, LONGEST).unwrap(), shard.programs.root());
}

#[tokio::test]
async fn the_program_of_a_length_alone_is_had_with_its_names() {
    let world = world().await;
    let manifest = world.store.put(serde_json::to_vec(&world.manifest).unwrap().into()).await.unwrap();
    let source = ShardSource { job: JOB, stage: 1, manifest, holders: vec![USER] };
    let root = world.shards[1].programs.get(3).unwrap();
    let program = names::program(&world.store, &source, (3, root)).await.unwrap();
    assert!(program.names.iter().any(|name| name.contains("attention.mixed")), "{:?}", program.names);
    let other = names::program(&world.store, &source, (4, root)).await;
    assert!(matches!(other, Err(ShardError::Root { .. })), "{other:?}");
    let none = names::program(&world.store, &source, (0, root)).await;
    assert!(matches!(none, Err(ShardError::Plan(_))), "{none:?}");
}

#[tokio::test]
async fn other_programs_or_constants_than_registered_are_refused() {
    let world = world().await;
    assert_eq!(what(world.fetch(LONGEST - 1, 1 << 30).await), "the list of programs by length");
    world.chain.with(|l| l.roots[1].0 = B256::repeat_byte(1));
    assert_eq!(what(world.fetch(LONGEST, 1 << 30).await), "the list of programs by length");

    let mut world = self::world().await;
    let zeros = vec![0; world.shards[1].constants[0].ty().byte_len() as usize];
    let zeros = world.store.put(zeros.into()).await.unwrap().to_string();
    world.files(|_, constants| constants[0] = zeros);
    assert!(what(world.fetch(LONGEST, 1 << 30).await).starts_with("constant"));
    world.files(|_, constants| drop(constants.pop()));
    assert!(matches!(world.fetch(LONGEST, 1 << 30).await, Err(ShardError::Manifest(_))));
    world.manifest.stages.truncate(1);
    assert!(matches!(world.fetch(LONGEST, 1 << 30).await, Err(ShardError::Manifest(_))));
}

#[tokio::test]
async fn a_stage_beyond_the_memory_lent_is_refused_before_its_constants_are_fetched() {
    let mut world = world().await;
    world.files(|plan, constants| constants.fill(plan.clone()));
    assert!(matches!(world.fetch(LONGEST, 10).await, Err(ShardError::Memory { limit: 10, .. })));
    let constants: u64 = world.shards[1].constants.iter().map(|c| c.ty().byte_len()).sum();
    let tight = world.fetch(LONGEST, constants).await;
    assert!(matches!(tight, Err(ShardError::Memory { needed, .. }) if needed > constants), "{tight:?}");
}

/// Plans come from strangers: whatever their bytes say, they are refused in good time and without a panic.
#[tokio::test]
async fn absurd_plans_are_refused() {
    let mut world = world().await;
    for (bytes, longest) in [(vec![], 5), (vec![0xff; 64], 5)] {
        let cid = world.store.put(bytes.into()).await.unwrap().to_string();
        world.files(|plan, _| *plan = cid);
        assert!(matches!(world.fetch(longest, 1 << 30).await, Err(ShardError::Malformed(_))));
    }
    let plan = plans().remove(1).0;
    assert!(matches!(ServingShard::new(plan.clone(), [].into(), 7), Err(ShardError::Plan(_))), "beyond the context");
    assert!(matches!(ServingShard::new(plan.clone(), [].into(), 0), Err(ShardError::Plan(_))), "no program is none");
    let mut long = serde_json::to_value(&plan).unwrap();
    long["architecture"]["context"] = u32::MAX.into();
    let long: Plan = serde_json::from_value(long).unwrap();
    assert!(matches!(ServingShard::new(long, [].into(), u32::MAX), Err(ShardError::TooLong { .. })));
    // Every byte of a plan turned into others: dimensions, layers, types, names, sites.
    let good = encode("plan", &plan).unwrap();
    let mut refused = 0;
    for at in 0..good.len().min(400) {
        for value in [0, 1, 0x7f, 0xff, good[at] ^ 1] {
            let mut bytes = good.to_vec();
            bytes[at] = value;
            let Ok(plan) = decode_plan(&bytes) else { continue };
            refused += usize::from(ServingShard::new(plan, [].into(), LONGEST).is_err());
        }
    }
    assert!(refused > 20, "{refused}");
    // Four billion layers, tokens and words, as JSON writes them.
    let mut json = serde_json::to_value(&plan).unwrap();
    for (field, value) in
        [("layers", u32::MAX), ("context", u32::MAX), ("vocabulary", u32::MAX), ("heads", 0), ("head_width", 0)]
    {
        let mut absurd = json.clone();
        absurd["architecture"][field] = value.into();
        absurd["layers"]["end"] = absurd["architecture"]["layers"].clone();
        let absurd: Plan = serde_json::from_value(absurd).unwrap();
        let _ = ServingShard::new(absurd, [].into(), LONGEST);
    }
    json["architecture"]["layers"] = u32::MAX.into();
    json["layers"]["end"] = u32::MAX.into();
    let absurd: Plan = serde_json::from_value(json).unwrap();
    assert!(matches!(ServingShard::new(absurd, [].into(), LONGEST), Err(ShardError::Plan(_))));
}

#[test]
fn a_text_repeats_to_its_receipt_at_every_stage() {
    let ids = [3u32, 7, 19];
    let mut x = tokens(&ids).unwrap();
    for (stage, shard) in serving_shards().iter().enumerate() {
        let runner = StageRunner::new(Reference, (*shard.plan).clone(), &shard.constants).unwrap();
        let y: Tensor = runner.run(&x).unwrap();
        let crossed = Crossed { from_previous: tensor_root(&x), from_next: None, to_next: tensor_root(&y) };
        let (claim, logs) = receipt(lane(stage as u16), 4, &crossed);
        let replay = Replay {
            shard: Arc::new(shard.shard(3).unwrap()),
            lineage: KEY.into(),
            span: Span { first_step: 3, steps: 1 },
            state: vec![],
            inputs: x.to_bytes().into(),
        };
        let outcome = replay.outcome(Reference).unwrap();
        assert_eq!((outcome.state_root, outcome.logs.roots()), (claim.newState, logs.roots()));
        let roots = replay.roots(Reference).unwrap();
        assert_eq!((roots.states.as_slice(), roots.traces.len()), (&[vec![], vec![]][..], 1));
        let trace: Vec<_> = runner.trace(&x).unwrap().iter().map(tensor_root).collect();
        assert_eq!(trace_root(&roots.traces[0]), trace_root(&trace), "a program takes nothing from its step");
        for operator in 0..trace.len() as u32 {
            let tensors = replay.operator(Reference, 3, operator).unwrap();
            assert_eq!(tensor_root(&tensors.output), roots.traces[0][operator as usize]);
        }
        assert!(replay.operator(Reference, 4, 0).is_err());
        x = y;
    }
}

#[test]
fn a_text_whose_tokens_were_chosen_repeats_from_rows_and_controls() {
    let shards = shards(choosing_plans());
    let ids = [3u32, 7, 19];
    let warm = SamplingParams { temperature: 0.7, top_k: 9, top_p: 0.9, min_p: 0.01, repetition_penalty: 1.2, seed: 5 };
    let steer = controls(0, &[(3, None), (7, Some(SamplingParams::default())), (19, Some(warm))]).unwrap();
    let run = |shard: &ServingShard| StageRunner::new(Reference, (*shard.plan).clone(), &shard.constants).unwrap();
    let hidden = run(&shards[0]).run(&tokens(&ids).unwrap()).unwrap();
    assert_eq!((shards[0].controls(3).unwrap(), shards[0].gives(), shards[0].goes_on()), (None, Gives::Rows, true));
    let (last, runner) = (&shards[1], run(&shards[1]));
    assert_eq!(
        (last.controls(3).unwrap().as_ref(), last.gives(), last.goes_on()),
        (Some(steer.ty()), Gives::Rows, true)
    );
    let chosen = runner.choose(&hidden, &steer).unwrap();
    assert_eq!(*chosen.ty(), last.given(3).unwrap());

    let inputs = [hidden.to_bytes(), steer.to_bytes()].concat();
    assert_eq!(last.recorded(3).unwrap(), inputs.len() as u64);
    let (from_previous, from_next) = (tensor_root(&hidden), Some(tensor_root(&steer)));
    let (_, logs) = receipt(lane(1), 4, &Crossed { from_previous, from_next, to_next: tensor_root(&chosen) });
    let replay = |inputs: Vec<u8>| Replay {
        shard: Arc::new(last.shard(3).unwrap()),
        lineage: KEY.into(),
        span: Span { first_step: 3, steps: 1 },
        state: vec![],
        inputs: inputs.into(),
    };
    let own = replay(inputs);
    assert_eq!(own.outcome(Reference).unwrap().logs.roots(), logs.roots());
    let roots = own.roots(Reference).unwrap();
    let trace = runner.trace_choice(&hidden, Some(&steer)).unwrap();
    assert_eq!(roots.traces, [trace.iter().map(tensor_root).collect::<Vec<_>>()]);
    for operator in 0..trace.len() as u32 {
        let tensors = own.operator(Reference, 3, operator).unwrap();
        assert_eq!(tensor_root(&tensors.output), roots.traces[0][operator as usize]);
    }
    assert!(replay(hidden.to_bytes()).outcome(Reference).is_err(), "a record without controls");
}

#[test]
fn a_token_costs_its_share_of_the_longest_text() {
    let shard = serving_shards().remove(0);
    let longest = shard.program(LONGEST).unwrap();
    let work = multiply_adds(&longest);
    assert!(work > 1000);
    assert_eq!(price_per_token(&longest, LONGEST, 1), Some(1), "never nothing");
    assert_eq!(price_per_token(&longest, LONGEST, 1_000_000_000), Some(work.div_ceil(LONGEST.into())));
    assert_eq!(price_per_token(&longest, LONGEST, u128::MAX), None);
}

/// Jobs that are under way when a worker or an auditor is updated have plans of the version before.
#[test]
fn plans_of_the_version_before_are_read() {
    for (plan, ..) in plans().into_iter().chain(choosing_plans()) {
        let whole = encode("plan", &plan).unwrap();
        // Neither dense layers nor pairs: the last two bytes of an architecture, which is the first thing in a plan.
        let end = encode("architecture", plan.architecture()).unwrap().len();
        let older = [&whole[..end - 2], &whole[end..]].concat();
        assert_eq!(whole[end - 2..end], [0, 0]);
        assert!(decode::<Plan>("plan", &older).is_err());
        assert_eq!(decode_plan(&older).unwrap(), plan);
        assert_eq!(decode_plan(&whole).unwrap(), plan);
        assert!(decode_plan(&older[..older.len() - 1]).is_err() && decode_plan(&[&older[..], &[0]].concat()).is_err());
    }
}
