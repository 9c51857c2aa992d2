//! A serving job's files: published as workers fetch them, read back as its user needs them.

use std::sync::Arc;

use tensorlink_model::Plan;
use tensorlink_node::ports::Store;
use tensorlink_node::serving::ServingShard;
use tensorlink_node::shard::ShardSource;
use tensorlink_user::serving::boundaries::BoundaryError;
use tensorlink_user::serving::{Boundaries, PreparedServing, ServingStage, publish_serving};

use crate::support::serving::{LONGEST, choosing_plans, decoder_plans, plans, serving_view, user};
use crate::support::{JOB, MemoryChain, MemoryStore};

fn prepared() -> PreparedServing {
    let stage = |(plan, constants): (Plan, Vec<_>)| {
        let programs = ServingShard::new(plan.clone(), [].into(), LONGEST).unwrap().programs.root();
        let longest = tensorlink_types::Program::clone(&plan.program(LONGEST).unwrap());
        ServingStage { plan, constants, programs, longest }
    };
    PreparedServing { stages: plans().into_iter().map(stage).collect(), longest: LONGEST }
}

#[tokio::test]
async fn what_is_published_is_what_workers_check_and_users_read_back() {
    let store = MemoryStore::default();
    let prepared = prepared();
    let published = publish_serving(&store, "tiny", &prepared).await.unwrap();
    let shards: Vec<Arc<ServingShard>> = crate::support::serving::serving_shards();
    assert_eq!(published.programs, shards.iter().map(|shard| shard.programs.root()).collect::<Vec<_>>());
    let worker = user().address();
    let chain = MemoryChain::serving(serving_view(2), &[worker, worker], &shards);
    for stage in 0..2 {
        let source = ShardSource { job: JOB, stage, manifest: published.manifest, holders: vec![] };
        let shard = ServingShard::fetch(chain.as_ref(), &store, &source, (LONGEST, &(1u64 << 30))).await.unwrap();
        assert_eq!(*shard.plan, prepared.stages[usize::from(stage)].plan);
    }
    let plans: Vec<Plan> = prepared.stages.iter().map(|stage| stage.plan.clone()).collect();
    assert_eq!(published.note.boundaries(&store).await.unwrap(), Boundaries::new(&plans).unwrap());
    assert!(store.has(&published.note.manifest.parse().unwrap()).await.unwrap());
    assert!(prepared.multiply_adds() > 0);
}

#[test]
fn edges_have_the_types_of_every_lengths_program() {
    for (stages, by_token) in [(plans(), false), (decoder_plans(), true), (choosing_plans(), true)] {
        let plans: Vec<Plan> = stages.into_iter().map(|(plan, _)| plan).collect();
        let boundaries = Boundaries::new(&plans).unwrap();
        assert_eq!((boundaries.stages(), boundaries.by_token(0), boundaries.by_token(2)), (2, true, by_token));
        for tokens in 1..=LONGEST {
            for (stage, plan) in plans.iter().enumerate() {
                let program = plan.program(tokens).unwrap();
                assert_eq!(boundaries.ty(stage, tokens).unwrap(), program.from_previous.first().cloned());
                let last = &program.operators[program.to_next[0] as usize].output;
                assert_eq!(boundaries.ty(stage + 1, tokens).unwrap().as_ref(), Some(last));
                let controls = boundaries.controls(tokens).unwrap().filter(|_| stage == 1);
                assert_eq!(controls, program.from_next.first().cloned());
                assert_eq!(boundaries.controls_row(stage), if controls.is_some() { 44 } else { 0 });
            }
        }
        assert!(boundaries.ty(0, 0).is_err() && boundaries.ty(3, 1).unwrap().is_none());
    }
}

#[test]
fn stages_that_are_no_whole_model_are_refused() {
    let plans: Vec<Plan> = plans().into_iter().map(|(plan, _)| plan).collect();
    let other: Vec<Plan> = decoder_plans().into_iter().map(|(plan, _)| plan).collect();
    assert_eq!(Boundaries::new(&[]), Err(BoundaryError::Empty));
    assert_eq!(Boundaries::new(&plans[..1]), Err(BoundaryError::Gap(1)), "the end is missing");
    assert_eq!(Boundaries::new(&plans[1..]), Err(BoundaryError::Gap(0)), "the beginning is missing");
    assert_eq!(Boundaries::new(&[plans[0].clone(), plans[0].clone()]), Err(BoundaryError::Gap(1)));
    assert_eq!(Boundaries::new(&[plans[0].clone(), other[1].clone()]), Err(BoundaryError::Gap(1)), "of another model");
}
