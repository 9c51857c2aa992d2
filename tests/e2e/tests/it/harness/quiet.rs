//! What a job comes to where nothing fails: the same programs from the same states, executed by the reference, here.

use std::path::Path;

use tensorlink::commands::post::{compile, read_draft};
use tensorlink_node::interval::state_root_of;
use tensorlink_program::{CheckedProgram, Reference};
use tensorlink_proof::commit::ProgramCommitment;
use tensorlink_training::{LocalPipeline, Schedule, Stage};
use tensorlink_types::abi::{Claim, JobTerms};
use tensorlink_types::{B256, JobKey};
use tensorlink_user::Prepared;

use super::Network;

/// Memory that every worker offers, bytes: where the model is cut.
const MEMORY: u64 = 256 << 20;

/// Root of every stage's state after every interval: the posted model on this data, with the job's key.
pub(crate) fn quiet_run(network: &Network, data: &Path, terms: &JobTerms, key: JobKey) -> Vec<Vec<B256>> {
    let prepared = prepared(network, data, terms.stages);
    let programs = prepared.stages.iter().map(|stage| ProgramCommitment::new(&stage.program).unwrap().root());
    assert_eq!(programs.collect::<Vec<_>>(), terms.programs, "the job's programs");
    roots(&prepared, terms, key)
}

/// The same, had the model so many stages, with all sequences each.
pub(crate) fn unshared_run(
    network: &Network,
    data: &Path,
    (terms, key): (&JobTerms, JobKey),
    stages: u16,
) -> Vec<Vec<B256>> {
    roots(&prepared(network, data, stages), terms, key)
}

/// The same, cut as a later job is, whose programs tell how, of as many stages.
pub(crate) fn recut_run(
    network: &Network,
    data: &Path,
    (terms, key): (&JobTerms, JobKey),
    later: &JobTerms,
) -> Vec<Vec<B256>> {
    let draft = read_draft(&network.path("model.json"), data).unwrap();
    let layers = draft.training.layers.len();
    let calibration = prepared(network, data, terms.stages).calibration;
    // Bit i of a mask cuts after layer i + 1.
    let cuts = (0u32..1 << (layers - 1)).filter(|mask| mask.count_ones() + 1 == u32::from(later.stages));
    for mask in cuts {
        let ends: Vec<usize> = (1..=layers).filter(|end| *end == layers || mask >> (end - 1) & 1 == 1).collect();
        let cut: Vec<_> = [0].into_iter().chain(ends.clone()).zip(ends).map(|(start, end)| start..end).collect();
        let prepared = draft.compile(&cut, |_, _, _, _| Ok(calibration.clone())).unwrap();
        let programs = prepared.stages.iter().map(|stage| ProgramCommitment::new(&stage.program).unwrap().root());
        if programs.eq(later.programs.iter().copied()) {
            return roots(&prepared, terms, key);
        }
    }
    panic!("the later job's programs are of no cut")
}

/// Claims hold these states: of each interval, of each stage that a pipeline has.
pub(crate) fn assert_claimed(claims: &[Claim], states: &[Vec<B256>]) {
    for claim in claims {
        let (lane, of_interval) = (claim.lane(), &states[claim.interval as usize]);
        let expected = of_interval[usize::from(lane.stage) % of_interval.len()];
        assert_eq!(claim.newState, expected, "{lane} at interval {}", claim.interval);
    }
}

fn prepared(network: &Network, data: &Path, stages: u16) -> Prepared {
    let draft = read_draft(&network.path("model.json"), data).unwrap();
    let ranges = draft.cut(&vec![MEMORY; usize::from(stages)]).unwrap();
    compile(&draft, &ranges).unwrap()
}

fn roots(prepared: &Prepared, terms: &JobTerms, key: JobKey) -> Vec<Vec<B256>> {
    let checked = prepared.stages.iter().map(|stage| CheckedProgram::new(stage.program.clone()).unwrap());
    let checked: Vec<CheckedProgram> = checked.collect();
    let parts = checked.iter().zip(&prepared.stages).zip(&prepared.states);
    let stages: Vec<Stage<'_>> = parts
        .map(|((program, stage), state)| Stage { program, info: &stage.info, constants: &stage.constants, state })
        .collect();
    let mut pipeline = LocalPipeline::new(&stages, key, || Reference).unwrap();
    let roots = (0..terms.intervals).map(|interval| {
        let first = interval * terms.stepsPerInterval;
        for step in first..first + terms.stepsPerInterval {
            pipeline.step(step, Schedule::OneByOne).unwrap();
        }
        pipeline.state().unwrap().iter().map(|state| state_root_of(state)).collect()
    });
    roots.collect()
}
