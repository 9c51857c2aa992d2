//! Stages in one process come to what they come to apart.

use tensorlink_node::pipeline::{Due, Executed, Pipeline, PipelineError};
use tensorlink_node::shard::Shard;
use tensorlink_program::Reference;
use tensorlink_program::engine::EngineError;
use tensorlink_proof::commit::io_root;
use tensorlink_training::{LocalPipeline, Schedule, Stage};
use tensorlink_types::{B256, JobKey, Lineage};

use crate::support::shards;

const STEPS: u32 = 3;
const KEY: JobKey = JobKey(B256::repeat_byte(7));

fn pipeline(stages: usize) -> Pipeline {
    Pipeline { shards: shards(stages), lineage: Lineage::from(KEY), steps: STEPS }
}

fn stage(shard: &Shard) -> Stage<'_> {
    Stage { program: &shard.program, info: &shard.info, constants: &shard.constants, state: &shard.initial_state }
}

#[test]
fn every_stage_is_as_it_is_among_others_and_received_what_makes_it_so() {
    for stages in 1..=3 {
        let pipeline = pipeline(stages);
        let borrowed: Vec<Stage<'_>> = pipeline.shards.iter().map(|shard| stage(shard)).collect();
        let mut expected = LocalPipeline::new(&borrowed, KEY, || Reference).unwrap();
        for interval in 0..3 {
            let before = expected.state().unwrap();
            for step in interval * STEPS..(interval + 1) * STEPS {
                expected.step(step, Schedule::OneByOne).unwrap();
            }
            let after = expected.state().unwrap();
            for stage in 0..stages {
                let Executed { replay, claims } = pipeline.replay(|| Ok(Reference), stage as u16, interval).unwrap();
                assert_eq!(replay.state, before[stage], "stage {stage} of {stages} before interval {interval}");
                let outcome = replay.outcome(Reference).unwrap();
                assert_eq!(outcome.state, after[stage], "stage {stage} of {stages} after interval {interval}");
                let due = Due { new_state: outcome.state_root, io: io_root(&outcome.logs.roots()) };
                assert_eq!((claims.len(), claims[stage]), (stages, due));
            }
        }
    }
}

#[test]
fn a_stage_that_is_not_there_and_a_device_that_fails_are_errors() {
    let pipeline = pipeline(2);
    let missing = pipeline.replay(|| Ok(Reference), 2, 0);
    assert!(matches!(missing, Err(PipelineError::Missing(2))), "{missing:?}");
    let broken = pipeline.replay::<Reference>(|| Err(EngineError::Device("gone".to_owned())), 0, 0);
    assert!(matches!(broken, Err(PipelineError::Engine(_))), "{broken:?}");
    let mut torn = pipeline;
    torn.shards.pop();
    let torn = torn.replay(|| Ok(Reference), 0, 0);
    assert!(matches!(torn, Err(PipelineError::Interval(_))), "{torn:?}");
}
